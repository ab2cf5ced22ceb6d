"""Records a model while a loop of the user's own trains it."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

import keras

from tb_pastnet.core.arguments import answered
from tb_pastnet.keras.audit.model_audit import audit_of
from tb_pastnet.keras.keras_source import KerasSource
from tb_pastnet.keras.masks.carried import given_masks, left_behind, masks_in
from tb_pastnet.keras.masks.masks import Masks
from tb_pastnet.keras.measure.learning_rate import LearningRate
from tb_pastnet.keras.model.lora import with_effective
from tb_pastnet.keras.model.modules import find_variables
from tb_pastnet.keras.model.tf_weights import TFWeight
from tb_pastnet.keras.model.weights import AxisOverrides, network_of, shown
from tb_pastnet.keras.probe.probe import Probe
from tb_pastnet.keras.types import Model, Probed, RateSource
from tb_pastnet.record.alerts import LOG, Wish
from tb_pastnet.record.audit.freeze_audit import Audit
from tb_pastnet.record.failures import Failures
from tb_pastnet.record.mask_tracker import MaskTracker
from tb_pastnet.record.recording import EXIT_TIMEOUT, Recording
from tb_pastnet.record.scalars import LogFunction
from tb_pastnet.record.schedule import Schedule


@answered
class Recorder(Recording):
    """Records per channel how far a model is from its past values, into a log for the PastNet tab.

    After construction nothing here raises into training, waits for the disk, or changes a value:
    what fails is logged once per cause (logger `tb_pastnet`), counted, and shown in the tab.

    A record at step s shows the state in which `record(s)` found the model. Steps that go back, as
    after restoring a checkpoint, start a new lineage, which replaces what was recorded from there
    on.

    Under a MultiWorkerMirroredStrategy the chief writes. In other workers a Recorder only checks
    its arguments: it makes no directory and measures nothing. None ever waits for another worker.

    Args:
        logdir: the run's directory, of this machine or of a store such as "s3://bucket/runs/a", see
            `docs/how_to/stores.md`. "{trial}" in it is the number of a training, as in a tuner's
            `runs/{trial}`: the next that is free.
        model: a built keras.Model or layer, a tf.Module, or a mapping of names to variables.
        every: a record is due where `step // every` grows, and at the first step; at the last one
            where `expect_end` tells it.
        past: what it is compared with: "previous" (one step before), "record" (the last record),
            "epoch" (the last call of `sync`), "initial" (the values now), or k (k steps before).
        variables: those to record, as names, patterns such as `"*/kernel"`, or variables. None:
            all.
        channel_axis: corrections of channel axes by name, for example `{"mix/kernel": 0}`.
        learning_rate: a number, a variable, an optimizer or a list of them, a Keras schedule or a
            function. None: the optimizers that the model holds. Of several each weight has the rate
            of its own.
        initial_step: the step of the values now, above 0 where training goes on from a checkpoint.
            None: one less than the first step that is recorded.
        masks: of a mapping of variables; a Keras model or a tf.Module carries its own, which are
            found. Each change of them is recorded when it happens.
        audit: whether each record compares held weights bitwise with what they were when they were
            held, by masks or by `trainable=False`. That takes one more copy of these weights.
        probe: a fixed batch, or a tuple of arguments, to call the model with: each record also
            says how far its outputs, and those of its layers, are from those with the past values.
            See `docs/how_to/past_networks.md`. While a record is made this takes up to one more
            copy of the weights, and the time of two evaluations.
        probe_every: records from one evaluation of the probe to the next.
        budget: a share of the training's time, such as 0.01: records that are due are left out so
            that recording takes no more; they count as thinned. None: all are made. Changes of
            masks and the audit are never left out. See `docs/benchmarks/overhead.md`.
        on_violation: what follows where held weights have moved: "log", a line for each variable
            and cause, or a function that gets a list of what is new, each with a `text`.
        follows: weights that something else than an optimizer moves on purpose, such as a target
            network, as names, patterns, layers or variables. That they aren't trainable doesn't
            hold them: their channels are *following*, and no violation. Masks hold them as others.
        log: a function that gets the numbers of each record, a dictionary of floats by names such
            as "pastnet/frozen" and "pastnet/layers/conv1/delta", and its step: `wandb.log` is one.
        exit_timeout: seconds that the end of the program waits for a store; what isn't written by
            then is lost, and counted in a line. It doesn't wait for this machine's disk but for 2.

    Raises:
        InvalidArgument: the model isn't built, nothing is left to record, or `every`, `past`, an
            axis, the probe or `budget` can't be used.
        UnknownName: a name fits no variable, or several.
        UnsupportedBackend: Keras doesn't run on TensorFlow.
        UnwritableLog: the log directory can't be made or written.

    Example:
        >>> import tempfile, tensorflow as tf
        >>> weight = tf.Variable([[1.0, 2.0]])
        >>> with Recorder(tempfile.mkdtemp(), {"dense/kernel": weight}, every=1) as recorder:
        ...     for step in range(3):
        ...         _ = weight.assign_add([[0.1, 0.0]])
        ...         recorder.record(step)
        ...     recorder.flush()
        True
    """

    def __init__(
        self,
        logdir: str | os.PathLike[str],
        model: Model,
        every: int = 10,
        past: str | int = "previous",
        variables: Iterable[Any] | None = None,
        channel_axis: AxisOverrides | None = None,
        learning_rate: RateSource = None,
        initial_step: int | None = None,
        masks: Masks | None = None,
        audit: bool = True,
        probe: Probed = None,
        budget: float | None = None,
        on_violation: Wish = LOG,
        probe_every: int = 1,
        follows: Iterable[Any] = (),
        log: LogFunction | None = None,
        exit_timeout: float = EXIT_TIMEOUT,
    ) -> None:
        failures = Failures()
        schedule = Schedule(every, past, initial_step, budget, probe_every=probe_every)
        found = with_effective(find_variables(model))
        recorded = network_of(TFWeight, found, shown(model), variables, channel_axis, follows)
        compared = None if probe is None else Probe(model, recorded, probe)
        source = KerasSource(recorded, LearningRate(learning_rate, model), schedule.copies)
        weights = recorded.weights
        tables = masks_in(model, weights) if masks is None else given_masks(masks, weights)
        audited: Audit | None = None
        if audit:
            trains = isinstance(learning_rate, keras.optimizers.Optimizer)
            optimizer = learning_rate if trains else None
            audited = audit_of(model, recorded.weights, tables, optimizer, source.current)
        if names := left_behind(recorded.weights):
            failures.add(
                f"No masks hold {', '.join(map(repr, names[:3]))}, though masks of another model "
                f"prune the same weights: keras.models.clone_model and set_weights copy none"
            )
        start = recorded.origin()
        tracker = MaskTracker(recorded.weights, tables, audited, lambda: start, failures)
        told = compared, on_violation, log, exit_timeout
        super().__init__(logdir, source, schedule, tracker, failures, *told)
