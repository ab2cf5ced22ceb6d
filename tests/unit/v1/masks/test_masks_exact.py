"""What is held stays bit-identical under every optimizer, and what else moves weights."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from tb_pastnet import v1
from tests.masked_graphs import KERNEL, begun, network, start, value_of

pytestmark = pytest.mark.usefixtures("graph")
STEPS = 100
OPTIMIZERS = {
    "sgd": lambda: tf.train.GradientDescentOptimizer(0.01),
    "momentum": lambda: tf.train.MomentumOptimizer(0.01, 0.9),
    "nesterov": lambda: tf.train.MomentumOptimizer(0.01, 0.9, use_nesterov=True),
    "adam": lambda: tf.train.AdamOptimizer(0.01),
    "adagrad": lambda: tf.train.AdagradOptimizer(0.01),
    "adadelta": lambda: tf.train.AdadeltaOptimizer(0.5),
    "rmsprop": lambda: tf.train.RMSPropOptimizer(0.01, momentum=0.9, centered=True),
    "ftrl": lambda: tf.train.FtrlOptimizer(0.01, l1_regularization_strength=0.01),
    "proximal descent": lambda: tf.train.ProximalGradientDescentOptimizer(
        0.01, l2_regularization_strength=0.1
    ),
    "proximal adagrad": lambda: tf.train.ProximalAdagradOptimizer(
        0.01, l2_regularization_strength=0.1
    ),
    "adagrad da": lambda: tf.train.AdagradDAOptimizer(
        0.01, tf.train.get_or_create_global_step(), l2_regularization_strength=0.1
    ),
}


def hold(masks):
    """Holds a part of the kernel, and says which of it is pruned and frozen."""
    rng = np.random.default_rng(5)
    kept, trainable = rng.random((2, 6, 4)) < 0.6
    masks.prune(KERNEL, kept)
    masks.freeze(KERNEL, trainable)
    return ~kept, kept & ~trainable


# Each with one kind of variables.
@pytest.mark.parametrize(
    ("name", "kind"),
    [
        pytest.param(name, kind, marks=pytest.mark.prove if (at + turn) % 2 else ())
        for at, name in enumerate(OPTIMIZERS)
        for turn, kind in enumerate(("reference", "resource"))
    ],
    indirect=["kind"],
)
def test_every_optimizer(kind, name):
    loss = network()
    masks = v1.Masks()
    train = masks.wrap(OPTIMIZERS[name]()).minimize(loss, tf.train.get_or_create_global_step())
    with tf.Session() as session:
        begun(session, masks)
        start(session, train, 5)  # momentum of before
        pruned, frozen = hold(masks)
        first = value_of(session, KERNEL)
        for _ in range(STEPS):
            session.run(train)
            now = value_of(session, KERNEL)
            np.testing.assert_array_equal(now[pruned], 0)
            assert now[frozen].tobytes() == first[frozen].tobytes()
        free = ~pruned & ~frozen
        assert (now[free] != first[free]).all()
        assert masks.audit(STEPS) == []


@pytest.mark.parametrize("name", ["momentum", "adam", "ftrl"])
@pytest.mark.parametrize("parts", [1, 2])
def test_rows_of_a_table(kind, name, parts):
    partitioner = tf.fixed_size_partitioner(2) if parts == 2 else None
    first = tf.random_uniform_initializer(1, 2, seed=1)
    table = tf.get_variable("table", (6, 4), initializer=first, partitioner=partitioner)
    rows = tf.nn.embedding_lookup(table, [0, 3, 3, 5], "div")
    masks = v1.Masks()
    optimizer = masks.wrap(OPTIMIZERS[name]())
    pairs = optimizer.compute_gradients(tf.reduce_sum(rows**2))
    assert all(isinstance(gradient, tf.IndexedSlices) for gradient, _ in pairs)
    train = optimizer.apply_gradients(pairs)
    kept = np.ones((6, 4), bool)
    kept[3] = False
    kept[0, 1] = False
    with tf.Session() as session:
        begun(session, masks)
        start(session, train)
        first = value_of(session, "table")
        masks.freeze("table", kept)
        start(session, train, STEPS)
        now = value_of(session, "table")
    np.testing.assert_array_equal(now[~kept], first[~kept])
    assert (now[5] != first[5]).any()
    assert (now[0, [0, 2, 3]] != first[0, [0, 2, 3]]).any()


def test_gradients_are_zero_before_they_are_clipped(kind):
    loss = network()
    masks = v1.Masks()
    optimizer = masks.wrap(tf.train.GradientDescentOptimizer(0.01))
    gradients, variables = zip(*optimizer.compute_gradients(loss), strict=True)
    norm = tf.global_norm(gradients)
    expected = tf.gradients(loss, list(variables))
    with tf.Session() as session:
        begun(session, masks)
        pruned, frozen = hold(masks)
        found, norm, whole = session.run([gradients, norm, expected])
    whole[0] = np.where(pruned | frozen, 0, whole[0])
    for one, other in zip(found, whole, strict=True):
        np.testing.assert_array_equal(one, other)
    squares = sum((one.astype("f8") ** 2).sum() for one in whole)
    np.testing.assert_allclose(norm, np.sqrt(squares), rtol=1e-6)


def test_a_gradient_that_is_not_finite_goes_no_further(kind):
    with tf.Session() as session:
        weight = tf.get_variable("w", initializer=[1.0, 2.0])
        masks = v1.Masks()
        train = masks.wrap(tf.train.MomentumOptimizer(0.5, 0.9)).minimize(
            tf.reduce_sum(weight * [np.nan, 1.0])
        )
        begun(session, masks)
        masks.freeze("w", channels=[0])
        start(session, train, 2)
        np.testing.assert_allclose(value_of(session, "w"), [1, 2 - 0.5 - 0.95])


def test_an_update_of_any_kind(kind):
    """Weight decay after the optimizer, and a moving average of what is held."""
    loss = network()
    masks = v1.Masks()
    average = tf.train.ExponentialMovingAverage(0.9)
    kernel = tf.trainable_variables()[0]

    def update():
        step = tf.train.AdamOptimizer(0.01).minimize(loss)
        with tf.control_dependencies([step]):
            return kernel.assign(0.99 * kernel.read_value())

    train = masks.hold(update)
    with tf.control_dependencies([train]):
        follow = average.apply([kernel])
    with tf.Session() as session:
        # An average is initialized from its variable, which has to have a value by then.
        session.run(tf.variables_initializer(tf.trainable_variables()))
        begun(session, masks)
        first = value_of(session, KERNEL)
        pruned, frozen = hold(masks)
        start(session, follow, STEPS)
        now, shadow = session.run([kernel, average.average(kernel)])
    np.testing.assert_array_equal(now[pruned], 0)
    assert now[frozen].tobytes() == first[frozen].tobytes()
    np.testing.assert_array_equal(shadow[frozen], first[frozen])
    assert (now[~pruned & ~frozen] != first[~pruned & ~frozen]).all()


def test_two_updates_leave_each_others_weights(kind):
    """As of two networks that are trained against each other, in one session.run."""
    first, second = network("one"), network("two")
    masks = v1.Masks()
    trains = [
        masks.wrap(tf.train.GradientDescentOptimizer(0.01)).minimize(loss, var_list=weights)
        for loss, weights in (
            (first, tf.trainable_variables("one")),
            (second, tf.trainable_variables("two")),
        )
    ]
    written = [
        {op.name for op in _ancestors(train) if op.type in ("Assign", "AssignVariableOp")}
        for train in trains
    ]
    assert not written[0] & written[1]
    with tf.Session() as session:
        begun(session, masks)
        for _ in range(20):
            session.run(trains)
        np.testing.assert_array_equal(
            value_of(session, "one/dense/w"), value_of(session, "two/dense/w")
        )


def test_named_variables_of_an_update(kind):
    weights = [tf.get_variable(name, initializer=[1.0, 2.0]) for name in ("a", "b")]
    masks = v1.Masks()
    train = masks.hold(lambda: [one.assign_add([1.0, 1.0]) for one in weights], ["a"])
    with tf.Session() as session:
        begun(session, masks)
        masks.freeze("a")
        masks.freeze("b")
        session.run(train)
        assert [session.run(one).tolist() for one in weights] == [[1, 2], [2, 3]]


def test_without_them_momentum_moves_what_a_gradient_mask_holds(kind):
    """What this is for: a mask on the gradient alone doesn't hold."""
    loss = network()
    kernel = tf.trainable_variables()[0]
    optimizer = tf.train.MomentumOptimizer(0.01, 0.9)
    mask = tf.placeholder_with_default(tf.ones((6, 4)), (6, 4))
    pairs = [(g * mask if v is kernel else g, v) for g, v in optimizer.compute_gradients(loss)]
    train = optimizer.apply_gradients(pairs)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        start(session, train)
        before = value_of(session, KERNEL)
        session.run(train, {mask: np.zeros((6, 4))})
        assert (value_of(session, KERNEL) != before).all()


def _ancestors(op):
    found, waiting = {op}, [op]
    while waiting:
        one = waiting.pop()
        for before in [*one.control_inputs, *(tensor.op for tensor in one.inputs)]:
            if before not in found:
                found.add(before)
                waiting.append(before)
    return found
