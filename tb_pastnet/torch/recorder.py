"""Records a module while a loop of the user's own trains it."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import torch

from tb_pastnet.core import arguments
from tb_pastnet.record.alerts import LOG, Wish
from tb_pastnet.record.audit.freeze_audit import Audit
from tb_pastnet.record.failures import Failures
from tb_pastnet.record.mask_tracker import MaskTracker
from tb_pastnet.record.masks.declared_masks import declare, declared_table
from tb_pastnet.record.overhead_timer import metered
from tb_pastnet.record.recording import EXIT_TIMEOUT
from tb_pastnet.record.scalars import LogFunction
from tb_pastnet.record.schedule import Schedule
from tb_pastnet.record.spread.gathering import check_alike
from tb_pastnet.record.spread.spread_recording import SpreadRecording
from tb_pastnet.record.weight import names_of
from tb_pastnet.torch.module_audit import audit_of
from tb_pastnet.torch.module_weights import AxisOverrides, network_of, spelled
from tb_pastnet.torch.optimizer_steps import OptimizerSteps, optimizers_in
from tb_pastnet.torch.pruned_masks import masks_in
from tb_pastnet.torch.spread_source import SpreadSource, measures_of
from tb_pastnet.torch.spread_weights import is_sharded
from tb_pastnet.torch.torch_source import TorchSource

Declared = Mapping[Any, Any]
"""By what a user calls weights: booleans for whole ones, or masks of 0 and 1 of their shape."""


@arguments.answered
class Recorder(SpreadRecording):
    """Records per channel how far a module is from its past values, into a log for the PastNet tab.

    After construction nothing here raises into training, waits for the disk, or changes a value:
    what fails is logged once per cause (logger `tb_pastnet`), counted, and shown in the tab. A
    record reads the weights in place on a CPU, and copies them to the host from an accelerator.

    A record at step s shows the state in which `record(s)` found the module. Steps that go back, as
    after restoring a checkpoint, start a new lineage, which replaces what was recorded from there
    on. Of several ranks that of number 0 writes. Under DistributedDataParallel a Recorder of the
    others only checks its arguments; where weights are spread over ranks, as by `fully_shard`, each
    measures its own rows: there make every call on all ranks.

    Args:
        logdir: the run's directory, of this machine or of a store such as "s3://bucket/runs/a", see
            `docs/how_to/stores.md`. "{trial}" in it is the number of a training: the next that is
            free.
        model: a torch.nn.Module; what DistributedDataParallel or `torch.compile` make of one has
            the names of the module inside.
        optimizer: the optimizer, or a list of several: the learning rates of their groups are
            recorded. None, or where another one takes over: those that are seen to make steps.
        every: a record is due where `step // every` grows, and at the first step; at the last one
            where `expect_end` tells it.
        past: what it is compared with: "previous" (one step before), "record" (the last record),
            "epoch" (the last call of `sync`), "initial" (the values now), or k (k steps before).
        variables: those to record, as keys of `state_dict`, names of the log, patterns such as
            `"*.weight"`, parameters or modules. None: all parameters and floating buffers.
        channel_axis: corrections of channel axes by name, for example `{"mix.weight": 1}`.
        initial_step: the step of the values now, above 0 where training goes on from a checkpoint.
            None: one less than the first step that is recorded.
        audit: whether each record compares weights that need no gradient bitwise with what they
            were when that was first seen. That takes one more copy of these weights.
        budget: a share of the training's time, such as 0.01: records that are due are left out so
            that recording takes no more. None: all are made. See `docs/benchmarks/overhead.md`.
        on_violation: what follows where held weights have moved: "log", a line for each variable
            and cause, or a function that gets a list of what is new, each with a `text`.
        follows: weights that something else than an optimizer moves on purpose, such as a target
            network, as names, patterns, modules or parameters.
        masks: what updates may change, by keys of `state_dict`, names, patterns or parameters: an
            array or tensor of 0 and 1 for the elements of a weight, False for all of it. Nothing
            here holds them: they are compared bitwise with what they were.
        kept: the same for pruning: 0 where weights should be zero, as behind `prune.remove`.
        log: a function that gets the numbers of each record and its step: `wandb.log` is one.
        exit_timeout: seconds that the end of the program waits for a store.

    Raises:
        InvalidArgument: the module has lazy or meta parameters, or some that can't be read rank by
            rank, nothing is left to record, `every`, `past`, an axis or `budget` can't be used, or
            ranks that share weights were given different arguments.
        UnknownName: a name fits no variable, or several.
        UnwritableLog: the log directory can't be made or written.

    Example:
        >>> import tempfile
        >>> model = torch.nn.Linear(2, 3)
        >>> optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        >>> with Recorder(tempfile.mkdtemp(), model, optimizer, every=1) as recorder:
        ...     for step in range(3):
        ...         model(torch.ones(4, 2)).sum().backward()
        ...         optimizer.step()
        ...         recorder.record(step)
        ...     recorder.flush()
        True
    """

    def __init__(
        self,
        logdir: str | os.PathLike[str],
        model: torch.nn.Module,
        optimizer: torch.optim.Optimizer | Sequence[torch.optim.Optimizer] | None = None,
        every: int = 10,
        past: str | int = "previous",
        variables: Iterable[Any] | None = None,
        channel_axis: AxisOverrides | None = None,
        initial_step: int | None = None,
        masks: Declared | None = None,
        kept: Declared | None = None,
        audit: bool = True,
        budget: float | None = None,
        on_violation: Wish = LOG,
        follows: Iterable[Any] = (),
        log: LogFunction | None = None,
        exit_timeout: float = EXIT_TIMEOUT,
    ) -> None:
        failures = Failures()
        schedule = Schedule(every, past, initial_step, budget)
        recorded = network_of(model, variables, channel_axis, follows)
        self._steps = OptimizerSteps(recorded.everything, optimizers_in(optimizer), failures)
        self._declared = declared_table(recorded.weights)
        self._names = names_of(recorded.everything)
        self._spread = None
        source: TorchSource
        audited: Audit | None = None
        if any(map(is_sharded, recorded.weights)):
            check_alike(budget, on_violation, masks, kept)
            own = Schedule(every, past, initial_step)
            spread = measures_of(model, recorded, self._steps, own, failures, audit=audit)
            self._spread, audited = spread, spread.audit
            source = SpreadSource(recorded, self._steps, spread)
            start = spread.agree(every, past, initial_step, audit)
        else:
            source = TorchSource(recorded, self._steps)
            self._declare(masks, kept)
            if audit and source.writes:
                audited = audit_of(recorded.weights, self._steps, failures, self._declared)
            start = recorded.origin() if source.writes else ""
        if names := self._steps.left_out(recorded.weights):
            failures.add(
                f"No optimizer trains {', '.join(map(repr, names[:3]))}, though requires_grad is "
                f"set: add it to a group, or freeze it"
            )
        table = masks_in(recorded.weights, self._declared)
        tracker = MaskTracker(recorded.weights, table, audited, lambda: start, failures)
        wishes = None, on_violation, log, exit_timeout
        super().__init__(logdir, source, schedule, tracker, failures, *wishes)
        self._steps.listen(self._see_before)

    def declare(self, masks: Declared | None = None, kept: Declared | None = None) -> None:
        """Says what is held from now on, where that changes while training goes on.

        Args:
            masks: as in the constructor; of other weights nothing changes.
            kept: as in the constructor; of other weights nothing changes.

        Raises:
            InvalidArgument: masks of another shape, or with other values than 0 and 1.
            UnknownName: a name fits no weight, or several.
        """
        if self._spread is not None:
            check_alike(None, None, masks, kept)
        self._declare(masks, kept)
        self.observe()

    def _declare(self, masks: Declared | None, kept: Declared | None) -> None:
        declare(self._declared, self._by_name(masks, "masks"), self._by_name(kept, "kept"))

    def _by_name(self, masks: Declared | None, argument: str) -> dict[str, Any]:
        return {
            name: mask.detach().cpu().numpy() if isinstance(mask, torch.Tensor) else mask
            for name, mask in self._names.keyed(spelled(masks), argument).items()
        }

    @metered("Could not see what is held")
    def _see_before(self, made: bool) -> None:
        # What was frozen since the last record, as long as it hasn't moved.
        if self._spread is not None and not made:
            self._spread.observe()
        elif not (made or self._idle):
            self._observe(quick=True)

    def follow(self, step: int) -> None:
        """See `Recording`. Calls between two updates, as GradScaler skips some, tell nothing."""
        if not self._steps.skipped():
            super().follow(step)

    def close(self, timeout: float | None = None) -> None:
        """Writes what waits and the final account. Also runs when the program ends.

        Args:
            timeout: seconds to wait at most. None: 2, and for a store `exit_timeout`.
        """
        self._steps.close()
        super().close(timeout)


def check_settings(shown: str, settings: Mapping[str, Any]) -> None:
    """Raises UnknownArgument where what a callback hands on isn't an argument of `Recorder`."""
    given_by_callbacks = ("logdir", "model", "optimizer", "initial_step")
    arguments.check(shown, settings, arguments.names_of(Recorder, without=given_by_callbacks))
