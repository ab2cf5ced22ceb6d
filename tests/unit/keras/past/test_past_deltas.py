from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from tb_pastnet import PastDeltas, PastVariables
from tb_pastnet.errors import InvalidArgument

SHAPE = (64, 65)  # 4,160 elements: more than are kept whole
OFTEN = {"eager": lambda f: f, "graph": tf.function, "XLA": tf.function(jit_compile=True)}


def large(dtype=np.float32, seed=0):
    return np.random.default_rng(seed).normal(size=SHAPE).astype(dtype)


def assert_close(found, past, current):
    """To 1/256 of the movement, and the last bit of the values."""
    past, current = past.astype(np.float64), current.astype(np.float64)
    bound = np.abs(current - past) / 256 + np.spacing(np.abs(past).astype(np.float32))
    assert (np.abs(np.asarray(found, np.float64) - past) <= bound).all()


@pytest.mark.parametrize("wrap", OFTEN.values(), ids=OFTEN)
def test_the_past_is_that_of_before_the_step(wrap):
    values = [large(), large(np.float64, 1), np.ones((1, 4097), np.float32)]
    moves = [1e-3 * large(seed=2), -1e-3 * large(np.float64, 3), np.zeros((1, 4097), np.float32)]
    weights = [tf.Variable(value) for value in values]
    deltas = PastDeltas(weights)

    def step():
        with deltas.step():
            for weight, move in zip(weights, moves, strict=True):
                weight.assign_add(move)

    wrap(step)()
    wrap(step)()
    past = [value + move for value, move in zip(values, moves, strict=True)]
    current = [value + move for value, move in zip(past, moves, strict=True)]
    for found, before, now in zip(wrap(deltas.values)(), past, current, strict=True):
        assert found.dtype.as_numpy_dtype == before.dtype
        assert_close(found, before, now)
    for found, before, now in zip(wrap(deltas.delta)(), past, current, strict=True):
        assert found.dtype.as_numpy_dtype == before.dtype
        np.testing.assert_allclose(found, now - before, rtol=1 / 256)
    assert (wrap(deltas.values)()[2].numpy() == 1).all()
    assert (wrap(deltas.delta)()[2].numpy() == 0).all()


@pytest.mark.parametrize("wrap", OFTEN.values(), ids=OFTEN)
def test_what_is_small_or_of_another_dtype_is_whole(wrap):
    starts = [
        np.linspace(-1, 1, 7, dtype=np.float32),
        large(np.float16),
        np.arange(5000),
        np.zeros(5000, bool),
        np.float32(3.14159),
    ]
    weights = [tf.Variable(start) for start in starts]
    half = tf.Variable(tf.cast(large(), tf.bfloat16))
    weights.append(half)
    starts.append(half.numpy())
    deltas = PastDeltas(weights)

    def step():
        with deltas.step():
            for weight in weights:
                moved = tf.logical_not(weight) if weight.dtype == tf.bool else weight + weight
                weight.assign(moved)

    wrap(step)()
    for found, start in zip(wrap(deltas.values)(), starts, strict=True):
        np.testing.assert_array_equal(found, start)
    assert wrap(deltas.delta)()[3].numpy().all()
    found = [weight for weight in deltas.stored if weight.dtype == tf.bfloat16]
    assert len(found) == 1  # the copy of the bfloat16 variable


def test_small_movements_are_right_where_a_copy_would_not_be():
    start = large()
    weight = tf.Variable(start)
    deltas = PastDeltas([weight])
    with deltas.step():
        weight.assign_add(np.full(SHAPE, 1e-5, np.float32))
    true = np.linalg.norm(weight.numpy() - start)
    copied = tf.cast(tf.cast(start, tf.bfloat16), tf.float32)
    assert np.linalg.norm(deltas.delta()[0]) == pytest.approx(true, rel=1 / 256)
    assert np.linalg.norm(weight.numpy() - copied) > 50 * true


@pytest.mark.parametrize("wrap", OFTEN.values(), ids=OFTEN)
def test_what_is_not_finite(wrap):
    """By hand: before, after, past. A current NaN leaves the past unknown, never wrong."""
    inf, nan = np.inf, np.nan
    rows = [
        (inf, inf, inf),
        (-inf, -inf, -inf),
        (inf, 1.0, inf),
        (-inf, 1.0, -inf),
        (nan, 1.0, nan),
        (nan, nan, nan),
        (1.0, nan, nan),
        (1.0, inf, nan),
        (inf, -inf, nan),
        (2.0, 2.0, 2.0),
    ]
    before, after, past = (
        np.resize(np.float32(column), SHAPE) for column in zip(*rows, strict=True)
    )
    weight = tf.Variable(before)
    deltas = PastDeltas([weight])

    def step():
        with deltas.step():
            weight.assign(after)

    wrap(step)()
    np.testing.assert_array_equal(wrap(deltas.values)()[0], past)


