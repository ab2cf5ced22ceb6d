"""Arrays cut in parts, measured by the kernels and united, against NumPy over whole channels."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from tb_pastnet.core import plain_kernels
from tb_pastnet.core.axes import ChannelAxis, explicit_axis
from tb_pastnet.core.memory_layout import (
    LONGEST_PERIOD,
    Contiguous,
    Interleaved,
    finished,
    layout_of,
    united,
)
from tb_pastnet.core.statistics import CHANGED, DELTA_MAX, NORM, VALUE_ROWS

ODD = np.array([0.0, -0.0, 1.5, -2.0, 3e38, 1e-40, np.nan, np.inf, -np.inf], np.float32).tolist()


@st.composite
def cases(draw):
    """Values now and before, by member, and the axis of their channels."""
    shape = draw(hnp.array_shapes(min_dims=1, max_dims=4, max_side=4))
    members = draw(st.integers(1, 3))
    values = hnp.arrays(np.float32, (members, *shape), elements=st.sampled_from(ODD))
    return (
        draw(values),
        draw(values),
        explicit_axis(draw(st.integers(0, len(shape) - 1)), shape, "w"),
    )


def channels_of(array, axis):
    """(members, channels, elements)"""
    first = np.moveaxis(array, 1 + axis.axes[0], 1)
    return first.reshape(*first.shape[:2], -1).astype(float)


def expected(current, past, axis):
    """What the kernels give, by their definition."""
    now, was = channels_of(current, axis), channels_of(past, axis)
    finite, was_finite = np.isfinite(now), np.isfinite(was)
    change = ~((now == was) | (np.isnan(now) & np.isnan(was)))
    clean, was_clean = np.where(finite, now, 0), np.where(was_finite, was, 0)
    with np.errstate(over="ignore"):  # float32 deltas overflow, as in the kernels
        delta = clean.astype(np.float32) - was_clean.astype(np.float32)
    delta = np.where(finite & was_finite, delta, 0).astype(float)
    sums = [(part**2).sum(-1) for part in (clean, was_clean, delta)]
    return np.stack([*sums, np.abs(delta).max(-1), change.sum(-1), (~finite).sum(-1)])


def measured(layout, current, past, parts, *, replace=False, block=8):
    """The same by the kernels; `past` must be contiguous."""
    arrays = current.reshape(layout.shape), past.reshape(layout.shape)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plain_kernels, "BLOCK", block)
        return united([layout.measure(*arrays, cut, replace=replace) for cut in layout.cuts(parts)])


@given(cases(), st.integers(1, 4))
def test_parts_give_what_the_whole_gives(case, parts):
    current, past, axis = case
    layout = layout_of(axis, len(current))
    found = measured(layout, current, past.copy(), parts)
    assert found == pytest.approx(expected(current, past, axis), rel=1e-12)


@given(cases(), st.integers(1, 4))
def test_rows_alone_give_the_same(case, parts):
    current, past, axis = case
    layout = layout_of(axis, len(current))
    rows = Contiguous(layout.members, layout.outer, layout.channels, layout.inner)
    found = measured(rows, current, past.copy(), parts)
    assert found == pytest.approx(expected(current, past, axis), rel=1e-12)


@given(cases(), st.integers(1, 4), st.booleans())
def test_every_element_is_cut_once_and_replaced_only_on_demand(case, parts, replace):
    current, past, axis = case
    layout = layout_of(axis, len(current))
    times = np.zeros(layout.shape, int)
    for cut in layout.cuts(parts):
        times[cut] += 1
    assert (times == 1).all()
    assert len(layout.cuts(parts)) <= max(1, parts)
    kept = past.copy()
    measured(layout, current, kept, parts, replace=replace)
    np.testing.assert_array_equal(kept, current if replace else past)


@pytest.mark.parametrize(
    ("members", "view", "channels"),
    [
        *((1, (700, 64, 1), 1), (1, (20_001, 3, 1), 1), (5, (3, 7, 2), 1), (1, (1, 50_000, 1), 1)),
        *((1, (1, 64, 1152), 1), (2, (3, 5, 9), 1), (1, (1, 1, 100_000), 1), (2, (3, 5000, 9), 1)),
    ],
    ids=str,
)
def test_large_arrays_are_measured_block_by_block(members, view, channels):
    rng = np.random.default_rng(0)
    axis = explicit_axis(channels, view, "w")
    past = rng.normal(size=(members, *view)).astype(np.float32)
    current = np.where(rng.random(past.shape) < 0.5, past, past * np.float32(1.001))
    wanted = expected(current, past, axis)
    found = measured(layout_of(axis, members), current, past, 3, replace=True, block=1 << 15)
    np.testing.assert_allclose(found, wanted, rtol=1e-12)
    np.testing.assert_array_equal(past, current)


@pytest.mark.parametrize(
    ("view", "axes", "kind"),
    [
        ((2, 3), (1,), Interleaved),
        ((2, LONGEST_PERIOD), (1,), Interleaved),
        ((2, LONGEST_PERIOD + 1), (1,), Interleaved),  # one element each: nothing to sum in a row
        ((2, LONGEST_PERIOD // 2, 2), (1,), Interleaved),
        ((2, LONGEST_PERIOD // 2 + 1, 2), (1,), Contiguous),
        ((2, 3, 4), (0, 2), type(None)),
        ((2, 3), (1, 0), type(None)),
        ((0, 3), (1,), type(None)),
    ],
)
def test_which_layout_an_axis_has(view, axes, kind):
    assert type(layout_of(ChannelAxis(view, axes, "", verified=True), 1)) is kind


def test_wide_arrays_are_cut_in_whole_turns_of_their_channels():
    layout = Interleaved(members=1, outer=1000, channels=3, inner=1)
    cuts = layout.cuts(4)
    assert len(cuts) == 4
    assert all(columns.start % layout.channels == 0 for _, columns in cuts)


def test_the_largest_of_the_parts_is_the_largest_of_all():
    first, second = np.ones((VALUE_ROWS, 1, 2)), np.full((VALUE_ROWS, 1, 2), 3.0)
    both = united([first, second])
    assert both[DELTA_MAX].tolist() == [[3.0, 3.0]]
    assert both[NORM].tolist() == [[4.0, 4.0]]


@pytest.mark.parametrize("largest", [1.0, 1e39], ids=["fits", "overflows"])
def test_norms_are_roots_and_a_share_below_one_stays_below(largest):
    sums = np.full((VALUE_ROWS, 3), largest**2)
    sums[DELTA_MAX] = [0, 1.5, 3e38]
    sums[CHANGED] = [0, (1 << 25) - 1, 1 << 25]
    result = finished(sums, np.full(3, 1 << 25))
    assert result.dtype == (np.float32 if largest == 1 else np.float64)
    np.testing.assert_array_equal(result[NORM], largest)
    assert result[CHANGED, 0] == 0 < result[CHANGED, 1] < 1 == result[CHANGED, 2]
