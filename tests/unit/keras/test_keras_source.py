from __future__ import annotations

import builtins
import sys
from itertools import product

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from tb_pastnet.core.axes import explicit_axis
from tb_pastnet.core.numba_switch import SWITCH
from tb_pastnet.core.statistics import (
    CHANGED,
    DELTA_MAX,
    DELTA_NORM,
    MOVED,
    NORM,
    channel_statistics,
)
from tb_pastnet.keras.measure import copies
from tb_pastnet.keras.measure.copies import TensorCopies, stacks
from tb_pastnet.record.array_copies import NetworkCopies
from tests.sampled import sampled
from tests.sources import source_of

SHAPES = [
    ((3, 4), -1),
    ((3, 4), 0),
    ((2, 3, 4, 2), (-2, -1)),
    ((2, 3, 4, 2), -2),
    ((3, 70, 70), 1),
    ((2, 3, 4), (2, 0)),
    ((5,), 0),
    ((1, 1), -1),
    ((), ()),
]


@pytest.fixture(params=["1", "0"], ids=["numba", "TensorFlow"], autouse=True, scope="module")
def _with(request):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(SWITCH, request.param)
        yield


def compare(currents, pasts, axes, dtype=tf.float32):
    """The source beside the definition, for the same stored values."""
    variables = [tf.Variable(past, dtype=dtype) for past in pasts]
    source = source_of(variables, axes)
    past = [variable.numpy() for variable in variables]
    for variable, current in zip(variables, currents, strict=True):
        variable.assign(tf.cast(current, dtype))
    stored = [variable.numpy() for variable in variables]
    expected = np.concatenate(
        [channel_statistics(*values) for values in zip(stored, past, axes, strict=True)], axis=1
    )
    return source.compare(0), expected


def check(found, expected):
    found, expected = found[:MOVED], expected[:MOVED]  # that needs another record
    np.testing.assert_array_equal(found == 0, expected == 0)
    np.testing.assert_array_equal(found == 1, expected == 1, strict=True)
    np.testing.assert_allclose(found, expected, rtol=1e-4)


@pytest.mark.parametrize(
    ("dtype", "stacked"),
    [
        *product([tf.float16, tf.bfloat16, tf.float32, tf.float64], [True]),
        *sampled(product([tf.float32, tf.float16, tf.bfloat16, tf.float64], [False]), every=4),
    ],
)
def test_it_is_what_the_definition_says(dtype, stacked, monkeypatch):
    monkeypatch.setattr(copies, "STACK_ELEMENTS", 1 << 16 if stacked else 0)
    rng = np.random.default_rng(0)
    shapes = SHAPES + SHAPES[::-1] + SHAPES[:2]
    axes = [explicit_axis(axis, shape, "w") for shape, axis in shapes]
    pasts = [rng.normal(size=shape) for shape, _ in shapes]
    currents = [
        past + rng.normal(size=past.shape) * rng.integers(0, 2, past.shape) for past in pasts
    ]
    check(*compare(currents, pasts, axes, dtype))


EXTREMES = np.array(
    [0.0, -0.0, 1.0, -3.0, 1e-30, -1e-25, 1e25, -3e38, 1e-37, np.nan, np.inf, -np.inf], np.float32
).tolist()


AXIS = explicit_axis(-1, (3, 4), "w")


@pytest.fixture(scope="module")
def two(_with):
    """Traced once for all examples."""
    variables = [tf.Variable(tf.zeros((3, 4))) for _ in range(2)]
    return variables, source_of(variables, [AXIS, AXIS])


def test_numba_measures_what_it_can_and_tensorflow_the_rest(monkeypatch):
    variables = [tf.Variable(tf.zeros((2, 3), dtype)) for dtype in (tf.float16, tf.float32)]
    axes = [explicit_axis(-1, (2, 3), "w")] * 2
    for switch, classes in (("1", [NetworkCopies, TensorCopies]), ("0", [TensorCopies])):
        monkeypatch.setenv(SWITCH, switch)
        source = source_of(variables, axes)
        assert [type(part) for part in source._copies[0]] == classes
        assert [tf.as_dtype(past.dtype) for past in source.past(0)] == [tf.float16, tf.float32]


@pytest.mark.parametrize("error", [ModuleNotFoundError, SystemError], ids=["absent", "broken"])
def test_without_numba_tensorflow_measures(error, monkeypatch, caplog):
    def imported(name, *rest):
        if name == "numba":
            raise error("no numba here")
        return real(name, *rest)

    real = builtins.__import__
    monkeypatch.setenv(SWITCH, "1")
    monkeypatch.delitem(sys.modules, "tb_pastnet.core.network_kernel")
    monkeypatch.delattr("tb_pastnet.core.network_kernel")
    monkeypatch.setattr(builtins, "__import__", imported)
    source = source_of([tf.Variable(tf.zeros((3, 4)))], [AXIS])
    assert [type(part) for part in source._copies[0]] == [TensorCopies]
    text = "Could not use numba, so TensorFlow is used instead: no numba here. Repair or remove it."
    assert caplog.messages == ([] if error is ModuleNotFoundError else [text])


