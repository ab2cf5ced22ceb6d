"""The commands on masks: prune, regrow, freeze, thaw, and the resulting sparsity."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from tb_pastnet.core import mask_input, pruning_rules
from tb_pastnet.core.arguments import answered
from tb_pastnet.core.html_table import html_table
from tb_pastnet.core.mask_input import Mask
from tb_pastnet.errors import InvalidArgument
from tb_pastnet.record.failures import LOGGER
from tb_pastnet.record.masks.chosen import is_pruned, rows_from
from tb_pastnet.record.masks.mask_table import MaskTable, MaskView
from tb_pastnet.record.masks.weight_masks import WeightMasks
from tb_pastnet.record.weight import Weight

Channels = Sequence[int] | npt.ArrayLike


class Enforcer(Protocol):
    """Puts changes of masks in force."""

    def enforce_now(self, masks: Any) -> None:
        """After a storage of masks has changed."""

    def clear_slots(self, variable: Any, where: Mask) -> None:
        """Resets the optimizer slots of some elements to their initial values."""


class MaskCommands:
    """The part of `Masks` that changes masks: it looks up names and runs a command at once.

    `refuse` raises if a framework can't hold a weight. `at_once` makes a context for a command in
    which nothing else changes variables.
    """

    still_statistics = (
        "Statistics move in training mode: set layer.trainable = False and compile again, or call "
        "the layer with training=False."
    )
    """What to do for statistics, which no mask holds: Keras's way; other frameworks have others."""

    def __init__(
        self,
        state: MaskTable,
        enforcer: Enforcer,
        refuse: Callable[[Any], None] | None = None,
        at_once: Callable[[], AbstractContextManager[Any]] = nullcontext,
    ) -> None:
        self.state = state
        self.kept = MaskView(state, 0)
        self.trainable = MaskView(state, 1)
        self._enforcer = enforcer
        self._refuse = refuse
        self._own_context = at_once
        self._due: list[tuple[str, Mask, Mask]] = []
        self._left_out: list[str] = []

    @contextmanager
    def _at_once(self) -> Iterator[None]:
        """A command: masks are written at its end, so a refusal of one weight changes none."""
        with self._own_context(), self.state.registry.together():
            self._due.clear()
            yield
            for name, kept, trainable in self._due:
                self.state.write(name, kept, trainable)
                self._enforcer.enforce_now(self.state.storage_for(name))

    @answered
    def prune(
        self, name: object, kept: npt.ArrayLike | None = None, channels: Channels | None = None
    ) -> None:
        """Prunes weights: sets them to zero and holds them there.

        Args:
            name: the variable's name, or an object that means it: see
                https://tb-pastnet.github.io/tb_pastnet/how_to/masks.html.
            kept: 1 stays, 0 is pruned, shape of the variable, bool, int or float. Pruned weights
                stay pruned.
            channels: numbers of whole channels to prune instead.

        Raises:
            InvalidArgument: both or none are given, a wrong shape, other values than 0 and 1, or
                nothing of a kernel would stay.
            UnknownName: no variable, or several, have that name.
        """
        self._change(EditedWeight.prune, name, kept, channels)

    @answered
    def prune_below(self, name: object, threshold: float) -> None:
        """Prunes the weights of a magnitude below a threshold; large negative ones stay.

        Args:
            name: the variable's name, or an object that means it: see
                https://tb-pastnet.github.io/tb_pastnet/how_to/masks.html.
            threshold: at least 0. NaN and infinite weights stay.

        Raises:
            InvalidArgument: not a finite number from 0 on, or nothing of a kernel would stay.
            UnknownName: no variable, or several, have that name.
        """
        with self._at_once():
            self._prune_each(self._prunable(name), pruning_rules.below, threshold)

    @answered
    def prune_smallest(
        self,
        sparsity: float,
        scope: str = "global",
        structured: bool = False,
        variables: object = None,
    ) -> None:
        """Prunes the smallest weights until a fraction of all is pruned.

        Args:
            sparsity: the fraction pruned afterwards, 0 up to below 1, including pruned weights.
            scope: "global", the smallest of all variables together, or "layer", of each separately.
            structured: whole channels, by their norm; `sparsity` is a fraction of channels then.
            variables: names. None: all kernels, except those of layers that own their masks, which
                are logged once. The largest of each always stays.

        Raises:
            InvalidArgument: a sparsity out of range, another scope, or nothing that these masks can
                prune.
            UnknownName: a name that fits no variable, or several.
        """
        options = {"scope": scope, "structured": structured}
        if not self._prune_by(pruning_rules.smallest, variables, sparsity, **options):
            self._warn_if_more(sparsity, structured, variables)

    @answered
    def prune_blocks(self, name: object, nonzeros_per_block: int = 2, block_size: int = 4) -> None:
        """Prunes all but the N largest of every M weights in a row: N:M sparsity.

        Args:
            name: the variable's name, or an object that means it: see
                https://tb-pastnet.github.io/tb_pastnet/how_to/masks.html.
            nonzeros_per_block: N, how many stay.
            block_size: M, how many a block has. Blocks run along the inputs that an output sums
                over.

        Raises:
            InvalidArgument: N isn't from 1 to M, or M doesn't divide the number of inputs.
            UnknownName: no variable, or several, have that name.
        """
        with self._at_once():
            weights = self._prunable(name)
            self._prune_each(weights, pruning_rules.blocks, nonzeros_per_block, block_size)

    @answered
    def regrow(
        self, name: object, kept: npt.ArrayLike | None = None, channels: Channels | None = None
    ) -> None:
        """Lets pruned weights train again, from zero and with fresh optimizer slots.

        Args:
            name: the variable's name, or an object that means it: see
                https://tb-pastnet.github.io/tb_pastnet/how_to/masks.html.
            kept: 1 is kept from now on, 0 stays as it is. None, without channels: all.
            channels: numbers of whole channels to regrow instead.

        Raises:
            InvalidArgument: both are given, a wrong shape, or other values than 0 and 1.
            UnknownName: no variable, or several, have that name.
        """
        self._change(EditedWeight.regrow, name, kept, channels)

    @answered
    def freeze(
        self, name: object, trainable: npt.ArrayLike | None = None, channels: Channels | None = None
    ) -> None:
        """Freezes weights at their current values.

        Args:
            name: the variable's name, or an object that means it: see
                https://tb-pastnet.github.io/tb_pastnet/how_to/masks.html.
            trainable: 1 keeps training, 0 is frozen, shape of the variable, bool, int or float.
                Frozen weights stay frozen, pruned ones pruned.
            channels: numbers of whole channels to freeze instead. If neither is given, the whole
                variable.

        Raises:
            InvalidArgument: both are given, a wrong shape, other values than 0 and 1, or all that
                would be frozen is pruned.
            UnknownName: no variable, or several, have that name.
        """
        self._change(EditedWeight.freeze, name, trainable, channels)

    @answered
    def freeze_rows(self, name: object, upto: int) -> None:
        """Freezes the first rows of weights, such as those of the tokens of a pretrained embedding.

        Args:
            name: the variable's name, or an object that means it: see
                https://tb-pastnet.github.io/tb_pastnet/how_to/masks.html.
            upto: how many rows of the first axis are frozen; those from this number on train.

        Raises:
            InvalidArgument: more rows than there are, or a number that isn't whole.
            UnknownName: no variable, or several, have that name.
        """
        with self._at_once():
            for weight in self._weights(name):
                weight.freeze(rows_from(upto, weight.axis.shape, weight.label))

    @answered
    def keep_zeros(self, name: object = None) -> dict[str, float]:
        """Prunes what is exactly zero now: training then keeps the zeros of a pruned model.

        Args:
            name: of variables. None: all kernels of which 5 to 99.9 % is zero, without those of
                adapters, whose zeros are a beginning.

        Returns:
            The pruned share by name, which is logged, too.

        Raises:
            UnknownName: no variable, or several, have that name.
        """
        with self._at_once():
            weights = self._prunable(name)
            zeros = {each.label: np.asarray(each.values()) == 0 for each in weights}
            shares = {label: float(zero.mean()) for label, zero in zeros.items()}
            taken = [w for w in weights if name is not None or is_pruned(w.label, shares[w.label])]
            for weight in taken:
                weight.prune(~zeros[weight.label])
        kept = {weight.label: shares[weight.label] for weight in taken}
        LOGGER.info("Keeps the zeros of %d weights: %s", len(kept), kept)
        return kept

    @answered
    def thaw(
        self, name: object, trainable: npt.ArrayLike | None = None, channels: Channels | None = None
    ) -> None:
        """Lets frozen weights train again.

        Args:
            name: the variable's name, or an object that means it: see
                https://tb-pastnet.github.io/tb_pastnet/how_to/masks.html.
            trainable: 1 trains from now on, 0 stays as it is. None, without channels: all.
            channels: numbers of whole channels to thaw instead.

        Raises:
            InvalidArgument: both are given, a wrong shape, or other values than 0 and 1.
            UnknownName: no variable, or several, have that name.
        """
        self._change(EditedWeight.thaw, name, trainable, channels)

    def sparsity(self, name: object = None) -> float:
        """The share of pruned weights, 1 − mean(kept).

        Args:
            name: of a variable. None: all kernels, including those of layers that own their masks,
                and other variables with pruned weights, as in the log.
        """
        with self._at_once():
            return mask_input.sparsity(weight.kept for weight in self._counted(name))

    def zeros(self, name: object = None) -> float:
        """The measured share of weights that are exactly zero, to compare with `sparsity`.

        Args:
            name: as in `sparsity`.
        """
        with self._at_once():
            counted = self._counted(name)
            return mask_input.sparsity(weight.values() != 0 for weight in counted)

    def __repr__(self) -> str:
        self.state.look()
        read = [self.state.read(name) for name in self.state.weights]
        frozen = sum(int((kept & ~trainable).sum()) for kept, trainable in read)
        return f"<Masks of {len(read):,} weights: {self.sparsity():.1%} pruned, {frozen:,} frozen>"

    def _repr_html_(self) -> str:
        title, rows = repr(self).strip("<>"), []
        for name, weight in self.state.weights.items():
            kept, trainable = self.state.read(name)
            pruned, frozen = int((~kept).sum()), int((kept & ~trainable).sum())
            if weight.role == "kernel" or pruned or frozen:
                share = f"{pruned / max(kept.size, 1):.1%}"
                rows.append((name, weight.shape, kept.size, share, pruned, frozen))
        head = "weight", "shape", "elements", "sparsity", "pruned", "frozen"
        return html_table(title, head, rows)

    def _change(
        self,
        command: Callable[[EditedWeight, Any], None],
        wanted: object,
        mask: npt.ArrayLike | None,
        channels: Channels | None,
    ) -> None:
        """Runs a command on each chosen weight."""
        with self._at_once():
            weights = self._weights(wanted, single=mask is not None)
            pairs = [(w, _mask_for(command.__name__, w, mask, channels)) for w in weights]
            if command is EditedWeight.freeze and mask is None:
                # A layer's weights that are all pruned are left out.
                left = [(w, o) for w, o in pairs if (w.kept if o is None else w.kept & ~o).any()]
                pairs = left or pairs
            for weight, own in pairs:
                command(weight, own)

    def _weights(self, wanted: object, *, single: bool = False) -> list[EditedWeight]:
        """The chosen weights; for layers, those that masks can hold; `single`: one mask."""
        self.state.look()
        names = self.state.names
        if single:
            return [self._edited(names.one(wanted))]
        listed = [self._edited(name) for name in names.all(wanted)]
        return [each for each in listed if not each.weight.statistic] or listed

    def _edited(self, name: str) -> EditedWeight:
        return EditedWeight(self, self.state.weights[name])

    def _prunable(self, wanted: object) -> list[EditedWeight]:
        """What a rule chooses from: for layers and patterns their kernels; None: all kernels.

        Those of layers that own their masks only if there are no others: masks refuse them.
        """
        self.state.look()
        groups = [list(self.state.weights)] if wanted is None else self.state.names.groups(wanted)
        weights: dict[str, EditedWeight] = {}
        for group in groups:
            every = list(map(self._edited, group))
            kernels = [each for each in every if each.role == "kernel"]
            free = [each for each in kernels if each.weight.masks() is None]
            fits = free or kernels or (every if wanted is not None else [])
            weights |= {each.label: each for each in fits}
        return list(weights.values())

    def _counted(self, wanted: object) -> list[EditedWeight]:
        """What sparsity is counted over: one weight, or all kernels and other pruned weights."""
        self.state.look()
        weights = list(map(self._edited, self.state.weights))
        if wanted is not None:
            weights = self._weights(wanted)
            if len(weights) == 1:
                return weights
        return [each for each in weights if each.role == "kernel" or not each.kept.all()]

    def _refuse_mask(self, weight: Weight) -> None:
        """Raises InvalidArgument if a mask would not hold what a layer computes with."""
        if weight.statistic:
            expected, got = "a weight that an optimizer trains", "a statistic that its layer writes"
            raise unmaskable(weight.name, expected, got, self.still_statistics)
        if weight.masks() is not None:
            expected, got = "a weight without masks", "one of a layer that owns its masks"
            raise unmaskable(weight.name, expected, got, "Call the layer's own prune and freeze.")
        if self._refuse is not None:
            self._refuse(weight)

    def _warn_if_more(self, sparsity: float, structured: bool, variables: object) -> None:
        """Warns that pruning doesn't regrow weights."""
        with self._at_once():
            weights = self._prunable(variables)
            rows = [w.axis.split(w.kept) if structured else w.kept.reshape(-1, 1) for w in weights]
        pruned = mask_input.sparsity(np.any(row, 1) for row in rows)
        # The share is rounded, for each variable if each is pruned separately.
        if pruned > sparsity + len(rows) / max(1, sum(map(len, rows))):
            LOGGER.warning(
                f"Could not prune to a sparsity of {sparsity:.1%}: expected less to be pruned, got "
                f"{pruned:.1%} already, and these stay. Regrow some of them first."
            )

    def _prune_by(
        self,
        rule: pruning_rules.Rule,
        variables: object,
        *arguments: Any,
        **options: Any,
    ) -> bool:
        """Prunes what a rule chooses from several weights together; None: from all kernels."""
        with self._at_once():
            weights = self._prunable(variables)
            if not weights:
                raise InvalidArgument(
                    "Could not prune by a rule: expected a kernel, got a model without any. Name "
                    "the weights by variables=."
                )
            for edited in weights:
                self._refuse_mask(edited.weight)
            if variables is None:
                self._warn_of_left_out()
            return self._prune_each(weights, rule, *arguments, **options)

    def _warn_of_left_out(self) -> None:
        """Warns once that layers prune some kernels themselves."""
        kernels = [each for each in self.state.weights.values() if each.role == "kernel"]
        left_out = [each.name for each in kernels if each.masks() is not None]
        if left_out and left_out != self._left_out:
            self._left_out = left_out
            LOGGER.warning(
                f"Could not prune {', '.join(map(repr, left_out[:2]))} with the other kernels: "
                f"expected weights without masks, got {len(left_out)} of layers that own their "
                f"masks. They count in sparsity(): call the layers' own prune, or pass variables=."
            )

    def _prune_each(
        self,
        weights: Sequence[EditedWeight],
        rule: pruning_rules.Rule,
        *arguments: Any,
        **options: Any,
    ) -> bool:
        """Prunes what a rule chooses; returns whether that changed any."""
        masks = [weight.read() for weight in weights]
        prunable = [w.prunable(kept) for w, (kept, _) in zip(weights, masks, strict=True)]
        chosen = rule(prunable, *arguments, **options)
        changed = False
        for weight, (old, trainable), kept in zip(weights, masks, chosen, strict=True):
            changed |= bool((old != kept).any())
            if not kept.all():
                # Even if none is new: pruned values may have been set by hand.
                weight.write_kept(kept, trainable)
        return changed


