"""One operation that syncs a scope with another: what it copies."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from tb_pastnet.v1 import sync_op

pytestmark = pytest.mark.usefixtures("graph")
RNG = np.random.default_rng(0)
TWO = tf.fixed_size_partitioner(2)


def variable(name, value, **settings):
    value = tf.constant(value)
    if "partitioner" in settings:
        return tf.get_variable(name, shape=value.shape, initializer=value, **settings)
    return tf.get_variable(name, initializer=value, **settings)


def network(scope, kernel, mean=0.0, count=0, **settings):
    variable(f"{scope}/kernel", kernel, **settings)
    variable(f"{scope}/norm/mean", mean, trainable=False)
    variable(f"{scope}/count", count)


def fetched(session, scope):
    """The values of a scope's variables by the rest of their names; parts are fetched apart."""
    return {
        one.op.name[len(scope) + 1 :]: session.run(one)
        for one in tf.global_variables()
        if one.op.name.startswith(f"{scope}/")
    }


def same(found, expected):
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        np.testing.assert_array_equal(found[name], value)


def test_a_sync_copies_all(kind):
    kernel = RNG.normal(size=(5, 3)).astype("f")
    network("net", kernel, 2.0, 7)
    network("past", 0 * kernel)
    sync = sync_op("net", "past")
    assert isinstance(sync, tf.Operation)
    assert sync.name == "sync"
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        assert session.run(sync) is None
        for scope in ("net", "past"):
            same(fetched(session, scope), {"kernel": kernel, "norm/mean": 2.0, "count": 7})


@pytest.mark.parametrize("resource", [False, True])
@pytest.mark.parametrize("past_resource", [False, True])
def test_a_past_of_another_kind_is_a_copy(resource, past_resource):
    variable("net/kernel", [1.0, 2.0], use_resource=resource)
    past = variable("past/kernel", [0.0, 0.0], use_resource=past_resource)
    sync = sync_op("net", "past")
    move = tf.global_variables()[0].assign_add([1.0, 1.0])
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(sync)
        session.run(move)
        assert session.run(past).tolist() == [1.0, 2.0]


def test_a_soft_sync_goes_a_part_of_the_way(kind):
    current, past = RNG.normal(size=(2, 5, 3))  # float64: tau isn't rounded to less
    network("net", current, 2.0, 7)
    network("past", past)
    tau = tf.placeholder(tf.float64, ())
    number, tensor = sync_op("net", "past", tau=0.005), sync_op("net", "past", tau=tau)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for step, tau_now in ((number, 0.005), (number, 0.005), (tensor, 0.3)):
            session.run(step, {tau: tau_now})
            past = tau_now * current + (1 - tau_now) * past
            # Statistics and what isn't floating are copied whole.
            found = fetched(session, "past")
            np.testing.assert_allclose(found.pop("kernel"), past, rtol=1e-14)
            same(found, {"norm/mean": 2.0, "count": 7})


@pytest.mark.parametrize(("statistics", "mean"), [(False, 4.0), (True, 1.0)])
def test_statistics_follow_softly_where_that_is_asked(kind, statistics, mean):
    variable("net/mean", np.float32(4.0), trainable=False)
    past = variable("past/mean", np.float32(0.0), trainable=False)
    with tf.Session() as session:
        soft = sync_op("net", "past", tau=0.25, statistics=statistics)
        session.run(tf.global_variables_initializer())
        session.run(soft)
        assert session.run(past) == mean


def test_half_of_the_precision_is_kept_as_it_is(kind):
    variable("net/w", np.float16([1.0, 65504.0]))
    past = variable("past/w", np.float16([0.0, 0.0]))
    with tf.Session() as session:
        soft = sync_op("net", "past", tau=0.5)
        session.run(tf.global_variables_initializer())
        session.run(soft)
        np.testing.assert_array_equal(session.run(past), np.float16([0.5, 32752.0]))


@pytest.mark.parametrize(("ours", "theirs"), [(TWO, TWO), (TWO, None), (None, TWO)])
@pytest.mark.parametrize("tau", [1.0, 0.25])
def test_partitioned_variables_are_wholes(kind, ours, theirs, tau):
    current, past = RNG.normal(size=(2, 5, 3)).astype("f")
    both = [{"partitioner": one} if one else {} for one in (ours, theirs)]
    made = variable("net/w", current, **both[0])
    shadow = variable("past/w", past, **both[1])
    sync = sync_op("net", "past", tau)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(sync)
        expected = tau * current + (1 - tau) * past
        np.testing.assert_allclose(session.run(tf.convert_to_tensor(shadow)), expected, rtol=1e-6)
        np.testing.assert_array_equal(session.run(tf.convert_to_tensor(made)), current)


