"""Measuring by numba: arrays of any form, cut into parts that threads share."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st

from tb_pastnet.core import pieces
from tb_pastnet.core.axes import explicit_axis
from tb_pastnet.core.statistics import CHANGED, NONFINITE, channel_statistics
from tb_pastnet.keras.keras_source import fitting, fused_copies, reading
from tb_pastnet.keras.measure.copies import Stack
from tb_pastnet.keras.measure.learning_rate import LearningRate
from tb_pastnet.record import array_copies

ODD = np.array([0, -0.0, 1, -2.5, 1e-45, 3e38, np.nan, np.inf, -np.inf], np.float32)


def stack_of(members, shape, axis):
    variables = tuple(tf.Variable(tf.zeros(shape)) for _ in range(members))
    return Stack(tuple(range(members)), variables, explicit_axis(axis, shape, "w"))


def defined(stack, current, past):
    pairs = zip(current, past, strict=True)
    parts = [channel_statistics(now, before, stack.axis) for now, before in pairs]
    return np.concatenate(parts, axis=1)[: NONFINITE + 1]


def assign(stack, values):
    for variable, value in zip(stack.variables, values, strict=True):
        variable.assign(value)


@st.composite
def cases(draw):
    """A stack, and two values for it: random ones with odd ones here and there."""
    shape = draw(st.lists(st.integers(1, 9), min_size=1, max_size=4))
    first = draw(st.integers(0, len(shape) - 1))
    last = draw(st.integers(first + 1, len(shape)))
    members = draw(st.integers(1, 3))
    rng = np.random.default_rng(draw(st.integers(0, 99)))
    past = rng.normal(size=(members, *shape)).astype(np.float32)
    current = np.where(rng.random(past.shape) < 0.5, past, past * np.float32(1.001))
    for values in (past, current):
        odd = rng.random(past.shape) < draw(st.sampled_from([0, 0.1]))
        values[odd] = rng.choice(ODD, odd.sum())
    return stack_of(members, tuple(shape), tuple(range(first, last))), current, past


@given(cases(), st.integers(1, 4), st.sampled_from([1, 8, 4096]))
def test_it_is_what_the_definition_says(case, processors, longest):
    stack, current, past = case
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(array_copies, "processors", lambda: processors)
        # From 8 elements on, several threads share an array.
        patch.setattr(pieces, "PIECE", 4)
        patch.setattr(pieces, "MOST_PLACES", longest)
        assert len(fitting([stack])) == 1
        copies = fused_copies([stack], reading([stack], LearningRate()))
        assign(stack, past)
        copies.take()
        assign(stack, current)
        expected = defined(stack, current, past)
        for replace in (False, True):
            found = copies.compare(replace=replace)
            # What is computed in float64 is rounded to float32, of which these are whole steps.
            step = np.finfo(np.float32).smallest_subnormal
            np.testing.assert_allclose(found, expected, rtol=1e-6, atol=step)
            np.testing.assert_array_equal(found == 0, expected == 0)
            np.testing.assert_array_equal(found[CHANGED] == 1, expected[CHANGED] == 1)
        np.testing.assert_array_equal(copies.past(), current)


@pytest.mark.parametrize(
    ("shape", "axis", "why"),
    [((2, 3, 4), (2, 0), "axes out of order"), ((2, 0), 0, "nothing in it")],
)
def test_what_it_leaves_to_tensorflow(shape, axis, why):
    assert fitting([stack_of(1, shape, axis)]) == [], why


def test_a_share_is_one_only_where_all_have_changed():
    stack = stack_of(1, (1 << 25, 1), -1)
    copies = fused_copies([stack], reading([stack], LearningRate()))
    current = np.ones((1 << 25, 1), np.float32)
    current[7] = 0
    assign(stack, [current])
    assert 1 - 1e-7 < copies.compare(replace=True)[CHANGED, 0] < 1
    assign(stack, [current + 1])
    assert copies.compare(replace=False)[CHANGED].tolist() == [1]


def test_training_need_not_copy_what_was_read():
    stack = stack_of(1, (1000, 1000), -1)
    copies = fused_copies([stack], reading([stack], LearningRate()))

    def address():
        return np.asarray(memoryview(stack.variables[0].read_value())).ctypes.data

    before = address()
    copies.compare(replace=True)
    stack.variables[0].assign_add(tf.ones((1000, 1000)))
    assert address() == before
    assert copies.compare(replace=False)[CHANGED].tolist() == [1] * 1000
