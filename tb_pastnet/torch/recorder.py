"""Records a module in the user's own training loop."""

from __future__ import annotations

import math
import os
import weakref
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import torch

from tb_pastnet.core.arguments import answered
from tb_pastnet.core.counted import named
from tb_pastnet.core.expected import Expect
from tb_pastnet.core.follow_pairs import Follows
from tb_pastnet.record.alerts import LOG, Wish
from tb_pastnet.record.audit.freeze_audit import Audit
from tb_pastnet.record.failures import LOGGER, Failures, noted
from tb_pastnet.record.log_arguments import EXIT_TIMEOUT, check_logdir
from tb_pastnet.record.mask_tracker import MaskTracker
from tb_pastnet.record.masks.declared_masks import declare, declared_table
from tb_pastnet.record.options import PRINTS, Options
from tb_pastnet.record.overhead_timer import RECORDS, metered
from tb_pastnet.record.recording import Recording
from tb_pastnet.record.resting import HeldChannels, Resting
from tb_pastnet.record.scalars import LogFunction
from tb_pastnet.record.schedule import Schedule
from tb_pastnet.record.spread.gathering import SpreadMeasures, check_alike
from tb_pastnet.record.weight import Network, names_of
from tb_pastnet.torch.between_calls import BetweenCalls
from tb_pastnet.torch.masks.given import origin_of
from tb_pastnet.torch.masks.torch_masks import Masks
from tb_pastnet.torch.module_audit import ModuleAudit
from tb_pastnet.torch.module_weights import (
    AxisOverrides,
    TorchWeight,
    mask_values,
    network_of,
    spelled,
)
from tb_pastnet.torch.optimizer_steps import OptimizerSteps, optimizers_in
from tb_pastnet.torch.pruned_masks import AuditedMasks, PrunedMasks
from tb_pastnet.torch.spread import SpreadSource, is_sharded, measures_of
from tb_pastnet.torch.torch_source import TorchSource

Optimizers: TypeAlias = "torch.optim.Optimizer | Sequence[torch.optim.Optimizer] | None"
Declared = Mapping[Any, Any]
"""By a user's name of a weight: a boolean for all of it, or a mask of 0 and 1 of its shape."""

_ANY_COUNTS = (
    "Counted each step of any of several optimizers as one of the training: name the one that "
    "counts, as in watch(model, logdir, optimizer)"
)
_NO_STEP = (
    "No record in %s: no optimizer that counts made a step while the module was watched. If your "
    "loop updates its weights by itself, make a pastnet.torch.Recorder and call record in the loop"
)


