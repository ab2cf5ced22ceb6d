"""Records a model during Keras's `fit`."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import keras

from tb_pastnet.core.arguments import answered, names_of
from tb_pastnet.core.expected import Expect
from tb_pastnet.core.follow_pairs import Follows
from tb_pastnet.errors import PastNetError
from tb_pastnet.keras.model.walk import is_ready
from tb_pastnet.keras.model.weights import AxisOverrides
from tb_pastnet.keras.steps import CountingCallback
from tb_pastnet.keras.types import Probed, RateSource
from tb_pastnet.keras.variable_recorder import VariableRecorder
from tb_pastnet.record.alerts import LOG, Wish
from tb_pastnet.record.failures import Failures, noted
from tb_pastnet.record.log_arguments import EXIT_TIMEOUT, check_logdir
from tb_pastnet.record.options import TrainerOptions
from tb_pastnet.record.overhead_timer import OverheadTimer, metered
from tb_pastnet.record.recording import Recording
from tb_pastnet.record.scalars import LogFunction


@answered
class PastNetCallback(CountingCallback):
    """Records per channel how far the model is from its past values, for the PastNet tab.

    Losses and weights are bit-identical with and without it, even with `steps_per_execution`,
    `jit_compile`, mixed precision and gradient accumulation. Under `steps_per_execution=k` it can
    record every k-th step. Steps are the optimizer's, counted in batches, so a resumed training
    continues where it stopped. One callback may serve several calls of `fit`; steps also continue
    after a new `compile` in between, for example after changing `trainable`.

    Args:
        logdir: the run's directory, local or in a store such as "s3://bucket/runs/a", see
            https://tb-pastnet.github.io/tb_pastnet/how_to/stores.html. "{trial}" in it becomes the
            next free number of a training, as in a tuner's `runs/{trial}`.
        every: a record is due when `step // every` grows, at the first step, and at the last step
            of a `fit` with a known number of batches.
        past: what weights are compared with, as for `Recorder`: "previous" is one execution before,
            "epoch" the end of the last epoch, "initial" the beginning of training.
        variables: the weights to record, as names, patterns such as `"*/kernel"`, or variables.
            None: all.
        channel_axis: corrections of channel axes by name, for example `{"mix/kernel": 0}`.
        learning_rate: the learning rate to record; None: the optimizer's.
        follows: weights that anything but the optimizer moves on purpose, such as a target network,
            as for `Recorder`.
        expect: what should happen to weights, such as `{"base.*": "frozen"}`, as for `Recorder`.
        config: hyperparameters to note in the log, a flat mapping such as `{"lr": 0.1, "seed": 7}`:
            `pastnet.read` and `report --json` give them back.
        audit: whether each record compares weights held by `pastnet.Masks` or `trainable=False`
            bitwise with what they were. By "values": a copy of them; by "fingerprints": 8 bytes per
            channel; True: by values up to 64 MiB. What masks hold is always compared by value.
        probe: a fixed batch on which to compare outputs with past ones, as for `Recorder`.
        probe_every: records from one evaluation of the probe to the next.
        budget: a limit of the recording overhead as a share of training, as for `Recorder`.
        on_violation: "log" or a function, as for `Recorder`, or "stop": `fit` ends after the batch.
        log: a function that is called with the numbers of each record and its step, as for
            `Recorder`.
        exit_timeout: seconds that the program waits at its end for a store, as for `Recorder`.

    Raises:
        InvalidArgument: `logdir`, `every`, `past` or `budget` is invalid. Settings that concern the
            model are checked, and raise as in `Recorder`, when `fit` begins.

    Example:
        >>> import tempfile, numpy as np
        >>> model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
        >>> model.compile("sgd", "mse")
        >>> callback = PastNetCallback(tempfile.mkdtemp(), every=1)
        >>> history = model.fit(np.ones((4, 2)), np.ones(4), verbose=0, callbacks=[callback])
        >>> callback.recorder.last_step
        1
        >>> callback.close()
    """

    def __init__(
        self,
        logdir: str | os.PathLike[str],
        *,
        every: int = 10,
        past: str | int = "previous",
        variables: Iterable[Any] | None = None,
        channel_axis: AxisOverrides | None = None,
        learning_rate: RateSource = None,
        follows: Follows = None,
        expect: Expect = None,
        config: Mapping[str, Any] | None = None,
        audit: bool | str = True,
        probe: Probed = None,
        probe_every: int = 1,
        budget: float | None = None,
        on_violation: Wish = LOG,
        log: LogFunction | None = None,
        exit_timeout: float = EXIT_TIMEOUT,
    ) -> None:
        super().__init__()
        self._logdir = check_logdir(logdir)
        self._options = TrainerOptions.of(locals())
        self.recorder: Recording | None = None
        self._recorded: Any = None
        self._weights: list[int] = []
        self._fits = False  # between the calls of Keras at the beginning and the end of `fit`
        self._remaining: int | None = None
        self._uncounted = 0
        self._early = Failures()
        self._timer: OverheadTimer | None = None

    @noted("Could not note the beginning of `fit`")
    def on_train_begin(self, logs: Mapping[str, float] | None = None) -> None:
        """Waits for the first batch: a callback after this one may still restore a backup."""
        super().on_train_begin(logs)
        self._fits = True
        # Another model's recorder is closed at the first batch, as its own `fit` has ended.
        if self.recorder is not None and self._records(self._trained):
            self.recorder.ending.enter()

    def _begin_fit(self) -> None:
        wrong = self._begin_log()
        if wrong is not None:
            raise wrong

    @noted("Could not begin to record")
    def _begin_log(self) -> PastNetError | None:
        """Begins; returns an error in the settings, for the user."""
        if self.recorder is not None and not self._records(self._trained):
            self.close()
        moved = self._count.begin(self._trained, going_on=self.recorder is not None)
        if self.recorder is not None:
            if moved or self.recorder.has_ended:
                self.recorder.restart(self._count.step)
        elif is_ready(self._trained):
            try:
                self._start()
            except PastNetError as error:
                return error
        return None

    @metered("Could not look at held weights")
    def on_epoch_begin(self, epoch: int, logs: Mapping[str, float] | None = None) -> None:
        """Looks at held weights before the next step; within an epoch each record call does."""
        fit = self.params or {}  # a user's own loop may pass none
        self._remaining = fit.get("steps") if epoch + 1 == fit.get("epochs") else None
        if self.recorder is not None:
            self.recorder.observe()

    @noted("Could not make a record")
    def _begin_execution(self) -> None:
        if self._remaining is not None and self.recorder is not None:
            self.recorder.expect_end(self._count.step + self._remaining)
            self._remaining = None
        if isinstance(self.recorder, VariableRecorder):
            self.recorder.expect_update()

    @metered("Could not make a record")
    def on_train_batch_end(self, batch: int, logs: Mapping[str, float] | None = None) -> None:
        """Counts steps, and makes a record if one is due."""
        # Those that couldn't be counted are counted with the next ones.
        self._uncounted += batch - self._first + 1
        step = self._count.advance(self._trained, self._uncounted)
        self._uncounted = 0
        if self.recorder is None:
            self._start_late()
        else:
            self.recorder.record(step)
            if self.recorder.alerts.stops:
                self._trained.stop_training = True

    @metered("Could not copy the past values")
    def on_epoch_end(self, epoch: int, logs: Mapping[str, float] | None = None) -> None:
        """Copies the past values if they are those of an epoch."""
        if self.recorder is not None and self._options.past == "epoch":
            self.recorder.sync()

    @metered("Could not write records")
    def on_train_end(self, logs: Mapping[str, float] | None = None) -> None:
        """Records what changed after the last record, as by averages, and prints the summary.

        Another `fit` may continue.
        """
        self._fits = False
        if self.recorder is not None:
            self.recorder.ending.leave()
        self._catch_up()
        self._count.rest(self._trained)
        if self.recorder is not None:
            self.recorder.flush(timeout=2.0, closed=True)
            line = self.recorder.summary if self.recorder.records else ""
            self.recorder.reported = True  # or `fit` is asked to be quiet
            if line and (self.params or {}).get("verbose"):
                print(line)  # noqa: T201 - as `fit` prints

    @noted("Could not make a record")
    def _catch_up(self) -> None:
        """Counts the last step, if the call for it has failed: the end has its values."""
        if self._uncounted:
            batches, self._uncounted = self._uncounted, 0
            self._count.advance(self._trained, batches)
        recorder, step = self.recorder, self._count.step
        if recorder is not None and recorder.last_step is not None and recorder.last_step < step:
            recorder.record(step)

    @noted("Could not close the log")
    def close(self) -> None:
        """Closes the log. It also closes when the program ends."""
        recorder, self.recorder, self._timer = self.recorder, None, None
        if recorder is not None:
            recorder.close()

    @property
    def _failures(self) -> Failures:
        """Failures are shown in the tab, if there is a log."""
        return self._early if self.recorder is None else self.recorder.notes

    @property
    def _trained(self) -> Any:
        """The model; on JAX, `model` would put all values back into it."""
        return self._model if keras.backend.backend() == "jax" else self.model

    def _records(self, model: Any) -> bool:
        """Whether it is the recorded one, with the weights that it had: a layer may be replaced."""
        # The recorder holds them, so no other weight has their ids.
        return self._recorded is model and self._weights == list(map(id, model.weights))

    def _start(self) -> None:
        self._recorded = model = self._trained
        self._weights = list(map(id, model.weights))
        options = replace(self._options, initial_step=self._count.step)
        if keras.backend.backend() == "tensorflow":
            from tb_pastnet.keras.recorder import Recorder

            self.recorder = Recorder(self._logdir, model, **options.only(*names_of(Recorder)[2:]))
        else:
            self.recorder = VariableRecorder(self._logdir, model, options)
            self._count.steps_of = self.recorder.steps_of
        if self._fits:
            self.recorder.ending.enter()
        self.recorder.follow_executions()
        self._timer = self.recorder.meter

    @noted("Could not record the model")
    def _start_late(self) -> None:
        # Training is running, so nothing may raise any more.
        if self._recorded is not self._trained:
            self._start()
