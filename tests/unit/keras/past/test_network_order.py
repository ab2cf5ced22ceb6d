"""The order inside of a step: which weights the past has, after each of its operations."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from tb_pastnet import PastDeltas, PastNetwork

WAYS = {
    "eager": lambda function: function,
    "graph": tf.function,
    "XLA": tf.function(jit_compile=True),
}
ONE = tf.constant(1.0)


@pytest.fixture
def weight():
    return tf.Variable(0.0)


@pytest.fixture
def past(weight):
    return PastNetwork(tf.function(lambda x: x * weight), example=ONE)


@pytest.mark.parametrize("way", WAYS)
def test_at_lag_one_the_past_is_the_step_before(weight, past, way):
    @WAYS[way]
    def step(x):
        yesterday = past(x)
        past.sync()
        today = past(x)
        weight.assign_add(1.0)
        return yesterday, today, past(x), weight * x

    found = [tuple(float(one) for one in step(ONE)) for _ in range(20)]
    assert found == [(max(n - 1, 0), n, n, n + 1) for n in range(20)]


@pytest.mark.parametrize("way", WAYS)
def test_around_an_update(weight, past, way):
    @WAYS[way]
    def step(x):
        with past.step():
            weight.assign_add(1.0)
        return past(x)

    assert [float(step(ONE)) for _ in range(20)] == list(range(20))


@pytest.mark.parametrize("way", ["eager", "graph"])
def test_around_an_update_with_deltas(way):
    weight = tf.Variable(0.0)
    network = tf.function(lambda x: x * weight)
    past = PastNetwork(network, past=PastDeltas([weight]), example=ONE)

    @WAYS[way]
    def step(x):
        with past.step():
            weight.assign_add(1.0)
        return past(x)

    assert [float(step(ONE)) for _ in range(20)] == list(range(20))


@pytest.mark.parametrize("way", WAYS)
def test_every_k_steps(weight, past, way):
    count = tf.Variable(0)

    def sync():
        past.sync()
        return 0

    @WAYS[way]
    def step(x):
        tf.cond(count % 5 == 0, sync, lambda: 0)
        weight.assign_add(1.0)
        count.assign_add(1)
        return past(x)

    assert [float(step(ONE)) for _ in range(20)] == [n - n % 5 for n in range(20)]


@pytest.mark.parametrize("way", WAYS)
def test_a_branch_that_looks_at_the_past(weight, past, way):
    @WAYS[way]
    def step(x):
        weight.assign_add(1.0)
        return tf.cond(weight > 2.5, lambda: past(x), lambda: -x)

    assert [float(step(ONE)) for _ in range(4)] == [-1.0, -1.0, 0.0, 0.0]


@pytest.mark.parametrize("way", WAYS)
def test_many_steps_in_one_call(weight, past, way):
    @WAYS[way]
    def steps(x):
        seen = tf.TensorArray(tf.float32, 8)
        for n in tf.range(8):
            with past.step():
                weight.assign_add(1.0)
            seen = seen.write(n, past(x))
        return seen.stack()

    np.testing.assert_array_equal(steps(ONE), np.arange(8))
    np.testing.assert_array_equal(steps(ONE), np.arange(8, 16))


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("tensor", [False, True], ids=["number", "tensor"])
def test_a_soft_sync_each_step(weight, past, way, tensor):
    tau = tf.constant(0.25) if tensor else 0.25

    @WAYS[way]
    def step(x):
        weight.assign_add(1.0)
        past.sync(tau)
        return past(x)

    expected, slow = [], 0.0
    for n in range(1, 11):
        slow = 0.25 * n + 0.75 * slow
        expected.append(slow)
    np.testing.assert_allclose([float(step(ONE)) for _ in range(10)], expected, rtol=1e-6)


def test_a_past_that_is_made_while_a_step_is_traced(weight):
    made = []

    @tf.function
    def step(x):
        if not made:
            made.append(PastNetwork(tf.function(lambda y: y * weight), example=ONE))
        return made[0](x)

    weight.assign(3.0)
    assert float(step(ONE)) == 3.0
    weight.assign(4.0)
    assert float(step(ONE)) == 3.0
    assert float(made[0](ONE)) == 3.0
