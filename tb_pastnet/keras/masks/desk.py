"""Where commands on masks are looked up, checked and put in force."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Protocol

from tb_pastnet.core.names import resolve
from tb_pastnet.errors import InvalidArgument
from tb_pastnet.keras.layers.weight import MaskedWeight
from tb_pastnet.keras.masks.hold import Hold, Mask
from tb_pastnet.keras.masks.refuse import refuse
from tb_pastnet.keras.masks.table import MaskTable
from tb_pastnet.keras.model.weights import TFWeight


class Enforcing(Protocol):
    """Puts changes of masks in force: see `keeper.Keeper`."""

    def enforce_now(self, hold: Hold, *, first: bool) -> None:
        """After masks have changed."""

    def clear_slots(self, variable: Any, where: Mask) -> None:
        """Sets what optimizers keep of some elements to what it is of new weights."""


class Desk:
    """Reads and writes the masks of one model.

    Args:
        state: the masks.
        keeper: puts changes in force.
    """

    def __init__(self, state: MaskTable, keeper: Enforcing) -> None:
        self._state = state
        self._keeper = keeper

    def at_once(self) -> AbstractContextManager[Any]:
        """Around a command: nothing else changes variables meanwhile."""
        return nullcontext()

    def record(self, name: str) -> TFWeight:
        """The variable that a name means; raises UnknownName."""
        return self._state.variables[resolve(name, self._state.variables)]

    def read(self, record: TFWeight) -> tuple[Mask, Mask]:
        """Kept and trainable."""
        return self._state.read(record.text.id)

    def prunable(self, names: Iterable[str] | None) -> list[TFWeight]:
        """The named variables, each once; None: all kernels of layers that own no masks.

        Raises before any of them is changed, where a mask could not hold one.
        """
        if names is None:
            every = self._state.variables.values()
            found = [one for one in every if one.text.role == "kernel" and not _owned(one)]
        else:
            names = [names] if isinstance(names, str) else names
            found = list({record.text.id: record for record in map(self.record, names)}.values())
        for record in found:
            refuse(record)
        return found

    def counted(self, name: str | None) -> list[TFWeight]:
        """What sparsity is counted over: one variable, or all kernels and what else is pruned."""
        if name is not None:
            return [self.record(name)]
        every = self._state.variables.values()
        return [one for one in every if one.text.role == "kernel" or self._pruned(one)]

    def _pruned(self, record: TFWeight) -> bool:
        masked = record.text.id in self._state.holds or _owned(record)
        return masked and not self.read(record)[0].all()

    def prune(self, record: TFWeight, kept: Mask, trainable: Mask) -> None:
        """Writes masks of which `kept` has new holes; raises where a kernel would be empty."""
        if record.text.role == "kernel" and not kept.any():
            raise InvalidArgument(
                f"Could not prune {record.text.id!r}: expected that some of its {kept.size} "
                f"weights stay, got none, which cuts the network there. Take the layer out, or "
                f"leave at least one weight."
            )
        self.write(record, kept, trainable | ~kept)

    def write(self, record: TFWeight, kept: Mask, trainable: Mask) -> None:
        """Writes masks and puts them in force; raises where they could not hold."""
        name = record.text.id
        if not (kept & trainable).all():
            refuse(record)
        elif name not in self._state.holds:
            return
        first = name not in self._state.holds
        self._state.write(name, kept, trainable)
        self._keeper.enforce_now(self._state.holds[name], first=first)


def _owned(record: TFWeight) -> bool:
    return isinstance(record.found.variable, MaskedWeight)