@pytest.mark.parametrize("partitioner", [None, TWO], ids=["whole", "partitioned"])
@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
def test_the_copy_shares_nothing(kind, partitioner, sparse):
    start = RNG.normal(size=(6, 2)).astype("f")
    weight = variable("net/w", start)
    past = variable("past/w", 0 * start, **({"partitioner": partitioner} if partitioner else {}))
    sync = sync_op("net", "past")
    rows = tf.gather(weight, [0, 5]) if sparse else weight
    train = tf.train.MomentumOptimizer(0.1, 0.9).minimize(tf.reduce_sum(rows**2), var_list=weight)
    overwritten = (
        tf.group(*(part.assign(0 * part) for part in past))
        if partitioner
        else past.assign(0 * past)
    )
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(sync)
        for _ in range(3):
            session.run(train)
        np.testing.assert_array_equal(session.run(tf.convert_to_tensor(past)), start)
        trained = session.run(weight)
        assert (trained[[0, 5]] != start[[0, 5]]).all()
        session.run(overwritten)
        np.testing.assert_array_equal(session.run(weight), trained)


def test_the_past_may_be_a_part_of_the_network(kind):
    network("net", 3.0, 2.0, 7)
    variable("past/kernel", 0.0)
    sync = sync_op("net", "past")
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(sync)
        same(fetched(session, "past"), {"kernel": 3.0})


def test_scopes_are_taken_exactly(kind):
    for scope, value in (("net", 1.0), ("net_2", 2.0), ("outer/net", 3.0)):
        variable(f"{scope}/w", value)
    pasts = [variable(f"{scope}/w", 0.0) for scope in ("past", "past_2")]
    sync = sync_op("net/", "past")
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(sync)
        assert session.run(pasts) == [1.0, 0.0]


@pytest.mark.parametrize(
    ("current", "past"), [("w", "past/w"), ("net/w", "net/past/w"), ("past/net/w", "past/w")]
)
def test_one_scope_may_lie_inside_of_the_other(kind, current, past):
    both = [variable(current, 1.0), variable(past, 0.0)]
    sync = sync_op(current[:-1], past[:-1])
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(sync)
        assert session.run(both) == [1.0, 1.0]


def test_what_comes_after_waits(kind):
    weight, past = variable("net/w", 0.0), variable("past/w", -1.0)
    moved = weight.assign_add(1.0)
    sparse = tf.sparse.from_dense([0.0, 1.0])
    sync = sync_op("net", "past", after={"moved": [moved, tf.no_op()], "others": [sparse, weight]})
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for step in range(1, 21):
            session.run(sync)
            assert session.run(past) == step


def test_what_comes_before_lets_its_writers_wait(world):
    weight, mean = variable("net/w", 0.0), variable("net/mean", 0.0, trainable=False)
    past, past_mean = variable("past/w", 0.0), variable("past/mean", 0.0)
    moved = tf.cond(weight > -1.0, lambda: tf.identity(mean.assign_add(1.0)), lambda: 0.0)
    answer = past + past_mean + 0.0
    sync = sync_op("net", "past", after=answer, before=[moved])
    with tf.control_dependencies([sync, moved]):
        train = weight.assign_add(1.0).op
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for now in range(200):
            before, _ = session.run([answer, train])
            assert before == 2 * max(now - 1, 0)
            assert session.run([past, past_mean]) == [now, now]


def test_a_sync_in_a_branch(world):
    variable("net/w", 3.0)
    past = variable("past/w", 0.0)
    chosen = tf.placeholder(tf.bool, ())
    branch = tf.cond(chosen, lambda: tf.group(sync_op("net", "past")), tf.no_op)
    found = []
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for now in (False, True):
            session.run(branch, {chosen: now})
            found.append(session.run(past))
    assert found == [0.0, 3.0]


def test_a_graph_that_is_not_the_default_one():
    with tf.Graph().as_default() as other:
        variable("net/w", 3.0)
        variable("past/w", 0.0)
    assert sync_op("net", "past", graph=other, name="copy").graph is other
    assert [one.type for one in tf.get_default_graph().get_operations()] == []
