"""The commands on masks: prune, regrow, freeze, thaw, and how sparse it became."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

import numpy as np
import numpy.typing as npt

from tb_pastnet.core import rules, selection
from tb_pastnet.errors import InvalidArgument
from tb_pastnet.keras.masks.arguments import mask_of, opened
from tb_pastnet.keras.masks.desk import Desk, Enforcing
from tb_pastnet.keras.masks.hold import Mask
from tb_pastnet.keras.model.variables import Recorded

Channels = Sequence[int] | npt.ArrayLike

Given = ParamSpec("Given")
Result = TypeVar("Result")


def _at_once(
    command: Callable[Concatenate[MaskCommands, Given], Result],
) -> Callable[Concatenate[MaskCommands, Given], Result]:
    """Reads and writes all that a command asks for at once, where that is faster."""

    @wraps(command)
    def run(self: MaskCommands, /, *args: Given.args, **kwargs: Given.kwargs) -> Result:
        with self._desk.at_once():
            return command(self, *args, **kwargs)

    return run


def _prunable(record: Recorded, kept: Mask) -> rules.Prunable:
    return rules.Prunable(record.text.id, record.found.variable.numpy(), kept, record.axis)


class MaskCommands:
    """The part of `Masks` that changes masks.

    Args:
        desk: looks up variables, reads and writes masks.
        enforcing: puts changes in force.
    """

    def __init__(self, desk: Desk, enforcing: Enforcing) -> None:
        self._desk = desk
        self._enforcing = enforcing

    @_at_once
    def prune(self, name: str, kept: Any = None, channels: Channels | None = None) -> None:
        """Prunes weights: sets them to zero and holds them there.

        Args:
            name: of the variable.
            kept: 1 stays, 0 is pruned, shape of the variable, bool, int or float. What is pruned
                already stays so.
            channels: numbers of whole channels to prune instead.

        Raises:
            InvalidArgument: both or none are given, a wrong shape, other values than 0 and 1, or
                nothing of a kernel would stay.
            UnknownName: no variable, or several, have that name.
        """
        record = self._desk.record(name)
        mask = mask_of(record, kept, channels, "kept")
        old, trainable = self._desk.read(record)
        self._desk.prune(record, old & mask, trainable)

    @_at_once
    def prune_below(self, name: str, threshold: float) -> None:
        """Prunes the weights of a magnitude below a threshold; large negative ones stay.

        Args:
            name: of the variable.
            threshold: at least 0. NaN and infinite weights stay.

        Raises:
            InvalidArgument: no finite number from 0 on, or nothing of a kernel would stay.
            UnknownName: no variable, or several, have that name.
        """
        record = self._desk.record(name)
        old, trainable = self._desk.read(record)
        kept = rules.below([_prunable(record, old)], threshold)[0]
        self._desk.prune(record, kept, trainable)

    @_at_once
    def prune_smallest(
        self,
        sparsity: float,
        scope: str = "global",
        structured: bool = False,
        variables: Iterable[str] | None = None,
    ) -> None:
        """Prunes the smallest weights until a fraction of all is pruned.

        Args:
            sparsity: the fraction pruned afterwards, 0 up to below 1; what is pruned counts.
            scope: "global", the smallest of all variables together, or "layer", of each alone.
            structured: whole channels, by their norm; `sparsity` is a fraction of channels then.
            variables: names. None: all kernels. The largest of each always stays.

        Raises:
            InvalidArgument: a sparsity out of range, or another scope.
            UnknownName: a name that fits no variable, or several.
        """
        records = self._desk.prunable(variables)
        old = [self._desk.read(record) for record in records]
        weights = [_prunable(record, kept) for record, (kept, _) in zip(records, old, strict=True)]
        masks = rules.smallest(weights, sparsity, scope=scope, structured=structured)
        for record, (before, trainable), kept in zip(records, old, masks, strict=True):
            if (before != kept).any():
                self._desk.prune(record, kept, trainable)

    @_at_once
    def prune_blocks(self, name: str, nonzeros_per_block: int = 2, block_size: int = 4) -> None:
        """Prunes all but the N largest of every M weights in a row: N:M sparsity.

        Args:
            name: of the variable.
            nonzeros_per_block: N, how many stay.
            block_size: M. Blocks lie along the inputs that an output sums over.

        Raises:
            InvalidArgument: N isn't from 1 to M, or M doesn't divide the number of inputs.
            UnknownName: no variable, or several, have that name.
        """
        record = self._desk.record(name)
        old, trainable = self._desk.read(record)
        kept = rules.blocks([_prunable(record, old)], nonzeros_per_block, block_size)[0]
        self._desk.prune(record, kept, trainable)

    @_at_once
    def regrow(self, name: str, kept: Any = None, channels: Channels | None = None) -> None:
        """Lets pruned weights train again, from zero and with fresh optimizer slots.

        Args:
            name: of the variable.
            kept: 1 is kept from now on, 0 stays as it is. None, without channels: all.
            channels: numbers of whole channels to regrow instead.

        Raises:
            InvalidArgument: both are given, a wrong shape, or other values than 0 and 1.
            UnknownName: no variable, or several, have that name.
        """
        record = self._desk.record(name)
        mask = opened(record, kept, channels, "kept")
        old, trainable = self._desk.read(record)
        self._enforcing.clear_slots(record.found.variable, mask & ~old)
        self._desk.write(record, old | mask, trainable)

    @_at_once
    def freeze(self, name: str, trainable: Any = None, channels: Channels | None = None) -> None:
        """Freezes weights: holds them at their values of now.

        Args:
            name: of the variable.
            trainable: 1 trains on, 0 is frozen, shape of the variable, bool, int or float. What is
                frozen already stays so; what is pruned stays pruned.
            channels: numbers of whole channels to freeze instead. None of both: the whole variable.

        Raises:
            InvalidArgument: both are given, a wrong shape, other values than 0 and 1, or all that
                would be frozen is pruned.
            UnknownName: no variable, or several, have that name.
        """
        record = self._desk.record(name)
        if trainable is None and channels is None:
            mask = np.zeros(record.text.shape, bool)
        else:
            mask = mask_of(record, trainable, channels, "trainable")
        kept, old = self._desk.read(record)
        if not mask.all() and not (~mask & kept).any():
            raise InvalidArgument(
                f"Could not freeze {record.text.id!r}: expected weights that are kept, got "
                f"{int((~mask).sum())} that are all pruned, and so held at zero. Regrow them first."
            )
        self._desk.write(record, kept, old & (mask | ~kept))

    @_at_once
    def thaw(self, name: str, trainable: Any = None, channels: Channels | None = None) -> None:
        """Lets frozen weights train again.

        Args:
            name: of the variable.
            trainable: 1 trains from now on, 0 stays as it is. None, without channels: all.
            channels: numbers of whole channels to thaw instead.

        Raises:
            InvalidArgument: both are given, a wrong shape, or other values than 0 and 1.
            UnknownName: no variable, or several, have that name.
        """
        record = self._desk.record(name)
        mask = opened(record, trainable, channels, "trainable")
        kept, old = self._desk.read(record)
        self._desk.write(record, kept, old | mask)

    @_at_once
    def sparsity(self, name: str | None = None) -> float:
        """The share of pruned weights, 1 − mean(kept).

        Args:
            name: of one variable. None: of all kernels, and of what else has pruned weights.
        """
        return selection.sparsity(self._desk.read(record)[0] for record in self._desk.counted(name))

    @_at_once
    def zeros(self, name: str | None = None) -> float:
        """The measured share of weights that are exactly zero, to be seen beside `sparsity`.

        Args:
            name: as in `sparsity`.
        """
        counted = self._desk.counted(name)
        return selection.sparsity(record.found.variable.numpy() != 0 for record in counted)
