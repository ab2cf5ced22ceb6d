"""The masks of some variables."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tb_pastnet.keras.layers.weight import MaskedWeight
from tb_pastnet.keras.masks.hold import Hold, Mask
from tb_pastnet.keras.model.weights import TFWeight
from tb_pastnet.keras.workers import check_agreed
from tb_pastnet.record.weight import Weight


class MaskTable:
    """The holds of variables, by name.

    Args:
        variables: all that could have masks.
        make: makes the hold of a variable that gets its first mask.

    Attributes:
        version: grows with every change that is made through it.
        generation: grows when a variable gets its first mask: older traces don't know of it.
        origin: fingerprint of the values at the beginning, "" where it isn't known yet; saved.
    """

    def __init__(
        self, variables: Sequence[TFWeight], make: Callable[[TFWeight], Hold] | None = None
    ) -> None:
        self._table = _Table(variables, make or _eager)
        self.version = 0
        self.generation = 0
        self.origin = ""

    @property
    def keeper(self) -> Any:
        """What keeps the masks in force, None before there is one."""
        return self._table.keeper

    @keeper.setter
    def keeper(self, keeper: Any) -> None:
        self._table.keeper = keeper

    @property
    def holds(self) -> Mapping[str, Hold]:
        """The variables with masks, by id."""
        return self._table.holds

    @property
    def variables(self) -> Mapping[str, TFWeight]:
        """All variables, by id."""
        return self._table.variables

    def hold_of(self, variable: Any) -> Hold | None:
        """The masks of a tf.Variable, None where it has none."""
        return self._table.by_object.get(id(variable))

    def hold(self, name: str) -> Hold:
        """The masks of a variable, made where there are none.

        Args:
            name: its id.
        """
        if name not in self.holds:
            hold = self._table.make(self.variables[name])
            self._table.add(name, hold)
            self.generation += 1
        return self.holds[name]

    def read(self, name: str) -> tuple[Mask, Mask]:
        """Kept and trainable of a variable, bool arrays; all ones where it has no masks."""
        if name in self.holds:
            return self.holds[name].read()
        own = self.variables[name].found.variable
        if isinstance(own, MaskedWeight):
            return own.kept, own.trainable
        shape = self.variables[name].text.shape
        return np.ones(shape, bool), np.ones(shape, bool)

    def masks_of(self, weight: Weight) -> tuple[Mask, Mask] | None:
        """Kept and trainable of a weight by its variable; None where it has no masks."""
        hold = self.hold_of(weight.variable) if isinstance(weight, TFWeight) else None
        return None if hold is None else hold.read()

    def settle(self) -> None:
        """Takes up what was loaded meanwhile."""

    def tell(self, observe: Callable[[], None]) -> None:
        """Lets an audit know of each change when it is made, before another step.

        Args:
            observe: a bound method, kept weakly.
        """
        self._table.observers.append(weakref.WeakMethod(observe))

    def write(self, name: str, kept: Mask, trainable: Mask) -> None:
        """Sets the masks of a variable, the same in all workers of a strategy.

        Raises:
            InvalidArgument: another worker sets others, or none.
        """
        variable = self.variables[name].found.variable
        check_agreed(variable, f"the masks of {name!r}", kept, trainable)
        self.settle()
        self.hold(name).write(kept, trainable)
        self.version += 1
        for reference in list(self._table.observers):
            observe = reference()
            if observe is None:
                self._table.observers.remove(reference)
            else:
                observe()


class _Table:
    """What trackers shall not look into."""

    def __init__(self, variables: Sequence[TFWeight], make: Callable[[TFWeight], Hold]) -> None:
        self.variables = {record.text.id: record for record in variables}
        self.make = make
        self.holds: dict[str, Hold] = {}
        self.by_object: dict[int, Hold] = {}
        self.keeper: Any = None
        self.observers: list[weakref.WeakMethod[Callable[[], None]]] = []

    def add(self, name: str, hold: Hold) -> None:
        self.holds[name] = hold
        self.by_object[id(hold.variable)] = hold


def _eager(record: TFWeight) -> Hold:
    return Hold(record.found.variable)
