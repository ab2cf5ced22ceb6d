"""The causes of violations if the optimizer state is passed as well."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from tb_pastnet.jax.tree import Tree
from tb_pastnet.record.audit.causes import DECLARED, Facts
from tb_pastnet.record.audit.comparison import Ints
from tb_pastnet.record.audit.decay_by_numbers import DecayByNumbers
from tb_pastnet.record.audit.held_array import HeldArray
from tb_pastnet.record.weight import Array

Slots = Mapping[str, Array]


class StateCauses(DecayByNumbers):
    """Compares the optimizer state of held weights with that from when they began to be held.

    In an optax state these are the arrays whose path ends with that of a leaf, of its shape.

    Attributes:
        misses_state: whether a cause is unknown, and no state was passed that could show it.
    """

    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        self.misses_state = False
        self._begun: dict[str, tuple[Ints, Slots]] = {}

    def begin(self, held: Sequence[HeldArray]) -> None:
        """See `CauseFinder`."""
        for each in held:
            self._begun.pop(each.name, None)
        self.remember(held)

    def remember(self, held: Iterable[HeldArray]) -> None:
        """See `CauseFinder`. A state that is passed later works as well."""
        missing = [each for each in held if each.name not in self._begun]
        if self._tree.state is None or not missing:
            return
        for each in missing:
            positions = each.sample()
            self._begun[each.name] = positions, self._slots(each, positions)

    def cause(self, held: HeldArray, channels: Ints) -> str:
        """See `CauseFinder`."""
        cause = super().cause(held, channels)
        self.misses_state |= cause == "unknown" and self._tree.state is None
        return cause

    def facts(self, held: HeldArray, channels: Ints) -> Facts:
        """See `CauseFinder`."""
        facts = super().facts(held, channels)
        if self._tree.state is None or held.name not in self._begun:
            return facts
        positions, begun = self._begun[held.name]
        current = self._slots(held, positions)
        # No optax update respects weights that are only declared as held.
        return replace(
            facts,
            held_by=DECLARED,
            updates=1,
            stateless=bool(self._tree.slots()) and not current,
            slots={name: (begun[name], slot) for name, slot in current.items() if name in begun},
        )

    def _slots(self, held: HeldArray, positions: Ints) -> Slots:
        shape = held.weight.shape
        slots = {
            leaf.name.removesuffix(held.name): np.array(
                np.asarray(leaf.value).reshape(-1)[positions]
            )
            for leaf in self._tree.slots().get(held.name, ())
            if np.shape(leaf.value) == shape
        }
        # Gradients that optax.MultiSteps gathers, of all leaves: no optimizer's slots.
        return {name: slot for name, slot in slots.items() if "acc_grads" not in name}
