"""Held elements against what they should be: by hand, element for element."""

from __future__ import annotations

import numpy as np
import pytest

from tb_pastnet.core.axes import explicit_axis
from tb_pastnet.record.audit.comparison import Comparison

SHAPE = (3, 2, 4)
RNG = np.random.default_rng(0)
EXPECTED = RNG.normal(size=SHAPE).astype("f4")
HELD = RNG.random(SHAPE) < 0.6
VALUE = np.where(RNG.random(SHAPE) < 0.5, EXPECTED, EXPECTED + RNG.normal(size=SHAPE).astype("f4"))


@pytest.mark.parametrize("held", [HELD, None], ids=["some", "all"])
@pytest.mark.parametrize("axis", [-1, 0, (0, 2)])
def test_each_channel_is_what_its_elements_say(held, axis):
    split = explicit_axis(axis, SHAPE, "w")
    compared = Comparison(VALUE, EXPECTED, held)
    every = np.ones(SHAPE, bool) if held is None else held
    rows = zip(*(split.split(one) for one in (VALUE, EXPECTED, every)), strict=True)
    found = compared.channels(split)
    for channel, (value, expected, flags) in enumerate(rows):
        off = [
            abs(float(v) - float(e)) for v, e, f in zip(value, expected, flags, strict=True) if f
        ]
        assert found.differ[channel] == sum(distance > 0 for distance in off)
        assert found.held[channel] == len(off)
        assert found.largest[channel] == max(off, default=0.0)
    assert (compared.differ() == (every & (VALUE != EXPECTED))).all()


def test_bits_count_and_not_numbers():
    value = np.array([0.0, np.nan, np.inf, 1.0], "f4")
    expected = np.array([-0.0, np.nan, 1.0, 1.0], "f4")
    compared = Comparison(value, expected, None)
    assert compared.differ().tolist() == [True, False, True, False]
    assert compared.distance().tolist() == [0.0, np.inf, np.inf, 0.0]


@pytest.mark.parametrize("values", [EXPECTED, np.zeros_like(EXPECTED)], ids=["any", "zeros"])
def test_a_print_changes_with_what_is_held_and_with_its_value(values):
    axis = explicit_axis(-1, SHAPE, "w")
    first = Comparison(values, values, HELD).channels(axis)
    assert (first.fingerprint == first.expected).all()
    place = tuple(np.argwhere(HELD)[0])
    moved, less = values.copy(), HELD.copy()
    moved[place], less[place] = 9, False
    channel = np.arange(SHAPE[-1]) == place[-1]
    by_value = Comparison(moved, values, HELD).channels(axis)
    assert ((by_value.fingerprint != first.fingerprint) == channel).all()
    assert (by_value.expected == first.expected).all()
    by_mask = Comparison(values, values, less).channels(axis)
    assert ((by_mask.expected != first.expected) == channel).all()


@pytest.mark.parametrize("count", [2, 4, 8, 64])
def test_the_worst_are_the_farthest_of_each_channel(count):
    axis = explicit_axis(-1, SHAPE, "w")
    compared = Comparison(VALUE, EXPECTED, HELD)
    channels = np.flatnonzero(axis.split(compared.differ()).any(axis=1))
    found = compared.worst(axis, channels, count)
    assert len(set(found.tolist())) == len(found) <= count
    size = np.where(compared.differ(), abs(VALUE.astype("f8") - EXPECTED), -1.0)
    chosen = channels[:: -(-len(channels) // count)]
    share = min(axis.elements, max(1, count // len(chosen)))
    wanted = []
    for channel in chosen:
        row = np.sort(size[..., channel].ravel())[-share:]
        wanted += row[row >= 0].tolist()
    assert sorted(size.ravel()[found].tolist()) == sorted(wanted)
