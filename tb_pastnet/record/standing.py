"""Follows which weights are idle from record to record, and asks their source why."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import numpy.typing as npt

from tb_pastnet.core.channel_states import STALLED
from tb_pastnet.core.standing import UNKNOWN
from tb_pastnet.core.statistics import (
    CHANGED,
    DELTA_NORM,
    MOVED,
    NONFINITE,
    NORM,
    PAST_NORM,
    TRAINABLE,
)
from tb_pastnet.format.standing import StandingChange
from tb_pastnet.record.batch import Record
from tb_pastnet.record.failures import Failures, noted
from tb_pastnet.record.sink import Sink
from tb_pastnet.record.source import HELD, Source

Floats = npt.NDArray[np.floating]
Flags = npt.NDArray[np.bool_]
Ints = npt.NDArray[np.intp]

WEIGHT_DECAY = "weight_decay"

_DECAY_MARGIN = 0.02
"""The relative difference from weight decay that counts as its rounding, besides the dtype's."""

_ALWAYS = 8
"""So many records are looked at one by one."""

_LONGEST_REST = 6
"""After so many doublings, a weight that only looks slow is asked about as often."""

_SKIPS = 0, 0, 1, 2, 4, 8, 16
"""Records at which the former answers count, as long as the same weights are idle: to look at their
updates takes time."""

_EPSILON = {"float16": 2.0**-10, "bfloat16": 2.0**-7, "float64": 2.0**-52}
_EPSILON_32 = 2.0**-23


