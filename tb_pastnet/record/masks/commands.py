"""The commands on masks: prune, regrow, freeze, thaw, and how sparse it became."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy.typing as npt

from tb_pastnet.core import rules, selection
from tb_pastnet.errors import InvalidArgument
from tb_pastnet.record.masks.editor import EditedWeight, MaskEditor

Channels = Sequence[int] | npt.ArrayLike


class MaskCommands:
    """The part of `Masks` that changes masks: looks names up, and does a command at once."""

    def __init__(self, editor: MaskEditor) -> None:
        self._editor = editor

    def prune(
        self, name: str, kept: npt.ArrayLike | None = None, channels: Channels | None = None
    ) -> None:
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
        with self._editor.at_once():
            weight = self._editor.weight(name)
            weight.prune(_asked(weight, kept, channels, "kept"))

    def prune_below(self, name: str, threshold: float) -> None:
        """Prunes the weights of a magnitude below a threshold; large negative ones stay.

        Args:
            name: of the variable.
            threshold: at least 0. NaN and infinite weights stay.

        Raises:
            InvalidArgument: no finite number from 0 on, or nothing of a kernel would stay.
            UnknownName: no variable, or several, have that name.
        """
        with self._editor.at_once():
            self._editor.weight(name).prune_below(threshold)

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
        options = {"scope": scope, "structured": structured}
        self._prune_by(rules.smallest, variables, sparsity, **options)

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
        with self._editor.at_once():
            self._editor.weight(name).prune_by(rules.blocks, nonzeros_per_block, block_size)

    def regrow(
        self, name: str, kept: npt.ArrayLike | None = None, channels: Channels | None = None
    ) -> None:
        """Lets pruned weights train again, from zero and with fresh optimizer slots.

        Args:
            name: of the variable.
            kept: 1 is kept from now on, 0 stays as it is. None, without channels: all.
            channels: numbers of whole channels to regrow instead.

        Raises:
            InvalidArgument: both are given, a wrong shape, or other values than 0 and 1.
            UnknownName: no variable, or several, have that name.
        """
        with self._editor.at_once():
            weight = self._editor.weight(name)
            weight.regrow(_through(weight, kept, channels, "kept"))

    def freeze(
        self, name: str, trainable: npt.ArrayLike | None = None, channels: Channels | None = None
    ) -> None:
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
        with self._editor.at_once():
            weight = self._editor.weight(name)
            everything = trainable is None and channels is None
            weight.freeze(None if everything else _asked(weight, trainable, channels, "trainable"))

    def thaw(
        self, name: str, trainable: npt.ArrayLike | None = None, channels: Channels | None = None
    ) -> None:
        """Lets frozen weights train again.

        Args:
            name: of the variable.
            trainable: 1 trains from now on, 0 stays as it is. None, without channels: all.
            channels: numbers of whole channels to thaw instead.

        Raises:
            InvalidArgument: both are given, a wrong shape, or other values than 0 and 1.
            UnknownName: no variable, or several, have that name.
        """
        with self._editor.at_once():
            weight = self._editor.weight(name)
            weight.thaw(_through(weight, trainable, channels, "trainable"))

    def sparsity(self, name: str | None = None) -> float:
        """The share of pruned weights, 1 − mean(kept).

        Args:
            name: of one variable. None: of all kernels, and of what else has pruned weights.
        """
        with self._editor.at_once():
            return selection.sparsity(weight.kept for weight in self._editor.counted(name))

    def zeros(self, name: str | None = None) -> float:
        """The measured share of weights that are exactly zero, to be seen beside `sparsity`.

        Args:
            name: as in `sparsity`.
        """
        with self._editor.at_once():
            counted = self._editor.counted(name)
            return selection.sparsity(weight.values() != 0 for weight in counted)

    def _prune_by(
        self,
        rule: rules.Rule,
        variables: Iterable[str] | None,
        *arguments: Any,
        **options: Any,
    ) -> None:
        """Prunes what a rule chooses of several weights together; None: of all kernels."""
        with self._editor.at_once():
            weights = self._editor.prunable(variables)
            masks = [weight.read() for weight in weights]
            prunable = [w.prunable(kept) for w, (kept, _) in zip(weights, masks, strict=True)]
            chosen = rule(prunable, *arguments, **options)
            for weight, (old, trainable), kept in zip(weights, masks, chosen, strict=True):
                if (old != kept).any():
                    weight.write_kept(kept, trainable)


def _asked(
    weight: EditedWeight, mask: npt.ArrayLike | None, channels: Channels | None, word: str
) -> Any:
    """The mask that is given, or that holds the channels whose numbers are.

    Raises:
        InvalidArgument: both or none are given, or a channel isn't one.
    """
    if (mask is None) == (channels is None):
        verb = "prune" if word == "kept" else "freeze"
        got = "none" if mask is None else "both"
        raise InvalidArgument(
            f"Could not {verb} {weight.label!r}: expected either {word}= or channels=, got {got}. "
            f"Give an array of 0 and 1, or numbers of channels."
        )
    if channels is None:
        return mask
    return selection.channel_mask(channels, weight.axis, weight.label)


def _through(
    weight: EditedWeight, mask: npt.ArrayLike | None, channels: Channels | None, word: str
) -> Any:
    """Where held elements go through again: everywhere, None, if neither is given."""
    if mask is None and channels is None:
        return None
    asked = _asked(weight, mask, channels, word)
    return asked if channels is None else ~asked
