"""Records a module that Lightning trains."""

from __future__ import annotations

from typing import Any

try:
    from lightning.pytorch import Callback
except ModuleNotFoundError:  # the package by its older name
    from pytorch_lightning import Callback

from tb_pastnet.core.arguments import answered
from tb_pastnet.torch.recording_callback import RecordingCallback


@answered
class LightningCallback(RecordingCallback, Callback):
    """Records a training of Lightning's Trainer, by its `global_step`, like its loggers.

    That is the number of all optimizers' steps: batches that only accumulate a gradient don't
    count. A training that resumes from a checkpoint continues its log, too.

    Args:
        logdir: the run's directory, as for `Recorder`.
        every: like all other options, as for `Recorder`.
        on_violation: as for `Recorder`; with "stop" training ends after the batch.

    Raises:
        InvalidArgument: an argument can't be used; what concerns the model is checked when training
            begins.

    Example:
        >>> callback = LightningCallback("runs/a", every=100)  # Trainer(callbacks=[callback])
        >>> callback.recorder is None  # until training begins
        True
    """

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        """Begins a log, or a new lineage."""
        end = trainer.estimated_stepping_batches
        self._begin(pl_module, trainer.optimizers, trainer.global_step, end)

    def on_train_batch_end(self, trainer: Any, *_: object) -> None:
        """Makes a record if one is due."""
        trainer.should_stop |= self._record(trainer.global_step)

    def on_exception(self, *_: object) -> None:
        """Closes the log, which doesn't say then that training has ended normally."""
        self._end()

    def teardown(self, *_: object, **__: object) -> None:
        """Closes the log."""
        self._leave()
