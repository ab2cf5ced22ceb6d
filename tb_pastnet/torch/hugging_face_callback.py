"""Records a model that Hugging Face's `transformers.Trainer` trains."""

from __future__ import annotations

import os
from typing import Any

from transformers import TrainerCallback

from tb_pastnet.core.arguments import answered
from tb_pastnet.torch.recorder import Recorder, check_settings


@answered
class HuggingFaceCallback(TrainerCallback):
    """Records a training of `transformers.Trainer`, by its `state.global_step`.

    A training that resumes from a checkpoint continues its log, too.

    Args:
        logdir: the run's directory, as for `Recorder`.
        settings: other arguments of `Recorder`, except model, optimizer and initial_step. With
            `on_violation="stop"` training ends after the step.

    Raises:
        UnknownArgument: `Recorder` has no such argument.
        InvalidArgument: when training begins, as `Recorder` does.

    Example:
        >>> callback = HuggingFaceCallback("runs/a", every=100)  # Trainer(callbacks=[callback])
        >>> callback.recorder is None  # until training begins
        True
    """

    def __init__(self, logdir: str | os.PathLike[str], **settings: Any) -> None:
        self.recorder: Recorder | None = None
        check_settings("HuggingFaceCallback", settings)
        self._logdir, self._settings = logdir, settings

    def on_train_begin(
        self,
        args: Any,
        state: Any,
        control: Any,
        model: Any = None,
        optimizer: Any = None,
        **_: object,
    ) -> None:
        """Begins a log, or a new lineage."""
        self.on_train_end(args, state, control)  # of a training that was interrupted
        step = state.global_step
        self.recorder = Recorder(
            self._logdir, model, optimizer, initial_step=step, **self._settings
        )
        self.recorder.expect_end(state.max_steps)

    def on_step_end(self, args: Any, state: Any, control: Any, **_: object) -> None:
        """Makes a record if one is due."""
        if self.recorder is not None:
            self.recorder.record(state.global_step)
            control.should_training_stop |= self.recorder.alerts.stops

    def on_train_end(self, args: Any, state: Any, control: Any, **_: object) -> None:
        """Closes the log."""
        recorder, self.recorder = self.recorder, None
        if recorder is not None:
            recorder.close()
