"""The account of what is compared: which records count, and which don't."""

import numpy as np
import pytest

from tb_pastnet.core.axes import explicit_axis
from tb_pastnet.core.compared import HeldSpan
from tb_pastnet.record.audit.compared_account import MOST_SPANS, ComparedAccount
from tb_pastnet.record.weight import Weight


class Plain(Weight):
    def read(self):
        return np.zeros(self.shape, np.float32)


def account(*sizes):
    weights = [
        Plain(f"w{number}", (size,), "float32", explicit_axis(0, (size,), "w"))
        for number, size in enumerate(sizes)
    ]
    return ComparedAccount(weights)


def record(own, step, *held, moved=None):
    """A record in which weights are held from now on."""
    own.making = True
    for name, values in held:
        own.hold(name, values)
    own.compared(step, moved)


def spans(own, number=0):
    held = own.snapshot().held
    return held[number].spans if number in held else ()


def test_a_weight_that_is_first_seen_held_at_a_record_is_not_compared_there():
    own = account(4)
    record(own, 1, ("w0", 4))
    assert spans(own) == ()
    record(own, 2)
    assert spans(own) == (HeldSpan(2, 2, 1, 4, True),)


def test_of_more_that_is_held_at_a_record_only_the_former_is_compared():
    own = account(4)
    own.hold("w0", 3)
    record(own, 1)
    record(own, 2, ("w0", 4))
    record(own, 3)
    assert spans(own) == (HeldSpan(1, 2, 2, 6, False), HeldSpan(3, 3, 1, 4, True))


@pytest.mark.parametrize("size", [1, 7, 8, 9, 63, 64, 65, 129, 4097])
def test_spans_end_where_nothing_is_held(size):
    own, numbers = account(size), iter(range(10, 100, 10))
    for held, records in ((size, 2), (0, 1), (size, 1), (size - 1, 2), (0, 1)):
        own.hold("w0", held)
        for _ in range(records):
            record(own, next(numbers))
    whole = [HeldSpan(10, 20, 2, 2 * size, True), HeldSpan(40, 40, 1, size, True)]
    partly = [HeldSpan(50, 60, 2, 2 * size - 2, False)] if size > 1 else []
    assert spans(own) == (*whole, *partly)


def test_what_is_frozen_and_thawed_between_two_records_is_not_compared():
    own = account(4)
    own.hold("w0", 4)
    own.hold("w0", 0)
    record(own, 1)
    assert own.snapshot().held == {}


def test_a_record_that_failed_is_counted_apart():
    own = account(4)
    own.hold("w0", 4)
    record(own, 1)
    own.making = True
    own.failed()
    record(own, 3)
    found = own.snapshot()
    assert (found.records, found.failed) == (2, 1)
    assert spans(own) == (HeldSpan(1, 3, 2, 8, True),)


def test_the_first_move_of_each_weight_is_kept():
    own = account(1, 1, 1)
    for step, moved in ((1, None), (2, [0, 1, 0]), (3, [1, 1, 0])):
        record(own, step, moved=None if moved is None else np.array(moved, bool))
    found = own.snapshot()
    assert (found.moved, found.known, found.records) == ({0: 3, 1: 2}, 2, 3)


def test_changed_values_are_the_most_at_once():
    own = account(9)
    own.hold("w0", 9)
    for step, values in enumerate((0, 3, 2, 5), 1):
        record(own, step)
        own.change("w0", values, step)
    held = own.snapshot().held[0]
    assert (held.changed, held.changed_at) == (5, 2)


def test_endless_freezing_and_thawing_is_not_listed_as_held():
    own = account(4)
    for step in range(2 * MOST_SPANS + 20):
        own.hold("w0", 4 * (step % 2))
        record(own, step)
    assert len(spans(own)) == MOST_SPANS


def test_an_account_without_records_is_empty():
    own = account(4)
    own.hold("w0", 4)
    assert own.snapshot().held == {}