class Standing:
    """Hands over why weights are idle.

    Without any, a record costs a few reductions over all channels.

    Attributes:
        moved: which weights have changed at the newest record; None: it isn't known.
    """

    def __init__(self, source: Source, failures: Failures) -> None:
        weights = source.network.weights
        self._source, self._failures = source, failures
        self._names = [weight.name for weight in weights]
        widths = [weight.axis.channels for weight in weights]
        self._starts = np.cumsum([0, *widths[:-1]])
        self._stops = self._starts + widths
        self._widths = np.array(widths)
        # Statistics and targets aren't trained.
        self._trained = np.array([not (w.statistic or w.text.follows) for w in weights])
        self._short = np.array([w.dtype in ("float16", "bfloat16") for w in weights])
        self._epsilon = np.array([_EPSILON.get(w.dtype, _EPSILON_32) for w in weights])
        self._asked = False
        self.moved: Flags | None = None
        self._key, self._same, self._skip = b"", 0, 0
        self._answers: dict[int, str] = {}
        self.begin()

    def begin(self) -> None:
        """Begins a lineage: it has no cause yet."""
        self._previous: tuple[int, Floats] | None = None
        self._streaks = np.zeros(len(self._names), np.int64)
        self._begun = np.zeros(len(self._names), np.int64)
        # One that moves again and again has to be idle for longer before it is written.
        self._patience = np.full(len(self._names), 2)
        self._handed: dict[int, str] = {}
        self._moved = np.zeros(len(self._names), bool)
        self._all_moved = False
        self._records = 0
        self._doubts = np.zeros(len(self._names), np.int64)

    @noted("Could not find out why weights are idle")
    def hand(self, sink: Sink, record: Record) -> None:
        """Hands changed causes to a sink; weights that turn out to be held are marked as frozen."""
        values, step = record.values, record.step
        still = stands_still(values, self._starts)
        if values[CHANGED, 0] >= 0:  # there is a past
            self.moved = ~still
        elif values[MOVED, 0] >= 0:
            self.moved = np.logical_or.reduceat(values[MOVED] == 1, self._starts)
        else:
            self.moved = None
        self._records += 1
        if not self._all_moved and values[CHANGED, 0] >= 0:  # there is a past
            self._moved |= ~still
            self._all_moved = bool(self._moved.all())
        slow = self._barely_moves(values) & ~still
        if self._asked or still.any() or slow.any():
            free = self._trainable(values)
            causes = self._ask(record, still & free, slow & free)
            # Without a past nothing is known.
            known = np.maximum.reduceat(values[CHANGED], self._starts) >= 0
            self._follow(sink, step, causes, known)
        self._previous = step, values[NORM]

    def _trainable(self, values: Floats) -> Flags:
        """The weights that an optimizer could train, and that are finite."""
        free = np.maximum.reduceat(values[TRAINABLE], self._starts) > 0
        finite = np.maximum.reduceat(values[NONFINITE], self._starts) == 0
        trainable: Flags = self._trained & free & finite
        return trainable

    def _barely_moves(self, values: Floats) -> Flags:
        """Whether weights may move only by weight decay, or only a few elements of 16 bits.

        In two records one after the other, as the first has the next update looked at, and then
        ever more rarely.
        """
        due = self._records % (1 << np.minimum(self._doubts, _LONGEST_REST)) <= 1
        if not due.any():
            return np.asarray(due)
        with np.errstate(invalid="ignore", divide="ignore"):
            share = values[DELTA_NORM] / values[PAST_NORM]
        share[~(values[PAST_NORM] > 0)] = np.nan
        # Decay shrinks all channels alike.
        least = np.fmin.reduceat(share, self._starts)
        most = np.fmax.reduceat(share, self._starts)
        with np.errstate(invalid="ignore"):
            slow = most - least <= 2 * (self._epsilon + _DECAY_MARGIN * most)
            slow &= (most < 1) & (most > 0)
        if self._short.any():
            changed = np.add.reduceat(values[CHANGED], self._starts)
            # Without a change in this step, one between records may be of a few elements.
            slow |= self._short & (2 * changed < self._widths)
        if self._records > _ALWAYS:
            self._doubts[due & ~slow] += 1
        return np.asarray(slow & due)

    def _ask(self, record: Record, still: Flags, slow: Flags) -> dict[int, str]:
        """The causes by number of weight, of those that are idle."""
        self._asked = bool(still.any() or slow.any() or self._handed)
        causes = self._answers_about(still, slow)
        for number, cause in list(causes.items()):
            own = slice(self._starts[number], self._stops[number])
            if cause == HELD and self._moved[number]:
                causes[number] = UNKNOWN
            elif cause == HELD:
                record.values[TRAINABLE, own] = 0
                del causes[number]
            elif cause == WEIGHT_DECAY and not self._only_decays(record, number, own):
                del causes[number]
        self._ask_later(slow, causes)
        return causes

    def _answers_about(self, still: Flags, slow: Flags) -> dict[int, str]:
        """What the source answers, or has answered about the same weights a few records ago."""
        key = still.tobytes() + slow.tobytes()
        same = key == self._key
        if not same or not self._skip:
            self._same, self._key = self._same + 1 if same else 0, key
            self._skip = _SKIPS[min(self._same, len(_SKIPS) - 1)]
            numbers = np.flatnonzero(still).tolist(), np.flatnonzero(slow).tolist()
            self._answers = dict(self._source.why_still(*numbers, self._skip))
        else:
            self._skip -= 1
        return dict(self._answers)

    def _ask_later(self, slow: Flags, causes: Mapping[int, str]) -> None:
        """Asks about weights that only look slow ever more rarely."""
        self._doubts[slow] += 1
        self._doubts[list(causes)] = 0

    def _only_decays(self, record: Record, number: int, own: slice) -> bool:
        """Whether a weight shrinks as by weight decay, in this step and since the last record."""
        bounds = self._source.decay(number)
        if bounds is None or record.step - record.past_step != 1:
            return False
        values = record.values[:, own].astype(np.float64)
        epsilon = float(self._epsilon[number])
        if not _shrunk(values[PAST_NORM], values[DELTA_NORM], bounds, 1, epsilon):
            return False
        if self._previous is None:
            return True
        step, norms = self._previous
        before = norms[own].astype(np.float64)
        return _shrunk(before, before - values[NORM], bounds, record.step - step, epsilon)

    def _follow(self, sink: Sink, step: int, causes: dict[int, str], known: Flags) -> None:
        """Counts records without a move, and hands over what is new."""
        stands = np.zeros(len(known), bool)
        stands[list(causes)] = True
        self._begun[stands & (self._streaks == 0)] = step
        self._streaks[stands] += 1
        again = np.flatnonzero(known & ~stands & (self._streaks > 0))
        self._streaks[again] = 0
        changes = [*self._moving(again, step), *self._standing(causes, step)]
        if changes and sink.standing(step, [change for _, change in changes]):
            for number, change in changes:
                self._handed[number] = change.cause
            for number in [n for n, cause in self._handed.items() if not cause]:
                del self._handed[number]
                self._patience[number] = min(2 * self._patience[number], STALLED)

    def _moving(self, again: Ints, step: int) -> Iterator[tuple[int, StandingChange]]:
        for number in again.tolist():
            if number in self._handed:
                yield number, StandingChange(step, self._names[number], "")

    def _standing(self, causes: dict[int, str], step: int) -> Iterator[tuple[int, StandingChange]]:
        for number, cause in causes.items():
            before = self._handed.get(number)
            if self._streaks[number] >= self._patience[number] and cause != before:
                since = int(self._begun[number]) if before is None else step
                yield number, StandingChange(since, self._names[number], cause)


def stands_still(values: Floats, starts: Ints) -> Flags:
    """Whether each weight is what it was at its past and at the record before, as far as is known.

    Args:
        values: the statistics of a record, (statistics, channels).
        starts: the first channel of each weight.
    """
    changed = values[CHANGED] != 0  # without a past, it isn't known
    if changed.all():  # most often
        return np.zeros(len(starts), bool)
    moved = changed | (values[MOVED] == 1)
    still: Flags = ~np.logical_or.reduceat(moved, starts)
    return still


def _shrunk(
    past: Floats, by: Floats, bounds: tuple[float, float], steps: int, epsilon: float
) -> bool:
    """Whether norms shrank by a share of themselves within the bounds, in each of some steps."""
    rounding = steps * epsilon * past
    least, most = (steps * bound * past for bound in bounds)
    enough = by >= (1 - _DECAY_MARGIN) * least - rounding
    return bool((enough & (by <= (1 + _DECAY_MARGIN) * most + rounding)).all())
