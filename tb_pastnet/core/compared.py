"""What was compared during a training, weight by weight: stored with the account of each lineage.

A weight counts as compared at a record if it was held before the step of that record: one that is
first seen held at the record itself has nothing to be compared with.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple, TypeVar

Value = TypeVar("Value")

BY_VALUE, BY_FINGERPRINT = "value", "64-bit fingerprint"
WAYS = BY_VALUE, BY_FINGERPRINT
"""How held values are compared with those at which they were held."""


class HeldSpan(NamedTuple):
    """Consecutive records at which a weight was compared.

    Attributes:
        first_step: the step of the first of them.
        last_step: that of the last.
        records: how many.
        comparisons: held values, summed over these records.
        whole: whether all values of the weight were held, not only some.
    """

    first_step: int
    last_step: int
    records: int
    comparisons: int
    whole: bool


class HeldValues(NamedTuple):
    """What was compared of one weight.

    Attributes:
        most: how many of its values were held at once, at most.
        by: one of `WAYS`.
        spans: the records at which it was compared, in order.
        changed: how many values differed at once from those at which they were held, at most. By
            fingerprints it is one for each channel that differed.
        changed_at: the step at which that was first seen; None: never.
    """

    most: int
    by: str = BY_VALUE
    spans: tuple[HeldSpan, ...] = ()
    changed: int = 0
    changed_at: int | None = None

    @property
    def records(self) -> int:
        """At how many records it was compared."""
        return sum(span.records for span in self.spans)


@dataclass(frozen=True)
class Compared:
    """What was compared in a lineage. Weights are numbered as in its description.

    Attributes:
        records: how many were looked at, kept or not.
        failed: how many could not be.
        known: of those looked at, how many show whether weights have changed.
        first_step: the step of the first record; None without any.
        last_step: that of the last.
        moved: the step of the first record that shows that a weight has changed, by number; without
            those that never did.
        computed: weights that are computed from others, and so are never held themselves.
        pruned: how many values of a weight are pruned now, by number.
        held: what was compared, by number of the weight.
    """

    records: int = 0
    failed: int = 0
    known: int = 0
    first_step: int | None = None
    last_step: int | None = None
    moved: Mapping[int, int] = field(default_factory=dict)
    computed: frozenset[int] = frozenset()
    pruned: Mapping[int, int] = field(default_factory=dict)
    held: Mapping[int, HeldValues] = field(default_factory=dict)

    def of(self, weights: int) -> Compared:
        """The same without weights that a description of so many doesn't have."""

        def known(values: Mapping[int, Value]) -> dict[int, Value]:
            return {number: value for number, value in values.items() if number < weights}

        return replace(
            self,
            moved=known(self.moved),
            computed=frozenset(number for number in self.computed if number < weights),
            pruned=known(self.pruned),
            held=known(self.held),
        )

    def until(self, cut: int, steps: Sequence[int]) -> Compared:
        """What is left of it if a later lineage replaces the records from a step on.

        Args:
            cut: that step.
            steps: those of the stored records, increasing: by them the rest is counted, as it isn't
                known how many of the others came before.
        """
        if self.last_step is None or self.last_step < cut:
            return self
        steps = steps[: bisect_left(steps, cut)]
        if not steps:
            return Compared(computed=self.computed)
        held = {number: _until(own, cut, steps) for number, own in self.held.items()}
        return replace(
            self,
            records=len(steps),
            known=min(self.known, len(steps)),
            last_step=steps[-1],
            moved={number: step for number, step in self.moved.items() if step < cut},
            held={number: own for number, own in held.items() if own.spans},
        )


def _until(own: HeldValues, cut: int, steps: Sequence[int]) -> HeldValues:
    spans = []
    for span in own.spans:
        begin, end = bisect_left(steps, span.first_step), bisect_right(steps, span.last_step)
        if begin < end:
            left = end - begin
            share = span.comparisons * left // span.records
            spans.append(HeldSpan(steps[begin], steps[end - 1], left, share, span.whole))
    stands = own.changed_at is not None and own.changed_at < cut
    changed = (own.changed, own.changed_at) if stands else (0, None)
    return HeldValues(own.most, own.by, tuple(spans), *changed)
