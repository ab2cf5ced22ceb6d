from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from tb_pastnet.keras.probe.measures import Classes, Pair, changes
from tests import probing

SOFTMAX, LOGITS = Classes(binary=False, logits=False), Classes(binary=False, logits=True)
SIGMOID, BINARY_LOGITS = Classes(binary=True, logits=False), Classes(binary=True, logits=True)
ZERO, ONE = np.zeros((2, 3), np.float32), np.ones((2, 3), np.float32)
RNG = np.random.default_rng(0)


def measured(current, past, classes=None):
    sides = [part if isinstance(part, list) else [part] for part in (current, past)]
    tensors = [[tf.constant(one) for one in side] for side in sides]
    return changes([Pair(*tensors, classes)]).numpy()[0]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64", "int32", "bool"])
def test_relative_change_and_cosine_are_those_of_the_definition(dtype):
    y, past = (tf.cast(RNG.normal(size=(4, 5, 2)) * 3, dtype) for _ in range(2))
    expected = probing.change(*(tf.cast(side, tf.float64).numpy() for side in (y, past)))
    found = changes([Pair([y], [past])]).numpy()[0]
    np.testing.assert_allclose(found[:2], expected, rtol=1e-12)
    assert np.isnan(found[2:]).all()


def test_places_are_measured_one_by_one():
    sides = [[RNG.normal(size=shape).astype("f") for _ in range(2)] for shape in ((2, 3), (4, 1))]
    kinds = (LOGITS, None)
    pairs = [
        Pair([tf.constant(a)], [tf.constant(b)], k) for (a, b), k in zip(sides, kinds, strict=True)
    ]
    found = changes(pairs).numpy()
    for row, (y, past), kind in zip(found, sides, kinds, strict=True):
        np.testing.assert_array_equal(row, measured(y, past, kind))


def test_several_tensors_count_as_one():
    y = [RNG.normal(size=shape).astype("f") for shape in ((2, 3), (2,), (2, 0))]
    past = [RNG.normal(size=side.shape).astype("f") for side in y]
    np.testing.assert_allclose(measured(y, past)[:2], probing.change(y, past), rtol=1e-12)


@pytest.mark.parametrize(
    ("y", "past", "relative", "cosine"),
    [
        (ONE, ONE, 0, 1),
        (ZERO, ZERO, 0, 1),
        (ONE, ZERO, np.inf, 0),
        (ZERO, ONE, 1, 0),
        (-ONE, ONE, 2, -1),
        (1e38 * ONE, -1e38 * ONE, 2, -1),
        (1e-30 * ONE, 3e-30 * ONE, 2 / 3, 1),
        (1e300 * ONE.astype("d"), -1e300 * ONE.astype("d"), 2, -1),
        (1e-300 * ONE.astype("d"), 2e-300 * ONE.astype("d"), 0.5, 1),
        (ZERO.astype("d"), ZERO.astype("d"), 0, 1),
    ],
)
def test_zeros_and_extremes(y, past, relative, cosine):
    np.testing.assert_allclose(measured(y, past)[:2], [relative, cosine], rtol=1e-6)


def test_a_change_below_what_cosines_show_is_seen():
    y = ONE + np.float32(1e-6) * np.eye(2, 3, dtype="f")
    np.testing.assert_allclose(measured(y, ONE)[:2], probing.change(y, ONE), rtol=1e-12)


@pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("side", [0, 1])
@pytest.mark.parametrize("dtype", ["f", "d"])
def test_what_is_not_finite_has_no_measure(wrong, side, dtype):
    sides = [ONE.astype(dtype), ONE.astype(dtype)]
    sides[side][1, 2] = wrong
    assert np.isnan(measured(*sides, LOGITS)).all()


@pytest.mark.parametrize("shape", [(3,), (6, 4), (2, 5, 5, 3)])
def test_classes_along_the_last_axis(shape):
    y, past = (2 * RNG.normal(size=shape) for _ in range(2))
    expected = probing.decided(probing.softmax(y), probing.softmax(past))
    np.testing.assert_allclose(measured(y, past, LOGITS)[2:], expected, rtol=1e-9)
    given = [probing.softmax(side) for side in (y, past)]
    np.testing.assert_allclose(measured(*given, SOFTMAX)[2:], expected, rtol=1e-9)


@pytest.mark.parametrize("shape", [(7,), (6, 1), (4, 3)])
def test_each_element_of_a_sigmoid_decides_on_its_own(shape):
    y, past = (2 * RNG.normal(size=shape) for _ in range(2))
    expected = probing.decided(probing.sigmoid(y), probing.sigmoid(past))
    np.testing.assert_allclose(measured(y, past, BINARY_LOGITS)[2:], expected, rtol=1e-9)
    given = [probing.sigmoid(side)[..., 1] for side in (y, past)]
    np.testing.assert_allclose(measured(*given, SIGMOID)[2:], expected, rtol=1e-9)


def test_half_precision_probabilities_are_made_to_add_up():
    y, past = (probing.softmax(RNG.normal(size=(5, 9))).astype(np.float16) for _ in range(2))
    whole = [side.astype("d") / side.astype("d").sum(1, keepdims=True) for side in (y, past)]
    found = measured(y, past, SOFTMAX)
    np.testing.assert_allclose(found[2:], probing.decided(*whole), rtol=1e-9)


def test_a_class_that_was_possible_and_is_not_any_more_is_infinitely_far():
    y, past = np.array([[1.0, 0.0]]), np.array([[0.5, 0.5]])
    assert measured(y, past, SOFTMAX)[2] == np.inf
    assert measured(past, y, SOFTMAX)[2] == pytest.approx(np.log(2))


def test_what_are_no_probabilities_have_no_divergence():
    assert np.isnan(measured(ONE, -ONE, SIGMOID)[2])
    y = np.array([[1.5, -0.5]])
    assert np.isnan(measured(y, y, SOFTMAX)[2])


def test_huge_logits_have_a_divergence():
    y, past = np.array([[1e4, 0.0]]), np.array([[0.0, 1e4]])
    assert measured(y, past, LOGITS)[2:].tolist() == [1e4, 1]


FINITE = st.floats(-(2.0**100), 2.0**100, width=32, allow_subnormal=False)


@given(arrays(np.float32, (2, 3, 2), elements=FINITE))
def test_bounds_that_always_hold(sides):
    relative, cosine, divergence, decisions = measured(*sides, LOGITS)
    assert relative >= 0
    assert abs(cosine) <= 1 + 1e-12
    assert divergence >= -1e-12
    assert 0 <= decisions <= 1
    assert (relative == 0) == (sides[0] == sides[1]).all()
