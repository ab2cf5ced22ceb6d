"""The audit of weights whose `read` returns arrays: held ones are compared with a reference."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType

from tb_pastnet.record.audit.freeze_audit import AuditSource, CauseFinder, moved_of
from tb_pastnet.record.audit.held_array import HeldArray
from tb_pastnet.record.audit.held_prints import HeldPrints, are_large, by_prints
from tb_pastnet.record.options import VALUES
from tb_pastnet.record.weight import Look, Weight


class ArrayAudit(AuditSource):
    """Compares the held elements of some weights, in NumPy. Statistics are never held.

    `wish` is the option `audit` of a Recorder, see `by_prints`; `looks` has the bits of weights
    that a record has just looked at.
    """

    def __init__(
        self,
        weights: Iterable[Weight],
        causes: CauseFinder,
        wish: bool | str = VALUES,
        looks: Mapping[str, Look] = MappingProxyType({}),
    ) -> None:
        self.weights: Sequence[Weight] = [each for each in weights if not each.statistic]
        self.causes = causes
        self._wish, self._looks = wish, looks
        self._large = False

    def expect(self, weights: Sequence[Weight]) -> None:
        """See `AuditSource`."""
        self._large = are_large(weights)

    def held(self, weight: Weight) -> HeldArray:
        """See `AuditSource`."""
        if weight.plain and by_prints(self._wish, large=self._large):
            return HeldPrints(weight, self._looks)
        return self._by_value(weight)

    def _by_value(self, weight: Weight) -> HeldArray:
        return HeldArray(weight)

    def moved(self, held: Sequence[HeldArray]) -> list[bool]:
        """See `AuditSource`."""
        return moved_of(held)

    def trainable(self) -> list[bool]:
        """See `AuditSource`."""
        return [weight.text.follows or weight.trainable() for weight in self.weights]
