"""The common part of callbacks of trainers for PyTorch."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping
from typing import Any

from tb_pastnet.core.arguments import names_of
from tb_pastnet.core.expected import Expect
from tb_pastnet.core.follow_pairs import Follows
from tb_pastnet.record.alerts import LOG, Wish
from tb_pastnet.record.log_arguments import EXIT_TIMEOUT, check_logdir
from tb_pastnet.record.options import TrainerOptions
from tb_pastnet.record.scalars import LogFunction
from tb_pastnet.torch.masks.torch_masks import Masks
from tb_pastnet.torch.module_weights import AxisOverrides
from tb_pastnet.torch.recorder import Declared, Recorder


class RecordingCallback:
    """Has a Recorder while a trainer trains.

    Attributes:
        recorder: the Recorder, None before training begins and after it has ended.
    """

    recorder: Recorder | None = None

    def __init__(
        self,
        logdir: str | os.PathLike[str],
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
        exit_timeout: float = EXIT_TIMEOUT,
    ) -> None:
        super().__init__()
        self._logdir = check_logdir(logdir)
        self._options = TrainerOptions.of(locals()).only(*names_of(type(self))[1:])

    def _begin(self, model: Any, optimizer: Any, step: int, end: float) -> None:
        self._end()  # of a training that was interrupted, so it is still within its loop
        self.recorder = Recorder(self._logdir, model, optimizer, initial_step=step, **self._options)
        self.recorder.ending.enter()
        self.recorder.follow_executions()
        if math.isfinite(end):
            self.recorder.expect_end(int(end))

    def _record(self, step: int) -> bool:
        """Makes a record if one is due; returns whether training should stop."""
        if self.recorder is None:
            return False
        self.recorder.record(step)
        return self.recorder.alerts.stops

    def _leave(self) -> None:
        """The trainer has ended its loop."""
        if self.recorder is not None:
            self.recorder.ending.leave()
        self._end()

    def _end(self) -> None:
        recorder, self.recorder = self.recorder, None
        if recorder is not None:
            recorder.close()