class EditedWeight(WeightMasks):
    """A weight of a model, with separate masks."""

    def __init__(self, masks: MaskCommands, weight: Weight) -> None:
        self.weight = weight
        self.label = weight.name
        self.role = weight.role
        self.axis = weight.axis
        self._masks = masks

    def read(self) -> tuple[Mask, Mask]:
        """See `WeightMasks`."""
        return self._masks.state.read(self.label)

    def values(self) -> pruning_rules.Values:
        """See `WeightMasks`."""
        values: pruning_rules.Values = self.weight.effective()
        return values

    def renew(self, elements: Mask) -> None:
        """See `WeightMasks`."""
        self._masks._enforcer.clear_slots(self.weight.variable, elements)

    def write(self, kept: Mask, trainable: Mask) -> None:
        """See `WeightMasks`."""
        if not (kept & trainable).all():
            self._masks._refuse_mask(self.weight)
        elif self.label not in self._masks.state.masked:
            return
        self._masks._due.append((self.label, kept, trainable))


def wrong_masks(doing: str, got: str) -> InvalidArgument:
    """The error of what a user gives as `masks=`, but isn't the masks of the network."""
    return InvalidArgument(
        f"Could not {doing}: expected masks= of the same network, got {got}. Make Masks of it."
    )


def unmaskable(name: str, expected: str, got: str, mend: str) -> InvalidArgument:
    """The error for a weight or layer that masks can't hold."""
    return InvalidArgument(f"Could not mask {name!r}: expected {expected}, got {got}. {mend}")


def _mask_for(
    command: str, weight: EditedWeight, mask: npt.ArrayLike | None, channels: Channels | None
) -> Any:
    """What a command gets: the given mask, or that of some channels; None for all elements."""
    if mask is None and channels is None and command != "prune":
        return None
    if (mask is None) == (channels is None):
        word = "kept" if command in ("prune", "regrow") else "trainable"
        got = "none" if mask is None else "both"
        raise InvalidArgument(
            f"Could not {command} {weight.label!r}: expected either {word}= or channels=, got "
            f"{got}. Pass an array of 0 and 1, or numbers of channels."
        )
    if channels is None:
        return mask
    through = mask_input.channel_mask(channels, weight.axis, weight.label)
    return ~through if command in ("regrow", "thaw") else through