@answered
class Recorder(Recording):
    """Records per channel how far a module is from its past values, for the PastNet tab.

    After construction nothing here raises into training, waits for the disk, or changes a value:
    failures are logged once per cause (logger `tb_pastnet`), counted, and shown in the tab. A
    record reads the weights in place on a CPU, and copies them to the host from an accelerator.

    A record at step s shows the state of the module at `record(s)`. Steps that go back, as after
    restoring a checkpoint, start a new lineage, which replaces the records from there on. Only rank
    0 writes. Under DistributedDataParallel, a Recorder on the others only checks its arguments. If
    weights are spread over ranks, as by `fully_shard`, each measures its own rows: make every call
    on all ranks.

    Args:
        logdir: the run's directory, local or in a store such as "s3://bucket/runs/a", see
            https://tb-pastnet.github.io/tb_pastnet/how_to/stores.html. "{trial}" in it becomes the
            next free number of a training.
        model: a torch.nn.Module; one wrapped by DistributedDataParallel or `torch.compile` has the
            names of the module inside.
        optimizer: the optimizer, or a list of several: the learning rates of their groups are
            recorded. None, or if another one takes over: those that make steps.
        every: a record is due when `step // every` grows, at the first step, and at the last if
            `expect_end` announces it.
        past: what weights are compared with: "previous" (one step before), "record" (the previous
            record), "epoch" (the last call of `sync`), "initial" (the current values), or k (k
            steps before).
        variables: the weights to record, as keys of `state_dict`, names in the log, patterns such
            as `"*.weight"`, parameters or modules. None: all parameters and floating buffers.
        channel_axis: corrections of channel axes by name, for example `{"mix.weight": 1}`.
        trainable: what updates may change, by keys of `state_dict`, names, patterns or parameters:
            an array or tensor of 0 and 1 for the elements of a weight, False for all of it. Weights
            with 0 aren't held here: they are compared bitwise with their earlier values.
        kept: the same for pruning: 0 where weights should be zero, as after `prune.remove`.
        masks: the `Masks` of the module; those that it carries are found without.
        follows: weights that are moved on purpose by anything but an optimizer, such as a target
            network, as names, patterns, modules or parameters, or as a mapping from these to the
            weights that they follow.
        expect: what should happen to weights, by patterns of their names: "frozen", "trains" or
            "sparsity >= 0.8", for example `{"base.*": "frozen"}`. It is checked, not enforced: at
            the first record, when other weights are frozen, and at the end. What contradicts it is
            a finding, logged, and passed to `on_violation`. See
            https://tb-pastnet.github.io/tb_pastnet/how_to/verify_in_ci.html.
        config: hyperparameters to note in the log, a flat mapping such as `{"lr": 0.1, "seed": 7}`:
            `pastnet.read` and `report --json` give them back.
        audit: whether each record compares weights that need no gradient bitwise with what they
            were when that was first seen: by "values", a copy; by "fingerprints", 8 bytes per
            channel; or True, by values up to 64 MiB. See
            https://tb-pastnet.github.io/tb_pastnet/how_to/recording.html#a-frozen-base.
        budget: a limit of the recording overhead as a share of training, such as 0.01: due records
            beyond it are left out. None: no limit. See
            https://tb-pastnet.github.io/tb_pastnet/benchmarks/overhead.html.
        on_violation: what to do when held weights have moved: "log", a line for each variable and
            cause, or a function that is called with a list of new violations, or of
            contradictions of `expect`, each with a `text`.
        log: a function that is called with the numbers of each record and its step, like
            `wandb.log`.
        initial_step: the step of the current values, above 0 if training resumes from a checkpoint.
            None: one less than the first call's step if that is 0 or 1; otherwise by the updates
            since then, if these are one or more for each step.
        exit_timeout: seconds that the program waits at its end for a store.

    Raises:
        InvalidArgument: the module has lazy or meta parameters, or some that can't be read rank by
            rank, there is nothing to record, `every`, `past`, an axis or `budget` can't be used, or
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

    _spread: SpreadMeasures | None = None

    def __init__(
        self,
        logdir: str | os.PathLike[str],
        model: torch.nn.Module,
        optimizer: Optimizers = None,
        *,
        every: int = 10,
        past: str | int = "previous",
        variables: Iterable[Any] | None = None,
        channel_axis: AxisOverrides | None = None,
        trainable: Declared | None = None,
        kept: Declared | None = None,
        masks: Masks | None = None,
        follows: Follows = None,
        expect: Expect = None,
        config: Mapping[str, Any] | None = None,
        audit: bool | str = True,
        budget: float | None = None,
        on_violation: Wish = LOG,
        log: LogFunction | None = None,
        initial_step: int | None = None,
        exit_timeout: float = EXIT_TIMEOUT,
    ) -> None:
        check_logdir(logdir)
        options, failures = Options.of(locals()), Failures()
        recorded = network_of(model, variables, channel_axis, follows)
        spread = any(map(is_sharded, recorded.weights))
        # All ranks measure together, and only the first knows what is stored.
        schedule = options.schedule(measures_all=spread)
        self._steps = OptimizerSteps(recorded.everything, optimizers_in(optimizer), failures)
        self._declared = declared = declared_table(recorded.weights)
        self._names = names_of(recorded.everything)
        self._flags: ModuleAudit | None = None
        source: TorchSource
        audited: Audit | None = None
        if spread:
            check_alike(budget, on_violation, trainable, kept)
            source, audited, start = self._on_ranks(model, recorded, options, failures)
        else:
            self._declare(trainable, kept)
            source, audited = self._on_this_rank(recorded, schedule, options.audit, failures)
            start = recorded.origin(source.looks) if source.writes else ""
        self._note_untrained(recorded.weights, failures)
        start = origin_of(model, masks, recorded.weights) or start
        masked = PrunedMasks(recorded.weights, declared)
        tracker = MaskTracker(recorded.weights, masked.table, audited, lambda: start, failures)
        super().__init__(logdir, source, schedule, tracker, failures, options)
        source.release()
        self._watches = False  # whether it records by itself
        self._steps.timer = schedule.timer
        self._steps.listen(before=self._see_before)
        self._between = BetweenCalls(recorded.weights, self._steps)
        self._between.add(schedule, self._copy)
        if self._spread is not None:
            self._between.add(self._spread.schedule, self._spread.take)
        if source.writes or self._spread is not None:
            self._steps.expect(schedule.overdue, self._see_overdue)

    def _on_ranks(
        self,
        model: torch.nn.Module,
        recorded: Network[TorchWeight],
        options: Options,
        failures: Failures,
    ) -> tuple[TorchSource, Audit | None, str]:
        """The source, the audit, and the origin of weights of which each rank has a part."""
        given, audit = (options.every, options.past, options.initial_step), options.audit
        own = Schedule(*given, measures_all=True)
        held = AuditedMasks(recorded.weights, self._declared).now
        measures = measures_of(model, recorded, self._steps, own, failures, held, audit=audit)
        self._spread = measures
        audited = None if measures.audited is None else measures.audited.audit
        source = SpreadSource(recorded, self._steps, measures)
        return source, audited, measures.agree(*given, audit)

    def _on_this_rank(
        self,
        recorded: Network[TorchWeight],
        schedule: Schedule,
        audit: bool | str,
        failures: Failures,
    ) -> tuple[TorchSource, Audit | None]:
        """The source and the audit of weights of which this rank has all."""
        held = AuditedMasks(recorded.weights, self._declared)
        channels = HeldChannels(held)
        resting = Resting.among(recorded.weights, channels, always=audit == PRINTS)
        source = TorchSource(recorded, self._steps, schedule, resting)
        if not (audit and source.writes):
            return source, None
        observed = self._steps, failures, audit, source.looks
        self._flags = ModuleAudit(recorded.weights, *observed)
        return source, Audit(self._flags, held.now)

    def _note_untrained(self, weights: Iterable[TorchWeight], failures: Failures) -> None:
        if names := self._steps.left_out(weights):
            failures.add(
                f"No optimizer trains {named(names, 'weight')}, though requires_grad is set: add "
                f"{'it' if len(names) == 1 else 'them'} to a group, or freeze what shouldn't train"
            )

    @metered("Could not declare masks")
    def declare(self, *, trainable: Declared | None = None, kept: Declared | None = None) -> None:
        """Declares which weights are held from now on, if that changes during training.

        Args:
            trainable: as in the constructor; other weights stay as they are.
            kept: as in the constructor; other weights stay as they are.
        """
        if self._spread is not None:
            check_alike(None, None, trainable, kept)
        self._declare(trainable, kept)
        self.observe()

    def _declare(self, trainable: Declared | None, kept: Declared | None) -> None:
        updates = self._by_name(trainable, "trainable")
        declare(self._declared, updates, self._by_name(kept, "kept"))

    def _by_name(self, masks: Declared | None, argument: str) -> dict[str, Any]:
        return {
            name: mask_values(mask, name, argument) if isinstance(mask, torch.Tensor) else mask
            for name, mask in self._names.keyed(spelled(masks), argument).items()
        }

    def _see_before(self, optimizer: torch.optim.Optimizer) -> None:
        # Weights frozen since the last record, as long as they haven't moved. Observers of
        # masks hear of changes at once.
        flags = self._flags
        flagged = flags is not None and (
            flags.changed_of(optimizer) if self._steps.stepped else flags.changed
        )
        if flagged or self._between.waiting or self._spread is not None:
            self._look_before()

    @metered("Could not look at held weights")
    def _look_before(self) -> None:
        self._between.take()
        if self._spread is not None:
            self._spread.observe()
        elif self._flags is not None and not self._idle:
            self._observe(quick=True)

    @noted("Could not copy the past values")
    def _see_overdue(self) -> None:
        # Called after each step that no call of `record` followed.
        if not self._closed:
            self._between.prepare()

    def _next_step(self) -> int:
        """See `Recording`. `follow` leaves out calls that follow no update."""
        last = self._schedule.last
        return 1 if last is None else last + 1

    def _passed(self, step: int | None = None, *, flags: bool = True) -> bool:
        """See `Recording`."""
        steps, between = self._steps, self._between
        if not steps.stepped or between.waiting or self._spread is not None:
            return False
        last, made = self._schedule.last, steps.made
        steps.stepped, steps.made = False, 0
        try:
            # If hooks work, one of them looks at flags before the next update.
            return super()._passed(step, flags=flags and not steps.working)
        finally:
            if self._schedule.last == last:  # the updates are of a step that wasn't made
                steps.stepped, steps.made = True, made

    def follow(self, step: int) -> None:
        """See `Recording`. Calls without an update, as when GradScaler skips one, don't count."""
        step = int(step)
        if self._steps.skipped() and not (self.last_step is not None and step < self.last_step):
            self._stepless_calls += 1
            self._between.pause(step)
            return
        self._between.end()
        if self._spread is not None:
            with self._timer.part(RECORDS):
                self._spread.follow(step)
        super().follow(step)
        self._between.begin()

    # Other ranks wait for each of these calls.
    @metered("Could not copy the past values")
    def sync(self) -> None:
        """See `Recording`."""
        self._between.end()
        if self._spread is not None:
            self._spread.sync()
        super().sync()

    @metered("Could not begin a new lineage")
    def restart(self, initial_step: int) -> None:
        """See `Recording`."""
        if self._spread is not None:
            self._spread.restart(initial_step)
        super().restart(initial_step)
        self._between.begin()

    @noted("Could not note the last step")
    def expect_end(self, step: int) -> None:
        """See `Recording`."""
        if self._spread is not None:
            self._spread.expect_end(step)
        super().expect_end(step)

    @metered("Could not close the log")
    def close(self, timeout: float | None = None) -> None:
        """Records weights that changed after the last record, and writes what waits.

        When the program ends, waiting records are written, too.

        Args:
            timeout: seconds to wait at most. None: 2, and for a store `exit_timeout`.
        """
        self._steps.close()
        if self._watches and self.last_step is None and not self._idle:
            LOGGER.warning(_NO_STEP, self._lineage.run.run)
        super().close(timeout)
        if self._spread is not None:
            self._spread.leave()

    def _look_last(self) -> None:
        """See `Recording`. If ranks share weights, all of them would have to look."""
        if self._spread is None:
            self._between.take()
            self._between.end()
            super()._look_last()

    @noted("Could not follow the steps of an optimizer")
    def record_each_step(self, counted: Sequence[torch.optim.Optimizer] = ()) -> None:
        """Calls `record` by itself, after each step of some optimizers: see `pastnet.watch`.

        Args:
            counted: these; () are all that have a weight of the module.
        """
        own, steps, named = weakref.ref(self), weakref.WeakSet(counted), bool(counted)
        is_one = len(counted) == 1
        self._watches = True
        earlier: weakref.WeakSet[Any] = weakref.WeakSet()
        latest: list[int] = []

        def done(stepped: torch.optim.Optimizer) -> None:
            recorder = own()
            if recorder is None:
                return
            if stepped in steps or (not named and recorder._steps.trained_by(stepped)):
                recorder.record()
                # One that takes over from another is no reason to name one.
                if not is_one and latest != [id(stepped)]:
                    if stepped in earlier:
                        recorder._failures.add(_ANY_COUNTS)
                    earlier.add(stepped)
                    latest[:] = [id(stepped)]

        self._steps.done = done

    @noted("Could not follow the executions")
    def follow_executions(self) -> None:
        """See `Recording`: copies are taken at calls only."""
        super().follow_executions()
        self._steps.most = math.inf
