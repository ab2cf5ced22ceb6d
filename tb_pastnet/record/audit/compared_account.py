"""Keeps the account of what is compared, as `core.compared` has it, on the training thread.

At a record at which nothing is frozen or thawed it only counts. The writing thread takes snapshots:
what it reads is replaced as a whole, never changed in place.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tb_pastnet.core.compared import BY_VALUE, Compared, HeldSpan, HeldValues
from tb_pastnet.record.weight import Weight

MOST_SPANS = 1 << 8
"""Spans of one weight that are listed: later ones aren't, as if it hadn't been compared there."""


class _OpenSpan(NamedTuple):
    """A span that continues: `begun` and `since` count records, `values` are held since then."""

    whole: bool
    begun: int
    since: int
    values: int
    comparisons: int  # before `since`
    first_step: int | None = None


class _Own(NamedTuple):
    """The account of one weight."""

    spans: tuple[HeldSpan, ...] = ()
    open: _OpenSpan | None = None
    most: int = 0
    by: str = BY_VALUE
    changed: int = 0
    changed_at: int | None = None


class ComparedAccount:
    """What was compared in a lineage of some weights, up to now.

    Attributes:
        version: changes with the frozen and pruned values, and when more of these change.
        steps: those of the records that were looked at.
        making: set it when a record is begun; `compared` and `failed` end it.
    """

    def __init__(self, weights: Sequence[Weight]) -> None:
        self._numbers = {weight.name: number for number, weight in enumerate(weights)}
        self._sizes = [weight.axis.channels * weight.axis.elements for weight in weights]
        self._computed = frozenset(n for n, each in enumerate(weights) if each.computed)
        self._own: list[_Own] = [_Own() for _ in weights]
        self._records = self._failed = self._known = 0
        self._first_step: int | None = None
        self._last_step: int | None = None
        self._moved = np.full(len(weights), -1, np.int64)
        self._all_moved = False
        self._pruned: dict[int, int] = {}
        self._fresh: set[int] = set()
        # Values that are first seen held at the record in the making: they can't be compared there.
        self.making = False
        self._later: dict[int, tuple[int, str]] = {}
        self.version = 0
        self.steps = array("q")

    def hold(self, name: str, values: int, by: str = BY_VALUE) -> None:
        """So many values of a weight are held from now on, and compared by one of `WAYS`."""
        number = self._numbers[name]
        self.version += 1
        if self.making:
            self._later[number] = values, by
            own = self._own[number].open
            values = min(values, own.values if own else 0)
        self._hold(number, values, by)

    def change(self, name: str, values: int, step: int) -> None:
        """So many held values of a weight differ from those at which they were held."""
        number = self._numbers[name]
        own = self._own[number]
        if values > own.changed:
            self.version += 1
            first = step if own.changed_at is None else own.changed_at
            self._own[number] = own._replace(changed=values, changed_at=first)

    def prune(self, name: str, values: int) -> None:
        """So many values of a weight are pruned from now on."""
        self._pruned = {**self._pruned, self._numbers[name]: values}

    def compared(self, step: int, moved: npt.NDArray[np.bool_] | None) -> None:
        """A record was looked at.

        Args:
            step: of the record.
            moved: which weights have changed, since the record before or in its last step; None: it
                isn't known.
        """
        if self._first_step is None:
            self._first_step = step
        if moved is not None:
            self._known += 1
            if not self._all_moved:
                self._moved[moved & (self._moved < 0)] = step
                self._all_moved = bool((self._moved >= 0).all())
        for number in self._fresh:
            own = self._own[number]
            if own.open is not None:
                self._own[number] = own._replace(open=own.open._replace(first_step=step))
        self._fresh.clear()
        self._last_step = step
        self._records += 1
        self.steps.append(step)
        self.making = False
        if self._later:
            self._hold_later()

    def failed(self) -> None:
        """A record could not be looked at."""
        self._failed += 1
        self.making = False
        self._hold_later()

    def snapshot(self) -> Compared:
        """What was compared so far."""
        moved = self._moved
        return Compared(
            self._records,
            self._failed,
            self._known,
            self._first_step,
            self._last_step,
            {int(number): int(moved[number]) for number in np.flatnonzero(moved >= 0)},
            self._computed,
            {number: values for number, values in self._pruned.items() if values},
            {
                number: HeldValues(own.most, own.by, spans, own.changed, own.changed_at)
                for number, own in enumerate(list(self._own))
                if (spans := self._spans(own))
            },
        )

    def _hold_later(self) -> None:
        later, self._later = self._later, {}
        for number, (values, by) in later.items():
            self._hold(number, values, by)

    def _hold(self, number: int, values: int, by: str) -> None:
        own, whole = self._own[number], values == self._sizes[number]
        own = own._replace(by=by) if values else own
        going_on = own.open
        most = max(own.most, values)
        if going_on is not None and values and whole == going_on.whole:
            counted = going_on.values * (self._records - going_on.since)
            counted += going_on.comparisons
            going_on = going_on._replace(since=self._records, values=values, comparisons=counted)
            self._own[number] = own._replace(open=going_on, most=most)
            return
        spans = self._spans(own)
        self._fresh.discard(number)
        opened = None
        if values:
            opened = _OpenSpan(whole, self._records, self._records, values, 0)
            self._fresh.add(number)
        self._own[number] = own._replace(spans=spans, open=opened, most=most)

    def _spans(self, own: _Own) -> tuple[HeldSpan, ...]:
        """All spans, of which the last may continue."""
        span, last, records = own.open, self._last_step, self._records
        if span is None or span.first_step is None or last is None:
            return own.spans
        if records <= span.begun or len(own.spans) >= MOST_SPANS:
            return own.spans
        comparisons = span.comparisons + span.values * (records - span.since)
        made = records - span.begun
        return (*own.spans, HeldSpan(span.first_step, last, made, comparisons, span.whole))