@pytest.mark.parametrize("wrap", OFTEN.values(), ids=OFTEN)
def test_a_change_outside_of_a_step_is_noticed(wrap):
    weight = tf.Variable(large(), name="kernel")
    deltas = PastDeltas([weight])
    values, delta = wrap(deltas.values), wrap(deltas.delta)
    swapped = large()
    swapped[[3, 9]] = swapped[[9, 3]]
    one = large()
    one[5, 7] = np.nextafter(one[5, 7], np.float32(9))
    for changed in (one, swapped, large()[:, ::-1], large() + 1):
        weight.assign(changed)
        for asked in (values, delta):
            if wrap is OFTEN["eager"]:
                with pytest.raises(
                    InvalidArgument,
                    match=r"Could not read the past of 'kernel': expected no change since the last step",
                ):
                    asked()
            else:
                assert np.isnan(asked()[0]).all()
    deltas.sync()
    np.testing.assert_array_equal(values()[0], large() + 1)


def test_a_transposed_square_is_noticed():
    square = np.arange(65 * 65, dtype=np.float32).reshape(65, 65)
    weight = tf.Variable(square)
    deltas = PastDeltas([weight])
    weight.assign(square.T)
    with pytest.raises(InvalidArgument, match="Could not read the past"):
        deltas.values()


def test_inside_of_a_step_the_past_is_unknown_and_after_a_failed_one_too():
    weight = tf.Variable(large())
    deltas = PastDeltas([weight])
    with deltas.step(), pytest.raises(InvalidArgument, match="read the past outside of it"):
        deltas.values()
    np.testing.assert_array_equal(deltas.values()[0], large())
    with pytest.raises(ZeroDivisionError), deltas.step():
        raise ZeroDivisionError
    with pytest.raises(InvalidArgument, match="or call sync"):
        deltas.values()
    with deltas.step():
        weight.assign_add(tf.ones(SHAPE))
    assert_close(deltas.values()[0], large(), large() + 1)


def test_sync_is_hard():
    weights = [tf.Variable(large()), tf.Variable(1.0)]
    deltas = PastDeltas(weights)
    with deltas.step():
        for weight in weights:
            weight.assign(weight + 1)
    deltas.sync()
    assert all((delta.numpy() == 0).all() for delta in deltas.delta())
    for found, weight in zip(deltas.values(), weights, strict=True):
        np.testing.assert_array_equal(found, weight)
    for tau in (0.5, 0, float("nan"), tf.constant(1.0)):
        with pytest.raises(
            InvalidArgument, match=r"Could not sync deltas: expected tau to be 1, got .*Variables"
        ):
            deltas.sync(tau)


@pytest.mark.parametrize("wrap", OFTEN.values(), ids=OFTEN)
def test_gradients_are_those_of_the_copies(wrap):
    weights = [tf.Variable(large()), tf.Variable(2.0)]
    deltas = PastDeltas(weights)
    with deltas.step():
        for weight in weights:
            weight.assign_add(weight)

    def gradients(what):
        with tf.GradientTape() as tape:
            total = sum(tf.reduce_sum(one**2) for one in what())
        return tape.gradient(total, weights, unconnected_gradients="zero")

    assert all((one.numpy() == 0).all() for one in wrap(lambda: gradients(deltas.values))())
    found = wrap(lambda: gradients(deltas.delta))()
    for one, delta in zip(found, deltas.delta(), strict=True):
        np.testing.assert_allclose(one, 2 * delta)


def test_full_values_are_let_go_after_a_call():
    weight = tf.Variable(large())
    deltas = PastDeltas([weight])
    with deltas.standing_in() as handles:
        (handle,) = handles.values()
        read = tf.raw_ops.ReadVariableOp(resource=handle, dtype=tf.float32)
        np.testing.assert_array_equal(read, weight)
    assert list(handles) == list(deltas.handles) == [id(weight.handle)]
    read = tf.raw_ops.ReadVariableOp(resource=handle, dtype=tf.float32)
    assert read.shape == [0]


def test_what_it_takes():
    weights = [tf.Variable(tf.zeros((100, 100))), tf.Variable(tf.zeros(100))]
    deltas = PastDeltas(weights)
    assert deltas.nbytes == 2 * 100 * 100 + 8 + 4 * 100
    assert PastVariables(weights).nbytes == 4 * (100 * 100 + 100)
    assert all(not one.trainable for one in deltas.stored)
    assert {id(one) for one in deltas.variables} == {id(one) for one in deltas.stored}
    assert {one.name for one in deltas.stored} == {
        "delta/Variable:0",
        "mark/Variable:0",
        "past/Variable:0",
    }


def test_wrong_variables_are_refused():
    with pytest.raises(InvalidArgument, match="expected at least one variable, got none"):
        PastDeltas([])
    with pytest.raises(InvalidArgument, match="Could not make a past variable of 'a'"):
        PastDeltas({"a": 1.0})
