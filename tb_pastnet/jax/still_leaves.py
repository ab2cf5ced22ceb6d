"""Why leaves are idle, as far as the optimizer state shows it, if it is passed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np

from tb_pastnet.core.standing import UNKNOWN
from tb_pastnet.jax.leaf_weights import LeafWeight
from tb_pastnet.jax.tree import Leaf, Tree
from tb_pastnet.record.slot_history import SAMPLED, SlotHistory
from tb_pastnet.record.source import HELD
from tb_pastnet.record.weight import Array

_OF_DECAY = 0.0, 0.1
"""The share of a weight that its decay may take in a step: optax's states don't have it."""


class StillLeaves:
    """Compares the slots of leaves that are idle with those of the record before."""

    def __init__(self, tree: Tree, weights: Sequence[LeafWeight]) -> None:
        self._tree, self._weights = tree, weights
        self._history = SlotHistory()

    def find(self, still: Sequence[int], slow: Sequence[int], rate: float) -> dict[int, str]:
        """See `Source.why_still`; the learning rate may be NaN."""
        self._history.next()
        if self._tree.state is None:
            return dict.fromkeys(still, UNKNOWN)
        causes = {number: self._cause(number, rate) for number in still}
        decays = [number for number in slow if _all_zero(self._slots(number))]
        return {**causes, **dict.fromkeys(decays, "weight_decay")}

    @staticmethod
    def decay() -> tuple[float, float]:
        """See `Source`."""
        return _OF_DECAY

    def _cause(self, number: int, rate: float) -> str:
        slots = self._slots(number)
        if not slots:
            # Optimizers without any slots, such as plain SGD, say nothing about any leaf.
            return HELD if self._any_slots() else UNKNOWN
        if rate == 0:
            return "rate"
        if _all_zero(slots):
            return "zero_gradient"
        samples = [_sample(leaf.value) for leaf in slots]
        return self._history.cause(number, self._weights[number], samples, rate)

    def _slots(self, number: int) -> list[Leaf]:
        weight = self._weights[number]
        return [
            leaf
            for leaf in self._tree.slots().get(weight.name, ())
            # Gradients that optax.MultiSteps gathers are no slots.
            if np.shape(leaf.value) == weight.shape and "acc_grads" not in leaf.name
        ]

    def _any_slots(self) -> bool:
        return any(
            np.shape(leaf.value) == weight.shape and "acc_grads" not in leaf.name
            for weight in self._weights
            for leaf in self._tree.slots().get(weight.name, ())
        )


def _all_zero(slots: Sequence[Leaf]) -> bool:
    return bool(slots) and not any(bool(jnp.any(leaf.value)) for leaf in slots)


def _sample(value: Any) -> Array:
    return np.array(value.reshape(-1)[:: value.size // SAMPLED | 1], np.float64)
