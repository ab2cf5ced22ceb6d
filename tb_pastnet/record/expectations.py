"""Checks during a training what `expect=` declares: as `pastnet verify` does afterwards."""

from __future__ import annotations

from collections.abc import Sequence

from tb_pastnet.core.counted import counted
from tb_pastnet.core.expected import (
    FAILS,
    HOLDS,
    Expect,
    Expectation,
    Outcome,
    check_declared,
    declared,
    evaluate,
)
from tb_pastnet.record.mask_tracker import MaskTracker
from tb_pastnet.record.weight import Weight


class Expectations:
    """What should happen to the weights of a recorder, and what of it has failed so far.

    Attributes:
        all: what is declared.

    Raises:
        InvalidArgument: a word isn't one of these, or a weight should be frozen and train.
        UnknownName: a pattern matches no recorded weight.
    """

    def __init__(self, expect: Expect, weights: Sequence[Weight], tracker: MaskTracker) -> None:
        self.all: tuple[Expectation, ...] = declared(expect)
        names = {each.name: each.text.also for each in weights if not each.statistic}
        check_declared(self.all, names)
        self._tracker = tracker
        self._seen: tuple[int, int] | None = None
        self._failed: set[Expectation] = set()
        self._holding = 0

    def check(self, *, ended: bool = False) -> list[Outcome]:
        """Looks at the first record, and again when what trains has changed: new contradictions.

        Args:
            ended: whether training has ended: then also at what shows only at its end.
        """
        accounts = self._tracker.accounts
        seen = len(accounts), accounts[-1].version
        if not self.all or (seen == self._seen and not ended):
            return []
        if not ended and len(self._failed) == len(self.all):
            return []
        self._seen = seen
        found = evaluate(self.all, self._tracker.lineages, ended=ended)
        self._holding = sum(each.result == HOLDS for each in found)
        failed = {each.expectation: each for each in found if each.result == FAILS}
        new = [outcome for each, outcome in failed.items() if each not in self._failed]
        self._failed.update(failed)
        return new

    @property
    def summary(self) -> str:
        """How many hold, for the line at the end; "" without any."""
        if not self.all:
            return ""
        return f"{self._holding:,} of {counted(len(self.all), 'expectation')} proven"
