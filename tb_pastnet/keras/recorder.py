"""Records a model in the user's own training loop."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any

import keras

from tb_pastnet.core.arguments import answered
from tb_pastnet.core.expected import Expect
from tb_pastnet.core.follow_pairs import Follows
from tb_pastnet.keras.audit.model_audit import audit_of
from tb_pastnet.keras.keras_source import KerasSource
from tb_pastnet.keras.masks.carried import given_masks, left_behind, masks_in
from tb_pastnet.keras.masks.masks import Masks
from tb_pastnet.keras.measure.learning_rate import LearningRate
from tb_pastnet.keras.model.tf_weights import TFWeight, find_variables, with_effective
from tb_pastnet.keras.model.weights import AxisOverrides, network_of, shown
from tb_pastnet.keras.probe.probe import Probe
from tb_pastnet.keras.types import Model, Probed, RateSource
from tb_pastnet.record.alerts import LOG, Wish
from tb_pastnet.record.audit.freeze_audit import Audit
from tb_pastnet.record.failures import Failures
from tb_pastnet.record.log_arguments import EXIT_TIMEOUT, check_logdir
from tb_pastnet.record.mask_tracker import MaskTracker
from tb_pastnet.record.options import PRINTS, Options
from tb_pastnet.record.recording import Recording
from tb_pastnet.record.resting import HeldChannels, Resting
from tb_pastnet.record.scalars import LogFunction


@answered
class Recorder(Recording):
    """Records per channel how far a model is from its past values, for the PastNet tab.

    After construction nothing here raises into training, waits for the disk, or changes a value:
    failures are logged once per cause (logger `tb_pastnet`), counted, and shown in the tab.

    A record at step s shows the state of the model at `record(s)`. Steps that go back, as after
    restoring a checkpoint, start a new lineage, which replaces the records from there on.

    Under a MultiWorkerMirroredStrategy the chief writes. In other workers a Recorder only checks
    its arguments: it makes no directory and measures nothing. No worker waits for another.

    Args:
        logdir: the run's directory, local or in a store such as "s3://bucket/runs/a", see
            https://tb-pastnet.github.io/tb_pastnet/how_to/stores.html. "{trial}" in it becomes the
            next free number of a training, as in a tuner's `runs/{trial}`.
        model: a built keras.Model or layer, a tf.Module, or a mapping of names to variables.
        every: a record is due when `step // every` grows, at the first step, and at the last if
            `expect_end` announces it.
        past: what weights are compared with: "previous" (one step before), "record" (the previous
            record), "epoch" (the last call of `sync`), "initial" (the current values), or k (k
            steps before).
        variables: the weights to record, as names, patterns such as `"*/kernel"`, or variables.
            None: all.
        channel_axis: corrections of channel axes by name, for example `{"mix/kernel": 0}`.
        learning_rate: a number, a variable, an optimizer or a list of them, a Keras schedule or a
            function. None: the optimizers that the model holds. With several, each weight has the
            rate of its own optimizer.
        masks: the `Masks` of a mapping of variables; those of a Keras model or tf.Module are found.
            Each change of them is recorded when it happens.
        follows: weights that are moved on purpose by anything but an optimizer, such as a target
            network, as names, patterns, layers or variables, or as a mapping from these to the
            weights that they follow. `trainable=False` doesn't hold them: their channels are
            *following*, not violations. Masks hold them like others.
        expect: what should happen to weights, by patterns of their names: "frozen", "trains" or
            "sparsity >= 0.8", for example `{"base.*": "frozen"}`. It is checked, not enforced: at
            the first record, when other weights are frozen, and at the end. What contradicts it is
            a finding, logged, and passed to `on_violation`. See
            https://tb-pastnet.github.io/tb_pastnet/how_to/verify_in_ci.html.
        config: hyperparameters to note in the log, a flat mapping such as `{"lr": 0.1, "seed": 7}`:
            `pastnet.read` and `report --json` give them back.
        audit: whether each record compares weights held by masks or `trainable=False` bitwise with
            what they were. By "values": a copy of them; by "fingerprints": 8 bytes per channel;
            True: by values up to 64 MiB. What masks hold is always compared by value.
        probe: a fixed batch, or a tuple of arguments, to call the model with: each record also has
            how far its outputs, and those of its layers, are from those with the past values. See
            https://tb-pastnet.github.io/tb_pastnet/how_to/past_networks.html. While a record is
            made this takes up to one more copy of the weights, and the time of two evaluations.
        probe_every: records from one evaluation of the probe to the next.
        budget: a limit of the recording overhead as a share of training, such as 0.01: due records
            beyond it are left out and count as thinned. None: no limit. Changes of masks and the
            audit are never left out. See
            https://tb-pastnet.github.io/tb_pastnet/benchmarks/overhead.html.
        on_violation: what to do when held weights have moved: "log", a line for each variable and
            cause, or a function that is called with a list of new violations, or of
            contradictions of `expect`, each with a `text`.
        log: a function that is called with the numbers of each record, a dictionary of floats by
            names such as "pastnet/frozen" and "pastnet/layers/conv1/delta", and its step, like
            `wandb.log`.
        initial_step: the step of the current values, above 0 if training resumes from a checkpoint.
            None: one less than the first call's step if that is 0 or 1; otherwise unknown, and a
            record that needs it has no delta.
        exit_timeout: seconds that the program waits at its end for a store; unwritten records are
            then lost, and logged. For a local disk it waits at most 2.

    Raises:
        InvalidArgument: the model isn't built, there is nothing to record, or `every`, `past`, an
            axis, the probe or `budget` is invalid.
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
        *,
        every: int = 10,
        past: str | int = "previous",
        variables: Iterable[Any] | None = None,
        channel_axis: AxisOverrides | None = None,
        learning_rate: RateSource = None,
        masks: Masks | None = None,
        follows: Follows = None,
        expect: Expect = None,
        config: Mapping[str, Any] | None = None,
        audit: bool | str = True,
        probe: Probed = None,
        probe_every: int = 1,
        budget: float | None = None,
        on_violation: Wish = LOG,
        log: LogFunction | None = None,
        initial_step: int | None = None,
        exit_timeout: float = EXIT_TIMEOUT,
    ) -> None:
        check_logdir(logdir)
        options, failures = Options.of(locals()), Failures()
        schedule = options.schedule()
        found = with_effective(find_variables(model))
        recorded = network_of(TFWeight, found, shown(model), variables, channel_axis, follows)
        compared = None if probe is None else Probe(model, recorded, probe)
        weights = recorded.weights
        resting = None
        if probe is None:  # which needs all past values
            resting = Resting.among(weights, HeldChannels(), always=options.audit == PRINTS)
        rate = LearningRate(learning_rate, model)
        source = KerasSource(recorded, rate, schedule.copies, resting=resting)
        tables = masks_in(model, weights) if masks is None else given_masks(masks, weights)
        audited: Audit | None = None
        if audit:
            trains = isinstance(learning_rate, keras.optimizers.Optimizer)
            optimizer = learning_rate if trains else None
            audited = audit_of(
                model, weights, tables, optimizer, source.current, audit, source.looks
            )
        if names := left_behind(recorded.weights):
            failures.add(
                f"No masks hold {', '.join(map(repr, names[:3]))}, though masks of another model "
                f"prune the same weights: keras.models.clone_model and set_weights don't copy masks"
            )
        start = recorded.origin(source.looks)
        tracker = MaskTracker(recorded.weights, tables, audited, lambda: start, failures)
        super().__init__(logdir, source, schedule, tracker, failures, options, compared)
        source.release()
