"""Which of the records that are due are made, so that recording keeps under a share of the time."""

from __future__ import annotations

from numbers import Real

from tb_pastnet.errors import InvalidArgument
from tb_pastnet.format.overhead import Overhead
from tb_pastnet.record.overhead_timer import OverheadTimer


class Budget:
    """Grants a record where it can be paid: what was spent, and what it will cost, is in the share.

    All counts as spent that training waited for, but only records can be left out. One is expected
    to cost what the last did, with its copy and its probe. The first of a lineage is always
    granted. As TensorFlow compiles for it, it doesn't tell what the next will cost, and it may take
    the share of minutes: until that is paid off the others get half of the share.

    So with a first record of f seconds, after T seconds of training at most max(share T, f +
    share T / 2) were spent, and what the last record took more than expected.

    Raises:
        InvalidArgument: the share is something else.
    """

    def __init__(self, share: float, timer: OverheadTimer) -> None:
        check(share)
        self._share = float(share)
        self._timer = timer
        self.begin()

    def begin(self) -> None:
        """Begins anew, for a new lineage."""
        self._made = 0
        self._expected = self._first = 0.0
        self._paid = _of_records(self._timer.so_far())

    def affords(self, waiting: int = 0) -> bool:
        """Whether one more record can be paid, beside those granted that aren't made yet."""
        if self._made < 2 and (waiting or not self._made):
            # Nobody knows yet what one costs: one at a time, and the first in any case.
            return not waiting
        cost = self._timer.so_far()
        total = cost.seconds + (1 + waiting) * self._expected
        allowed = self._share * cost.training
        return total <= allowed or total - self._first <= allowed / 2

    def finished(self) -> None:
        """A record was made, or has failed: what it took is what the next is expected to."""
        cost = self._timer.so_far()
        paid = _of_records(cost)
        if self._made:
            self._expected = paid - self._paid
        else:
            self._first = cost.seconds
        self._made += 1
        self._paid = paid


def check(share: object) -> None:
    """Raises InvalidArgument for a budget that can't be used."""
    is_number = isinstance(share, Real) and not isinstance(share, bool)
    if share is not None and not (is_number and 0 < share < 1):  # type: ignore[operator]
        raise InvalidArgument(
            f"Could not schedule records: expected budget= a share of the training's time above 0 "
            f"and below 1, got {share!r}. Use budget=0.01 for 1 %, or None for no limit."
        )


def _of_records(cost: Overhead) -> float:
    return cost.records + cost.copies + cost.probe
