"""A record: what was measured at a step, before it is quantised and packed."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from tb_pastnet.core.statistics import KEPT, TRAINABLE
from tb_pastnet.format.function_change import Input, Place
from tb_pastnet.record.failures import Failures, reason_of
from tb_pastnet.record.mask_tracker import MaskTracker
from tb_pastnet.record.overhead_timer import COPIES, PROBE, RECORDS, OverheadTimer
from tb_pastnet.record.schedule import Action
from tb_pastnet.record.source import Source


class Record(NamedTuple):
    """One record of all variables, as it leaves the training thread.

    Attributes:
        sequence: its number in the lineage, from 0.
        wall_time: seconds since 1970.
        learning_rate: NaN where it isn't known.
        values: floats (statistics, channels of all variables), rows as in
            `core.statistics.STATISTICS`.
        function: float32 (4, places of the probe), rows as in `core.function_change.MEASURES`; None
            where there is no probe, or it couldn't be evaluated.
        thinned: records of the lineage before it that a budget left out.
    """

    sequence: int
    step: int
    past_step: int
    wall_time: float
    learning_rate: float
    values: npt.NDArray[np.floating]
    function: npt.NDArray[np.float32] | None = None
    thinned: int = 0

    @property
    def nbytes(self) -> int:
        """About what it occupies while it waits."""
        return int(self.values.nbytes)


class Probing(Protocol):
    """Compares the outputs of a network with those that it has with past values."""

    inputs: tuple[Input, ...]
    places: tuple[Place, ...]

    def values(self, past: Sequence[Any]) -> npt.NDArray[np.float32]:
        """float32 (4, places), rows as in `core.function_change.MEASURES`."""


class RecordMaker:
    """Measures a network against its past copies."""

    def __init__(
        self,
        source: Source,
        tracker: MaskTracker,
        probe: Probing | None,
        failures: Failures,
        timer: OverheadTimer,
    ) -> None:
        self._source = source
        self._widths = [weight.axis.channels for weight in source.network.weights]
        self._flags: Sequence[bool] = ()
        self._free: npt.NDArray[np.bool_] = np.ones(0, bool)
        self._tracker = tracker
        self._probe = probe
        self._reasons: dict[type[Exception], str] = {}
        self._failures = failures
        self._timer = timer

    def copy(self, number: int) -> None:
        """Takes the current values as a past copy."""
        with self._timer.part(COPIES):
            self._source.copy(number)

    def make(self, sequence: int, step: int, action: Action) -> Record:
        """Measures a record, and makes the current values the past where the same copy is due."""
        # Before the past values are replaced.
        with self._timer.part(PROBE):
            function = self._function(action.compare)
        with self._timer.part(RECORDS):
            replace = action.copy == action.compare
            values = self._source.compare(action.compare, replace=replace)
            values[KEPT], free = self._tracker.shares()
            values[TRAINABLE] = free * self._trainable()
            rate = self._learning_rate(step)
            past_step = step if action.past_step is None else action.past_step
            return Record(sequence, step, past_step, time.time(), rate, values, function)

    def _trainable(self) -> npt.NDArray[np.bool_]:
        """Of each channel, whether its weight is."""
        flags = self._source.trainable()
        if flags != self._flags:
            self._free = np.repeat(flags, self._widths)
            self._flags = flags
        return self._free

    def _function(self, number: int) -> npt.NDArray[np.float32] | None:
        if self._probe is None:
            return None
        try:
            return self._probe.values(self._source.past(number))
        except Exception as error:
            # By class: the reason may show values, which are others each time.
            text = self._reasons.setdefault(type(error), reason_of(error))
            self._failures.add(f"Could not evaluate the probe: {text}")
            return None

    def _learning_rate(self, step: int) -> float:
        try:
            return self._source.learning_rate(step)
        except Exception as error:
            self._failures.add("Could not read the learning rate", error)
            return float("nan")
