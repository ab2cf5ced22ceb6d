"""Records a module that Lightning trains."""

from __future__ import annotations

import math
import os
from typing import Any

try:
    from lightning.pytorch import Callback
except ModuleNotFoundError:  # the package by its older name
    from pytorch_lightning import Callback

from tb_pastnet.core.arguments import answered
from tb_pastnet.torch.recorder import Recorder, check_settings


@answered
class LightningCallback(Callback):
    """Records a training of Lightning's Trainer, by its `global_step`, like its loggers.

    That is the number of all optimizers' steps: batches that only accumulate a gradient don't
    count. A training that resumes from a checkpoint continues its log, too.

    Args:
        logdir: the run's directory, as for `Recorder`.
        settings: other arguments of `Recorder`, except model, optimizer and initial_step. With
            `on_violation="stop"` training ends after the batch.

    Raises:
        UnknownArgument: `Recorder` has no such argument.
        InvalidArgument: when training begins, as `Recorder` does.

    Example:
        >>> callback = LightningCallback("runs/a", every=100)  # Trainer(callbacks=[callback])
        >>> callback.recorder is None  # until training begins
        True
    """

    def __init__(self, logdir: str | os.PathLike[str], **settings: Any) -> None:
        super().__init__()
        self.recorder: Recorder | None = None
        check_settings("LightningCallback", settings)
        self._logdir, self._settings = logdir, settings

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        """Begins a log, or a new lineage."""
        step, optimizers = trainer.global_step, trainer.optimizers
        self.recorder = Recorder(
            self._logdir, pl_module, optimizers, initial_step=step, **self._settings
        )
        if math.isfinite(trainer.estimated_stepping_batches):
            self.recorder.expect_end(int(trainer.estimated_stepping_batches))

    def on_train_batch_end(self, trainer: Any, *_: object) -> None:
        """Makes a record if one is due."""
        if self.recorder is not None:
            self.recorder.record(trainer.global_step)
            trainer.should_stop = trainer.should_stop or self.recorder.alerts.stops

    def teardown(self, *_: object, **__: object) -> None:
        """Closes the log, even after an exception."""
        recorder, self.recorder = self.recorder, None
        if recorder is not None:
            recorder.close()
