"""Measures weights that are spread over ranks, as by FSDP2 of torch.

Each rank measures its own rows; only statistics are gathered, and rank 0 writes them. All ranks
follow one schedule, which depends only on calls that all of them make: so each takes part in each
record, even one that it fails to measure or to write.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tb_pastnet.core.sketch import BUCKETS, Sketch
from tb_pastnet.core.statistics import (
    CHANGED,
    DELTA_MAX,
    DELTA_NORM,
    MOVED,
    NORM,
    STATISTICS,
    VALUE_ROWS,
)
from tb_pastnet.core.thinning import has_sketch
from tb_pastnet.errors import InvalidArgument
from tb_pastnet.record.alerts import STOP
from tb_pastnet.record.batch import spans_of
from tb_pastnet.record.failures import Failures, noted
from tb_pastnet.record.schedule import Action, Schedule
from tb_pastnet.record.source import ArraySource, Floats, Sketches
from tb_pastnet.record.spread.audit import SpreadAudit
from tb_pastnet.record.spread.parts import Part, RankGroup
from tb_pastnet.record.weight import Network, Weight

_Rows = npt.NDArray[np.float64]

_UNKNOWN = 0.5
"""Of whether a channel has moved: a rank that knows that it has is right."""


class SpreadMeasures:
    """Does this rank's part in all records. `Source.compare` returns `gathered` on rank 0.

    `network` has the whole weights, `own` measures their `parts` on this rank. The schedule is the
    same on all ranks. `settle` is called before weights are looked at.

    Attributes:
        sketches: those gathered from all ranks for this step, on rank 0; None if there are none.
    """

    def __init__(
        self,
        network: Network[Any],
        own: ArraySource,
        parts: Mapping[str, Part],
        ranks: RankGroup,
        schedule: Schedule,
        audited: SpreadAudit | None,
        failures: Failures,
        *,
        settle: Callable[[], None],
    ) -> None:
        self._network, self._own, self._ranks = network, own, ranks
        self.schedule, self.audited, self._failures = schedule, audited, failures
        self._settle = settle
        begins = {span.variable: span.start for span in spans_of(network.weights)}
        self._numbers = np.concatenate(
            [begins[name] + part.channels for name, part in parts.items()]
        )
        self._elements, self._all = _elements(own.network.weights), _elements(network.weights)
        self._gathered: Floats | None = None
        self._apart = False
        self._parts = parts
        # Of this lineage.
        self._records = 0
        self.sketches: Sketches | None = None

    def gathered(self) -> Floats:
        """See `Source.compare`: the statistics gathered from all ranks for this step."""
        if self._gathered is None:
            raise RuntimeError("no statistics were gathered from all ranks")
        return self._gathered

    def agree(self, *settings: object) -> str:
        """The origin of the weights of all ranks; raises InvalidArgument if settings differ."""
        names = [(weight.name, weight.shape) for weight in self._network.weights]
        said = self._ranks.all((repr((settings, names)), self._network.origin()))
        if len({own for own, _ in said}) > 1:
            raise InvalidArgument(
                f"Could not record on {self._ranks.count} ranks: expected one module and the same "
                f"arguments on each, got {' and '.join(sorted({own[:80] for own, _ in said}))}. "
                f"Make the same Recorder on all ranks."
            )
        return hashlib.blake2b(repr([own for _, own in said]).encode(), digest_size=16).hexdigest()

    def follow(self, step: int) -> None:
        """Does this rank's part at a step. It never raises."""
        if self._apart:
            return
        try:
            self._advance(step)
        except Exception as error:
            self._apart = True
            self._failures.add("Could not record with the other ranks any longer", error)

    def observe(self) -> None:
        """Looks at held weights before an update, on each rank."""
        if self.audited is not None and not self._apart:
            self.audited.observe()

    def sync(self) -> None:
        """See `Recording`."""
        self.take(self.schedule.sync())

    def restart(self, step: int) -> None:
        """See `Recording`."""
        if self.audited is not None:
            self.audited.begin()
        self._own.forget()
        self._records = 0
        copy = self.schedule.restart(step)
        if copy is not None:
            self.take(copy)

    def expect_end(self, step: int) -> None:
        """See `Recording`."""
        self.schedule.expect_end(step)

    def leave(self) -> None:
        """Ends this rank's part."""
        self._apart = True
        self._ranks.leave()

    def _advance(self, step: int) -> None:
        self._gathered = self.sketches = None
        if self.schedule.goes_back(step):
            self.restart(step)
        elif not self.schedule.passes(step):
            action = self.schedule.advance(step)
            if action.record:
                self._gather(step, action)
            if action.copy is not None and not self.schedule.knows(action.copy):
                self.take(action.copy)
        if self.audited is not None:
            self.audited.observe()

    def _gather(self, step: int, action: Action) -> None:
        measured, totals, largest = self._measure(action)
        audited = [] if self.audited is None else self.audited.compare()
        # By the maximum over all ranks, each rank has the facts of the others.
        facts = np.array([step, -step, not measured, *audited], np.int64)
        self._ranks.maximum(facts)
        if facts[0] != -facts[1]:
            raise RuntimeError(
                f"expected all ranks at one step, got steps {-facts[1]} to {facts[0]}. Call record "
                f"on each rank after each step"
            )
        self._ranks.total(totals)
        self._ranks.maximum(largest)
        if self.audited is not None:
            self.audited.gather(self._ranks, facts[3:].tolist())
        if facts[2] and measured:
            self._failures.add("Could not measure the rows of another rank")
        if has_sketch(self._records):
            self._gather_sketches()
        self._records += 1
        if self._ranks.first:
            self._gathered = self._finished(totals, largest)

    def _gather_sketches(self) -> None:
        names = [weight.name for weight in self._network.sketched]
        sums = np.zeros((len(names), BUCKETS))
        for row, name in enumerate(names):
            if name in self._parts:
                sums[row] = self._sketch(self._parts[name])
        self._ranks.total(sums)
        self.sketches = sums if names else None

    def _sketch(self, part: Part) -> Sketch:
        try:
            return part.sketch()
        except Exception as error:  # the others wait for this rank
            self._failures.add("Could not sketch the rows of this rank", error)
            return np.full(BUCKETS, np.nan)

    def _measure(self, action: Action) -> tuple[bool, _Rows, _Rows]:
        """Whether this rank could measure, and its terms for the sums and maxima over ranks."""
        totals = np.zeros((VALUE_ROWS, len(self._all)))
        largest = np.zeros((2, len(self._all)))
        try:
            self._settle()
            replace = action.copy == action.compare
            rows = self._own.compare(action.compare, replace=replace)
            if replace:
                self.schedule.copied(action.compare)
            moved = np.where(np.isnan(rows[MOVED]), _UNKNOWN, rows[MOVED])
            rows = rows[:VALUE_ROWS].astype(np.float64)
            rows[NORM : DELTA_NORM + 1] **= 2
            rows[CHANGED] = np.rint(rows[CHANGED] * self._elements)
            for total, row in zip(totals, rows, strict=True):
                np.add.at(total, self._numbers, row)
            for most, row in zip(largest, (rows[DELTA_MAX], moved), strict=True):
                np.maximum.at(most, self._numbers, row)
        except Exception as error:  # the others wait for this rank
            self._failures.add("Could not measure the rows of this rank", error)
            totals[:, self._numbers] = np.nan
            largest[1, self._numbers] = _UNKNOWN
            return False, totals, largest
        return True, totals, largest

    def _finished(self, totals: _Rows, largest: _Rows) -> Floats:
        result = np.full((len(STATISTICS), len(self._all)), np.nan)
        # The sums of a rank that failed are NaN.
        result[:VALUE_ROWS] = totals
        result[DELTA_MAX] = np.where(np.isnan(totals[NORM]), np.nan, largest[0])
        # A channel has moved if the part of any rank has.
        result[MOVED] = np.where(largest[1] == _UNKNOWN, np.nan, largest[1])
        # The root of a square is exact: rows of a single rank stay as measured.
        result[NORM : DELTA_NORM + 1] = np.sqrt(totals[NORM : DELTA_NORM + 1])
        result[CHANGED] = totals[CHANGED] / self._all
        return result

    @noted("Could not copy the past values")
    def take(self, number: int) -> None:
        """Takes this rank's part of a past copy."""
        self._settle()
        self._own.copy(number)
        self.schedule.copied(number)


def check_alike(budget: float | None, on_violation: object, *masks: object) -> None:
    """Raises InvalidArgument for settings that could make ranks act differently.

    Declared masks are of whole weights, which no rank has.
    """
    if any(masks):
        raise InvalidArgument(
            "Could not use trainable= or kept=: expected weights that are whole in this process, "
            "got some that are spread over ranks. Leave them out; weights without requires_grad "
            "are audited."
        )
    for name, value in (("budget", budget), ("on_violation", on_violation)):
        if value is not None and (name == "budget" or value == STOP):
            raise InvalidArgument(
                "Could not record weights that are spread over ranks: expected settings that act "
                f"the same on each rank, got {name}={value!r}. Leave it out: a rank that acts "
                "differently stops the others."
            )


def _elements(weights: Sequence[Weight]) -> npt.NDArray[np.int64]:
    """How many elements each channel of some weights has."""
    counts = [np.full(each.axis.channels, each.axis.elements) for each in weights]
    return np.concatenate(counts)
