"""Initial values of a clone: those of the original, or drawn afresh; and its checkpoints."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from tb_pastnet.errors import InvalidArgument
from tb_pastnet.v1 import clone_network

pytestmark = pytest.mark.usefixtures("graph", "kind")

X = np.random.default_rng(0).normal(size=(4, 3)).astype("f")


def placeholder():
    return tf.placeholder(tf.float32, (None, 3), "x")


def drawn(name="net/w", shape=(3, 3), seed=None):
    return tf.get_variable(name, shape, initializer=tf.random_normal_initializer(seed=seed))


def test_the_variables_of_both_get_the_same_values_each_time_they_are_initialized():
    x, w = placeholder(), drawn()
    (own,) = clone_network(x, x @ w).variables
    with tf.Session() as session:
        seen = []
        for _ in range(3):
            session.run(tf.global_variables_initializer())
            one, two = session.run([w, own])
            np.testing.assert_array_equal(one, two)
            seen.append(one)
        assert not np.array_equal(seen[0], seen[1])


def test_its_initializer_takes_the_values_that_the_originals_have_then():
    x, w = placeholder(), drawn()
    copy = clone_network(x, x @ w)
    with tf.Session() as session:
        session.run(w.assign(3.0 * np.ones((3, 3))))  # as restored: no initializer has run
        session.run(copy.initializer)
        np.testing.assert_array_equal(session.run(copy.variables[0]), 3 * np.ones((3, 3)))


def test_a_live_session_gives_it_its_values_at_once():
    x, w = placeholder(), drawn()
    with tf.Session() as session:
        session.run(w.assign(np.full((3, 3), 7.0)))
        copy = clone_network(x, x @ w, session=session)
        np.testing.assert_array_equal(session.run(copy.variables[0]), np.full((3, 3), 7.0))
        other = clone_network(x, x @ w, "other", initial="initializer", session=session)
        values = session.run(other.variables[0])
        assert np.ptp(values) > 0
        np.testing.assert_array_equal(session.run(w), np.full((3, 3), 7.0))
        session.run(other.sync_op)
        np.testing.assert_array_equal(session.run(other.variables[0]), np.full((3, 3), 7.0))


def test_a_session_without_values_is_refused():
    x, w = placeholder(), drawn()
    y = x @ w
    with (
        tf.Session() as session,
        pytest.raises(
            InvalidArgument,
            match=r"Could not clone a network: expected its variables to have values in the session, "
            r"got one that isn't initialized\. Initialize or restore the original first, or leave ",
        ),
    ):
        clone_network(x, y, session=session)


@pytest.mark.parametrize("seed", [None, 5], ids=["seed of the graph", "own seed"])
def test_afresh_is_not_the_values_of_the_original_and_the_same_in_each_process(seed):
    found = []
    for _ in range(2):
        with tf.Graph().as_default():
            tf.set_random_seed(11)
            x, w = placeholder(), drawn(seed=seed)
            (one,) = clone_network(x, x @ w, "one", initial="initializer").variables
            (two,) = clone_network(x, x @ w, "two", initial="initializer").variables
            with tf.Session() as session:
                session.run(tf.global_variables_initializer())
                found.append(session.run([w, one, two]))
    for one, two in zip(*found, strict=True):
        np.testing.assert_array_equal(one, two)
    for one, two in ((0, 1), (0, 2), (1, 2)):
        assert not np.isclose(found[0][one], found[0][two]).any()


def test_afresh_is_drawn_from_the_distribution_of_the_original():
    x = tf.placeholder(tf.float32, (None, 100), "x")
    w = tf.get_variable(
        "w", (100, 200), initializer=tf.random_uniform_initializer(4.0, 6.0, seed=1)
    )
    (own,) = clone_network(x, x @ w, initial="initializer").variables
    with tf.Session() as session:
        session.run(own.initializer)
        values = session.run(own)
    assert 4 <= values.min() < 4.01 < 5.99 < values.max() <= 6
    assert abs(values.mean() - 5) < 0.02  # of 20,000: standard error 0.004


def test_stateless_initializers_draw_other_numbers_as_well():
    x = placeholder()
    w = tf.get_variable("w", initializer=tf.random.stateless_normal((3, 3), seed=(1, 2)))
    (own,) = clone_network(x, x @ w, initial="initializer").variables
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        one, two = session.run([w, own])
    assert not np.isclose(one, two).any()


def test_afresh_keeps_what_initial_values_have_to_do_with_one_another():
    x, w = placeholder(), drawn()
    half = tf.get_variable("net/half", initializer=w.initial_value / 2.0)
    start = tf.get_variable("net/start", initializer=tf.zeros((3,)))
    copy = clone_network(x, x @ w @ half + start, initial="initializer")
    own, own_half, own_start = copy.variables
    with tf.Session() as session:
        session.run(copy.initializer)
        np.testing.assert_array_equal(session.run(own) / 2, session.run(own_half))
        np.testing.assert_array_equal(session.run(own_start), np.zeros(3))


def test_afresh_with_an_initial_value_that_is_fed():
    x, fed = placeholder(), tf.placeholder(tf.float32, (3, 3), "fed")
    w = tf.get_variable("w", initializer=fed)
    with pytest.raises(
        InvalidArgument,
        match=r"Could not draw an initial value for the copy of 'w': expected inputs .* got none "
        r"for placeholder 'fed'",
    ):
        clone_network(x, x @ w, "one", initial="initializer")
    copy = clone_network(x, x @ w, "two", initial="initializer", share="fed")
    with tf.Session() as session:
        session.run(copy.initializer, {fed: np.eye(3)})
        np.testing.assert_array_equal(session.run(copy.variables[0]), np.eye(3))


def test_partitioned_variables_keep_their_whole_in_checkpoints(tmp_path):
    x = placeholder()
    w = tf.get_variable("net/w", (3, 2), partitioner=tf.fixed_size_partitioner(2))
    copy = clone_network(x, x @ tf.convert_to_tensor(w))
    assert [one.shape.as_list() for one in copy.variables] == [[2, 2], [1, 2]]
    saver = tf.train.Saver(copy.variables)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        expected = session.run(tf.convert_to_tensor(w))
        path = saver.save(session, str(tmp_path / "saved"))
        assert tf.train.list_variables(path) == [("clone/net/w", [3, 2])]
        np.testing.assert_array_equal(tf.train.load_variable(path, "clone/net/w"), expected)
        session.run([one.assign(one * 0.0) for one in copy.variables])
        saver.restore(session, path)
        np.testing.assert_array_equal(np.vstack(session.run(copy.variables)), expected)


def test_a_checkpoint_of_the_original_is_restored_into_the_clone(tmp_path):
    x, w = placeholder(), drawn()
    before = tf.train.Saver()
    copy = clone_network(x, x @ w)
    with tf.Session() as session:
        session.run(w.assign(np.full((3, 3), 2.0)))
        path = before.save(session, str(tmp_path / "saved"))
        session.run(w.assign(np.zeros((3, 3))))
        own = dict(zip(copy.mapping, copy.variables, strict=True))
        tf.train.Saver(own).restore(session, path)
        np.testing.assert_array_equal(session.run(copy.variables[0]), np.full((3, 3), 2.0))
        np.testing.assert_array_equal(session.run(w), np.zeros((3, 3)))


def test_a_monitored_session_initializes_it():
    x, w = placeholder(), drawn()
    copy = clone_network(x, x @ w)
    with tf.train.MonitoredTrainingSession() as session:
        one, two = session.run([w, copy.variables[0]])
    np.testing.assert_array_equal(one, two)


def test_a_variable_keeps_its_constraint_and_its_unknown_shape():
    x = placeholder()
    w = tf.get_variable("w", (3, 3), constraint=tf.abs)
    free = tf.Variable(
        tf.placeholder_with_default(np.float32(1), None), validate_shape=False, name="free"
    )
    copy = clone_network(x, (x @ w) * free)
    own, own_free = copy.variables
    assert own.constraint is tf.abs
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(tf.assign(own_free, [1.0, 2.0, 3.0], validate_shape=False))
        one, two = session.run([x @ w, copy.outputs], {x: X})
        np.testing.assert_allclose(two, one * [1, 2, 3], rtol=1e-6)
