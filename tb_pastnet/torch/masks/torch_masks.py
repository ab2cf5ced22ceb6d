"""Masks on the single weights of a torch module."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import nn

from tb_pastnet.core.arguments import answered
from tb_pastnet.core.mask_input import Mask
from tb_pastnet.core.pruning_rules import Values
from tb_pastnet.core.subject import TORCH, check_subject
from tb_pastnet.core.violation import Violation
from tb_pastnet.errors import InvalidArgument
from tb_pastnet.record.audit.freeze_audit import Audit
from tb_pastnet.record.failures import LOGGER, Failures
from tb_pastnet.record.masks import packed
from tb_pastnet.record.masks.commands import EditedWeight, MaskCommands, unmaskable
from tb_pastnet.record.masks.packed import Resumed
from tb_pastnet.record.masks.snapshots import WEIGHTS, Rewound, Snapshot
from tb_pastnet.record.masks.view_audit import ViewAudit
from tb_pastnet.torch.masks import rewinding
from tb_pastnet.torch.masks.averages import Follower
from tb_pastnet.torch.masks.held_places import HELD
from tb_pastnet.torch.masks.module_table import ModuleTable
from tb_pastnet.torch.masks.optimizer_slots import OptimizerSlots
from tb_pastnet.torch.masks.place_masks import whole_values
from tb_pastnet.torch.masks.rewinding import steps_of
from tb_pastnet.torch.masks.taking_over import taken_from_torch
from tb_pastnet.torch.module_audit import ModuleAudit
from tb_pastnet.torch.module_weights import TorchWeight, mask_values
from tb_pastnet.torch.optimizer_steps import OptimizerSteps

_SAVED = "masks"
"""The key of `state_dict`."""


class _EditedTensor(EditedWeight):
    def values(self) -> Values:
        """See `WeightMasks`. All ranks that share it have to call it."""
        weight: Any = self.weight
        values: Values = whole_values(weight.entry.stored)
        return values

    def _mask(self, mask: Any, word: str) -> Mask:
        tensor = isinstance(mask, torch.Tensor)
        return super()._mask(mask_values(mask, self.label, word) if tensor else mask, word)


@answered
class Masks(MaskCommands):
    """Prunes and freezes single weights, or whole channels, of a torch module.

    Every element of a parameter is free, frozen (held at its value) or pruned (held at zero), by
    two masks, in which 1 lets through: `kept` (0 = pruned) and `trainable` (0 = frozen). Frozen and
    pruned weights stay bit-identical in each step of every `torch.optim` optimizer, with its weight
    decay, momentum and clipping, on a CPU or an accelerator, and sharded by `fully_shard`. Their
    gradients are zero before clipping. See
    https://tb-pastnet.github.io/tb_pastnet/how_to/torch_masks.html.

    Masks belong to places of a module, not to tensor objects. They are saved in the metadata of
    `state_dict`, which plain torch ignores, and copied and pickled with the module. If ranks share
    weights, make them, and call what changes them, on each rank.

    Args:
        model: a torch.nn.Module. The masks that it already carries are used.
        optimizers: those that train it, whose slots `regrow` and `rewind` set. None: those that
            have made a step.
        enforce: False only declares the masks, for a Recorder and `audit`: no weight is written.

    Attributes:
        kept: the kept mask of each weight by name, bool arrays; a copy at each access.
        trainable: the trainable mask of each weight, copies as well. Pruned elements count as
            trainable.
        model: whose masks these are.
        state: the masks that a Recorder reads.

    Raises:
        InvalidArgument: the module can't be read, or an optimizer doesn't call the hooks of
            torch.optim.

    Example:
        >>> model = torch.nn.Linear(3, 2)
        >>> optimizer = torch.optim.AdamW(model.parameters(), weight_decay=0.1)
        >>> masks = Masks(model, optimizer)
        >>> masks.prune("weight", channels=[1])
        >>> model(torch.ones(4, 3)).sum().backward()
        >>> optimizer.step()
        >>> model.weight[1].tolist(), masks.sparsity()
        ([0.0, 0.0, 0.0], 0.5)
    """

    state: ModuleTable
    still_statistics = (
        "Statistics move in training mode: call eval() on their module, after each train() of the "
        "model."
    )

    def __init__(
        self, model: nn.Module, *optimizers: torch.optim.Optimizer, enforce: bool = True
    ) -> None:
        check_subject(model, TORCH, "hold the weights of")
        self.model, self._enforce = model, enforce
        self._optimizers = OptimizerSlots(optimizers, enforced=enforce)
        state = ModuleTable(model, enforced=enforce)
        if enforce:
            state.enforce()
        self._steps: list[OptimizerSteps] = []
        self._audit = ViewAudit(self._make_audit)
        self._resumed: Resumed | None = None
        super().__init__(state, self._optimizers, _refuse)

    def __reduce__(self) -> tuple[Any, ...]:
        """A copy or pickle is of the model, with its own masks."""
        return _of_copy, (self.model, self._optimizers.given, self._enforce)

    def close(self) -> None:
        """Ends the masks: nothing is held any more, and no hook is left."""
        self._audit.close()
        for steps in self._steps:
            steps.close()
        for follower in [each for each in HELD.followers if each.is_of(self.model)]:
            follower.close()
        self.state.close()

    def audit(self, step: int | None = None) -> list[Violation]:
        """Compares held weights bitwise with the values at which they were held.

        A Recorder does so at each record; this is for training without one. The first call, best
        made before training, starts collecting the facts from which later calls find causes.

        Args:
            step: of the training, for the report. None: the steps of the optimizer.

        Returns:
            All violations so far, by their first step: variable, channel, how many elements, how
            far, and the likely cause.

        Raises:
            InvalidArgument: ranks share weights.
        """
        rewinding.refuse_spread(self.state, "audit")
        if step is None:
            step = max(map(steps_of, self._trainers()), default=0)
        self.state.look()
        return self._audit.check(self.state.weights, step)

    def snapshot(self) -> Snapshot:
        """Copies weights, statistics and the optimizers' state to the host, to rewind to.

        Raises:
            InvalidArgument: ranks share weights, or an optimizer keeps what can't be stored.
        """
        return rewinding.take(self.state, self._trainers())

    def rewind(self, snapshot: Snapshot, what: str = WEIGHTS) -> Rewound:
        """Goes back to a snapshot, with the current masks.

        "weights" (Frankle et al., 1903.01611): remaining weights are bit-identical to those of the
        snapshot; pruned ones stay zero and frozen ones at their values. Statistics such as those of
        BatchNorm go back as well, and so do the slots and learning rates of the optimizers. Slots
        of pruned weights get their initial values, and so do all slots of an optimizer of another
        class.

        "learning_rate" (Renda et al., 2003.02389): only the optimizers' steps and learning rates go
        back; weights, statistics and slots stay.

        A scheduler of learning rates counts by itself: set it back by its own `load_state_dict`.

        Args:
            snapshot: from `snapshot()`, of a module of the same structure.
            what: "weights" or "learning_rate".

        Returns:
            What was set back.

        Raises:
            InvalidArgument: the snapshot is of another model, or `what` is invalid.
        """
        rewound = rewinding.rewind(self.state, self._trainers(), snapshot, what)
        if what == WEIGHTS:
            for name in self.state.masked:
                self._optimizers.clear_slots(self.state.weights[name].entry, ~self.kept[name])
        return rewound

    def state_dict(self) -> dict[str, torch.Tensor]:
        """The masks, as bits, for a file next to one without room for them, as of safetensors.

        With checksums of held values, by which `load_state_dict` finds those that differ. If ranks
        share weights, all of them have to call it.
        """
        self.state.look()
        saved = {name: place.saved() for name, place in self.state.masked.items()}
        data = packed.save(self.state.origin, saved)
        return {_SAVED: torch.from_numpy(np.frombuffer(data, np.uint8).copy())}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> Resumed:
        """Sets the masks that `state_dict` returned, and holds the current values.

        Load the weights before.

        Args:
            state_dict: from `state_dict()`, of a module of the same structure.

        Returns:
            Which masks and held values are as saved. It is logged, too.

        Raises:
            InvalidArgument: it is damaged, or of another module.
        """
        data = state_dict.get(_SAVED)
        if not isinstance(data, torch.Tensor):
            raise InvalidArgument(
                f"Could not load masks: expected a state_dict of Masks, got one without "
                f"{_SAVED!r}. Pass what masks.state_dict() returned."
            )
        table, source = self.state, "masks.load_state_dict"
        table.look()
        content = data.detach().cpu().numpy().tobytes()
        origin, loaded = packed.load(content, table.bounds, table.check_fits, source)
        table.origin = origin or table.origin
        self._resumed = table.take(loaded)
        LOGGER.info("%s", self._resumed)
        return self._resumed

    @property
    def resumed(self) -> Resumed | None:
        """Which masks and held values match those saved; None if nothing was loaded."""
        sums = {name: each.sums for name, each in self.state.masked.items() if each.sums}
        return Resumed.of(sums) if sums else self._resumed

    def take_over(self) -> dict[str, float]:
        """Makes masks of those of `torch.nn.utils.prune` and of FakeSparsity of `torch.ao.pruning`.

        The parameters stay the same objects, under their own names, so an optimizer keeps them.

        Returns:
            The pruned share of each weight that was taken over, by name.

        Raises:
            InvalidArgument: a weight has other parametrizations than FakeSparsity.
        """
        pruned = taken_from_torch(self.model)
        self.state.look()
        shares: dict[str, float] = {}
        with self._at_once():
            for name, weight in self.state.weights.items():
                kept = pruned.get((id(weight.entry.owner), weight.entry.key))
                if kept is not None:
                    self._edited(name).prune(kept)
                    shares[name] = 1 - float(kept.mean())
        return shares

    def follow(self, averaged: nn.Module) -> None:
        """Holds the same elements at the same values in an average of the weights.

        They are put in before the average is called or saved, and after each step: an average of a
        held value may be another one.

        Args:
            averaged: a module with the same weights, such as torch.optim.swa_utils.AveragedModel.

        Raises:
            InvalidArgument: it doesn't have the weights that are masked.
        """
        Follower(self.state, averaged)  # hooks of the average keep it

    def _trainers(self) -> list[torch.optim.Optimizer]:
        self.state.look()
        return self._optimizers.of(each.entry.stored for each in self.state.weights.values())

    def _make_audit(self, weights: Sequence[Any]) -> Audit:
        self._steps.append(OptimizerSteps(weights, self._trainers(), Failures()))
        flags = ModuleAudit(weights, self._steps[-1], Failures())
        return Audit(flags, lambda: self.state)

    def _edited(self, name: str) -> EditedWeight:
        return _EditedTensor(self, self.state.weights[name])


def _of_copy(model: nn.Module, optimizers: Sequence[Any], enforce: bool) -> Masks:
    return Masks(model, *optimizers, enforce=enforce)


def _refuse(weight: TorchWeight) -> None:
    """Raises InvalidArgument if masks can't hold a weight."""
    entry = weight.entry
    if entry.mask is not None:
        expected, got = "a parameter", "one that torch prunes"
        raise unmaskable(weight.name, expected, got, "Call masks.take_over() first.")
    if entry.computed:
        expected, got = "a parameter", "one that a parametrization computes"
        mend = f"Mask what it is computed from, below {entry.layer}/parametrizations."
        raise unmaskable(weight.name, expected, got, mend)
