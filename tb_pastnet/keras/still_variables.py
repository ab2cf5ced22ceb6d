"""Why variables of Keras are idle, as far as their optimizers show it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tb_pastnet.core.standing import UNKNOWN
from tb_pastnet.keras.measure.used_rate import UsedRate
from tb_pastnet.keras.model.optimizers import innermost
from tb_pastnet.keras.model.walk import held_by
from tb_pastnet.record.slot_history import SlotHistory
from tb_pastnet.record.weight import Array, Weight

Slots = Callable[[Any, Weight], Mapping[str, Any]]
"""Returns the slots of an innermost optimizer for a weight."""


class StillVariables:
    """Finds causes from the optimizers of a model, or those that are given.

    Args:
        weights: all that are recorded.
        rate: knows the optimizers.
        others: returns more optimizers that make steps.
        slots: reads slots; None: they can't be read on this backend.
        sample: returns some elements of a slot, and whether all of it is zero.
    """

    def __init__(
        self,
        weights: Sequence[Any],
        rate: UsedRate,
        others: Callable[[], Sequence[Any]] = lambda: (),
        slots: Slots | None = None,
        sample: Callable[[Any], tuple[Array, bool]] | None = None,
    ) -> None:
        self._weights, self._rate, self._others = weights, rate, others
        self._slots, self._sample = slots, sample
        self._history = SlotHistory()
        # Of each optimizer the updates, and the scale of its loss, at the record before.
        self._counts: dict[int, tuple[int, float]] = {}
        self._owners: dict[int, Any] = {}

    def find(self, still: Sequence[int], slow: Sequence[int]) -> dict[int, str]:
        """See `Source.why_still`."""
        self._history.next()
        counts, self._counts = self._counts, {}
        owners = self._owners_of_all()
        stepping = list({id(each): each for each in owners.values()}.values())
        self._counts = {id(each): self._count(each) for each in stepping}
        self._owners = {number: owners[number] for number in (*still, *slow) if number in owners}
        causes = {number: self._cause(number, stepping, counts) for number in still}
        decays = [number for number in slow if number in self._owners and self._all_zero(number)]
        return {**causes, **dict.fromkeys(decays, "weight_decay")}

    def decay(self, number: int) -> tuple[float, float] | None:
        """See `Source`."""
        optimizer = innermost(self._owners[number])
        owner = getattr(self._weights[number].found, "given", None)
        if not (getattr(optimizer, "weight_decay", None) and optimizer._use_weight_decay(owner)):
            return None
        share = self._rate.used(optimizer) * float(optimizer.weight_decay)
        return share, share

    def _owners_of_all(self) -> dict[int, Any]:
        """By number of a weight, the optimizer that was built for it.

        It has made a step, or scales its loss: then all its steps so far may have been skipped.
        """
        known: dict[int, Any] = {}
        for each in (*self._rate.optimizers().values(), *self._others()):
            known.setdefault(id(innermost(each)), each)
        owners: dict[int, Any] = {}
        for each in known.values():
            if self._rate.updates(each) > 0 or hasattr(each, "dynamic_scale"):
                own = getattr(innermost(each), "_trainable_variables", ())
                owners.update((id(held_by(variable)), each) for variable in own)
        return {
            number: owners[id(weight.variable)]
            for number, weight in enumerate(self._weights)
            if id(weight.variable) in owners
        }

    def _count(self, optimizer: Any) -> tuple[int, float]:
        scale = getattr(optimizer, "dynamic_scale", None)
        count = self._rate.updates(optimizer)
        return count, float("nan") if scale is None else self._rate.number(scale)

    def _cause(
        self, number: int, stepping: Sequence[Any], before: Mapping[int, tuple[int, float]]
    ) -> str:
        owner = self._owners.get(number)
        if owner is None:
            steps = any(count for count, _ in self._counts.values())
            return "no_optimizer" if steps else UNKNOWN
        updates, scale = self._counts[id(owner)]
        former, larger = before.get(id(owner), (-1, 0.0))
        if updates == former:
            # If gradients overflow, the scale of the loss falls, and nothing is updated.
            return "skipped" if scale < larger else UNKNOWN
        rate = self._rate.used(owner)
        if rate == 0:
            others = (self._rate.used(each) for each in stepping)
            return "group_rate" if any(each > 0 for each in others) else "rate"
        return self._cause_by_slots(number, rate)

    def _cause_by_slots(self, number: int, rate: float) -> str:
        read = self._read(number)
        if read and all(zero for _, zero in read):
            return "zero_gradient"
        samples = [sample for sample, _ in read]
        return self._history.cause(number, self._weights[number], samples, rate)

    def _all_zero(self, number: int) -> bool:
        read = self._read(number)
        return bool(read) and all(zero for _, zero in read)

    def _read(self, number: int) -> list[tuple[Array, bool]]:
        if self._slots is None or self._sample is None:
            return []
        slots = self._slots(innermost(self._owners[number]), self._weights[number])
        return [self._sample(slot) for slot in slots.values()]
