"""The common part of callbacks of trainers for PyTorch."""

from __future__ import annotations

import math
from typing import Any

from tb_pastnet.core.arguments import names_of
from tb_pastnet.record.log_arguments import check_logdir
from tb_pastnet.record.options import Options
from tb_pastnet.torch.recorder import Recorder


class TrainerCallback:
    """Has a Recorder while a trainer trains.

    Attributes:
        recorder: the Recorder, None before training begins and after it has ended.
    """

    recorder: Recorder | None = None

    def _keep(self, given: dict[str, Any]) -> None:
        """Checks what a user gave, before training begins."""
        self._logdir = check_logdir(given["logdir"])
        self._options = Options.of(given).only(*names_of(type(self))[1:])

    def _begin(self, model: Any, optimizer: Any, step: int, end: float) -> None:
        self._end()  # of a training that was interrupted
        self.recorder = Recorder(self._logdir, model, optimizer, initial_step=step, **self._options)
        self.recorder.follow_executions()
        if math.isfinite(end):
            self.recorder.expect_end(int(end))

    def _record(self, step: int) -> bool:
        """Makes a record if one is due; returns whether training should stop."""
        if self.recorder is None:
            return False
        self.recorder.record(step)
        return self.recorder.alerts.stops

    def _end(self) -> None:
        recorder, self.recorder = self.recorder, None
        if recorder is not None:
            recorder.close()