@given(
    arrays(np.float32, (2, 3, 4), elements=st.sampled_from(EXTREMES)),
    arrays(np.float32, (2, 3, 4), elements=st.sampled_from(EXTREMES)),
)
def test_extremes(two, current, past):
    variables, source = two
    for variable, value in zip(variables, past, strict=True):
        variable.assign(value)
    source.copy(0)
    for variable, value in zip(variables, current, strict=True):
        variable.assign(value)
    parts = [channel_statistics(c, p, AXIS) for c, p in zip(current, past, strict=True)]
    check(source.compare(0), np.concatenate(parts, axis=1))


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float64"])
def test_a_delta_that_is_not_zero_never_becomes_zero(dtype):
    tiny = {"float32": 1e-30, "bfloat16": 1e-30, "float64": 1e-300}[dtype]
    for axis, shape in ((0, (4,)), (-1, (3, 4)), (-1, (1, 4))):
        past = np.zeros(shape)
        current = past.copy()
        current[..., 1:3] = tiny
        found, expected = compare(
            [current], [past], [explicit_axis(axis, shape, "w")], tf.as_dtype(dtype)
        )
        check(found, expected)
        assert found[DELTA_NORM].tolist()[0] == 0
        assert (found[[NORM, DELTA_NORM, DELTA_MAX, CHANGED], 1] > 0).all()


def test_the_smallest_change_of_large_weights():
    past = np.full((64, 2), 1.0, np.float32)
    current = past.copy()
    current[5, 0] = np.nextafter(np.float32(1), np.float32(2))
    found, expected = compare([current], [past], [explicit_axis(-1, (64, 2), "w")])
    check(found, expected)
    assert found[CHANGED].tolist() == [1 / 64, 0]


def test_subnormals_are_not_zero():
    past = np.zeros((2, 3), np.float32)
    current = np.array([[1e-40, 0, 1], [0, 0, 1]], np.float32)
    found, expected = compare([current], [past], [explicit_axis(-1, (2, 3), "w")])
    check(found, expected)
    assert found[NORM, 0] > 0
    assert found[DELTA_NORM, 0] > 0


def test_norms_beyond_float32():
    past, current = np.zeros((2, 2)), np.full((2, 2), 1e200)
    found, expected = compare([current], [past], [explicit_axis(-1, (2, 2), "w")], tf.float64)
    check(found, expected)
    assert np.isfinite(found[NORM]).all()


def test_nan_spoils_no_other_channel():
    past = np.ones((3, 3), np.float32)
    current = past + 1
    current[0, 1] = np.nan
    found, expected = compare([current], [past], [explicit_axis(-1, (3, 3), "w")])
    check(found, expected)
    assert found[5].tolist() == [0, 1, 0]


def test_copies_are_kept_apart():
    weight = tf.Variable([[1.0]])
    axis = explicit_axis(-1, (1, 1), "w")
    source = source_of([weight], [axis], copies=2)
    weight.assign([[3.0]])
    source.copy(1)
    weight.assign([[7.0]])
    assert source.compare(0)[DELTA_NORM].tolist() == [6]
    assert source.compare(1)[DELTA_NORM].tolist() == [4]
    assert weight.numpy().tolist() == [[7]]


@pytest.mark.parametrize("value", [2.0, np.nan], ids=["on the device", "exact"])
def test_comparing_and_copying_at_once(value):
    weight = tf.Variable([[1.0, 1.0], [1.0, 1.0]])
    source = source_of([weight], [explicit_axis(-1, (2, 2), "w")])
    weight.assign([[value, 1.0], [1.0, 1.0]])
    first = source.compare(0, replace=True)
    assert first[CHANGED].tolist() == [0.5, 0]
    assert source.compare(0)[CHANGED].tolist() == [0, 0]


def test_many_small_variables_are_few_operations():
    variables = [tf.Variable(tf.ones((4, 3))) for _ in range(50)]
    axes = [explicit_axis(-1, (4, 3), "w")] * 50
    source = source_of(variables, axes)
    assert len(stacks(variables, axes)) == 1
    variables[17].assign_add(tf.ones((4, 3)))
    start, stop = 17 * 3, 18 * 3
    moved = np.flatnonzero(source.compare(0)[DELTA_NORM])
    assert moved.tolist() == list(range(start, stop))


@pytest.mark.parametrize("fast", ["0", "1"])
def test_norms_of_past_values_are_those_of_the_values(monkeypatch, fast):
    """They are kept from when the values were current, however that came about."""
    monkeypatch.setenv(SWITCH, fast)
    random = np.random.default_rng(3)
    weight = tf.Variable(random.normal(size=(5, 4)).astype("f"))
    source = source_of([weight], [explicit_axis(-1, (5, 4), "w")])

    def move(scale=1.0):
        weight.assign(scale * random.normal(size=(5, 4)).astype("f"))

    def check(past, *, replace=False):
        found = source.compare(0, replace=replace)[1]
        expected = np.linalg.norm(past.astype(np.float64), axis=0)
        np.testing.assert_allclose(found, expected, rtol=1e-6)

    past = weight.numpy()
    move()
    check(past)
    check(past, replace=True)
    past = weight.numpy()
    move(1e-30)  # too small to be squared: computed by the definition
    check(past, replace=True)
    past = weight.numpy()
    move()
    check(past, replace=True)
    source.copy(0)
    past = weight.numpy()
    move()
    check(past)
