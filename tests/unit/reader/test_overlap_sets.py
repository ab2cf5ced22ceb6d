"""Which record stands, which sets differ, and what two sets share."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from tb_pastnet.core import overlap
from tb_pastnet.format.description import LayerEntry, VariableEntry
from tb_pastnet.reader import overlap_sets
from tb_pastnet.reader.overlap_sets import UNKNOWN, Sets
from tests.unit.serve.test_parameters import RUN

KERNEL, BIAS = RUN.variables.values()


@given(
    st.sets(st.integers(0, 60), max_size=12),
    st.lists(st.tuples(st.integers(0, 90), st.integers(0, 9)), max_size=8),
)
def test_the_record_in_force_is_the_last_one_that_has_not_ended(
    records: set[int], columns: list[tuple[int, int]]
) -> None:
    steps = sorted(records)
    firsts = np.array([first for first, _ in columns], np.int64)
    lasts = firsts + np.array([width for _, width in columns], np.int64)
    found = overlap_sets.records_in_force(np.array(steps, np.int64), firsts, lasts)
    for at, first, last in zip(found.tolist(), firsts.tolist(), lasts.tolist(), strict=True):
        before = [step for step in steps if step <= last]
        end = steps[-1] + (steps[-1] - steps[-2] if len(steps) > 1 else 1) if steps else 0
        assert at == (len(before) - 1 if before and first < end else -1)


@given(hnp.arrays(np.int64, st.tuples(st.integers(1, 3), st.integers(0, 12)),
                  elements=st.integers(-2, 2)))  # fmt: skip
def test_columns_that_are_equal_are_one_kind(columns: np.ndarray) -> None:
    kinds, which = overlap_sets.distinct(columns)
    np.testing.assert_array_equal(kinds[:, which], columns)
    told = [tuple(kind) for kind in kinds.T.tolist()]
    assert told == list(dict.fromkeys(map(tuple, columns.T.tolist())))
    assert (kinds.dtype, which.dtype) == (np.int64, np.int64)


def sets(*flags: list[bool], known: bool = True) -> Sets:
    array = np.array(flags, bool)
    bits = overlap.words(np.packbits(array, axis=1))
    sizes = array.sum(axis=1).astype(float) if known else np.full(len(array), np.nan)
    return Sets(np.arange(len(array)), sizes, bits.__getitem__, array.shape[1])


def unread(at: int) -> None:
    raise AssertionError("nothing needs these bits")


@given(hnp.arrays(bool, (2, 9)))
def test_what_two_sets_share(flags: np.ndarray) -> None:
    one, other = (sets(some.tolist()) for some in flags)
    assert overlap_sets.intersection(one, 0, other, 0) == int((flags[0] & flags[1]).sum())


@pytest.mark.parametrize("size", [0, 9])
def test_a_set_that_is_empty_or_whole_needs_no_bits(size: int) -> None:
    plain = Sets(np.zeros(1, np.int64), np.array([float(size)]), unread, 9)
    some = Sets(np.zeros(1, np.int64), np.array([4.0]), unread, 9)
    assert overlap_sets.intersection(plain, 0, some, 0) == min(size, 4)
    assert overlap_sets.intersection(some, 0, plain, 0) == min(size, 4)


def test_a_size_that_is_not_told_is_counted() -> None:
    one = sets([True, False, True], known=False)
    assert one.size(0) == 2
    assert not one.plain(0)
    lost = Sets(np.zeros(1, np.int64), np.array([np.nan]), lambda at: None, 3)
    assert np.isnan(lost.size(0))
    assert np.isnan(overlap_sets.intersection(one, 0, lost, 0))
    assert np.isnan(overlap_sets.intersection(lost, 0, one, 0))


def test_columns_are_taken_away() -> None:
    one = sets([True, False], [True, True])
    assert one.without(np.zeros(2, bool)) is one
    assert one.without(np.array([True, False])).positions.tolist() == [UNKNOWN, 1]


def test_a_variable_that_two_layers_share_stands_for_the_first() -> None:
    twice = LayerEntry("d", "", "d", "Dense", ("c/kernel",), "c/kernel")
    run = type(RUN)(**{**vars(RUN), "layers": (*RUN.layers, twice)})
    assert overlap_sets.drawn(run) == {"c": KERNEL}
    assert overlap_sets.drawn(run, "d") == {"d": KERNEL}
    assert overlap_sets.drawn(run, "x") == {}


def test_variables_are_alike_by_shape_and_channels_by_axis_too() -> None:
    across = VariableEntry(**{**vars(KERNEL), "axis": "0", "channels": 3})
    variables = [KERNEL, BIAS, across, KERNEL]
    assert overlap_sets.likeness(variables, "weights").tolist() == [0, 1, 0, 0]
    assert overlap_sets.likeness(variables, "channels").tolist() == [0, 1, 2, 0]
    assert overlap_sets.likeness([], "channels").shape == (0,)
