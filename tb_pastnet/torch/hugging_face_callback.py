"""Records a model that Hugging Face's `transformers.Trainer` trains."""

from __future__ import annotations

from typing import Any

from transformers import TrainerCallback

from tb_pastnet.core.arguments import answered
from tb_pastnet.torch.recording_callback import RecordingCallback


@answered
class HuggingFaceCallback(RecordingCallback, TrainerCallback):
    """Records a training of `transformers.Trainer`, by its `state.global_step`.

    A training that resumes from a checkpoint continues its log, too.

    Args:
        logdir: the run's directory, as for `Recorder`.
        every: like all other options, as for `Recorder`.
        on_violation: as for `Recorder`; with "stop" training ends after the step.

    Raises:
        InvalidArgument: an argument can't be used; what concerns the model is checked when training
            begins.

    Example:
        >>> callback = HuggingFaceCallback("runs/a", every=100)  # Trainer(callbacks=[callback])
        >>> callback.recorder is None  # until training begins
        True
    """

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
        self._begin(model, optimizer, state.global_step, state.max_steps)

    def on_step_end(self, args: Any, state: Any, control: Any, **_: object) -> None:
        """Makes a record if one is due."""
        control.should_training_stop |= self._record(state.global_step)

    def on_train_end(self, args: Any, state: Any, control: Any, **_: object) -> None:
        """Closes the log."""
        self._leave()
