"""Clones of networks that are built, fed or placed in unusual ways."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from tb_pastnet.v1 import clone_network

pytestmark = pytest.mark.usefixtures("graph", "kind", "control_flow")

RNG = np.random.default_rng(0)
X = RNG.normal(size=(4, 3)).astype("f")


def placeholder(name="x", shape=(None, 3)):
    return tf.placeholder(tf.float32, shape, name)


def weight(name="net/w", value=None, **settings):
    value = RNG.normal(size=(3, 3)).astype("f") if value is None else value
    return tf.get_variable(name, initializer=tf.constant(value), **settings)


def run(fetches, feed=None, before=()):
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for one in before:
            session.run(one)
        return session.run(fetches, feed)


def test_structures_come_back_as_they_were_given():
    x, y = placeholder(), placeholder("y")
    w = weight()
    outputs = {"sum": x @ w + y, "both": [x @ w, (y @ w,)]}
    copy = clone_network([x, y], outputs)
    assert copy.inputs == [x, y]
    assert tf.nest.map_structure(lambda one: one.shape.as_list(), copy.outputs) == {
        "sum": [None, 3],
        "both": [[None, 3], ([None, 3],)],
    }
    found, expected = run([copy.outputs, outputs], {x: X, y: 2 * X})
    for one, two in zip(tf.nest.flatten(found), tf.nest.flatten(expected), strict=True):
        np.testing.assert_array_equal(one, two)


def test_new_inputs_are_what_the_copy_is_computed_from():
    x, other = placeholder(), placeholder("other")
    w = weight(value=np.eye(3, dtype="f"))
    copy = clone_network({"x": x}, x @ w, new_inputs={"x": other * 2.0})
    assert copy.inputs["x"].op.type == "Mul"
    np.testing.assert_allclose(run(copy.outputs, {other: X}), 2 * X)


def test_a_new_input_may_be_a_variable_that_is_trained():
    """As in an attack on the input."""
    x = placeholder(shape=(1, 3))
    y = tf.reduce_sum(tf.square(x @ weight(value=np.eye(3, dtype="f"))))
    image = tf.get_variable("image", initializer=tf.ones((1, 3)))
    copy = clone_network(x, y, new_inputs=tf.convert_to_tensor(image))
    np.testing.assert_allclose(run(tf.gradients(copy.outputs, image)[0]), [[2.0] * 3])


def test_an_intermediate_tensor_is_an_input():
    x = placeholder()
    first, second = weight("first"), weight("second")
    hidden = tf.nn.relu(x @ first)
    copy = clone_network(hidden, hidden @ second)
    assert list(copy.mapping) == ["second"]
    zero = first.assign(tf.zeros((3, 3)))
    assert not run(copy.outputs, {x: X}, [zero]).any()  # it is fed by the original


def test_one_output_of_an_operation_is_an_input_and_another_is_copied():
    x = placeholder(shape=(None, 6))
    left, right = tf.split(x * weight(value=np.float32(2.0)), 2, axis=1)
    copy = clone_network([left, x], left - right, new_inputs=[left * 0.0, x])
    np.testing.assert_allclose(run(copy.outputs, {x: np.hstack([X, 3 * X])}), -6 * X, rtol=1e-6)


def test_an_output_is_an_input():
    x = placeholder()
    copy = clone_network(x, [x, x @ weight()])
    assert copy.outputs[0] is x


def test_a_shared_layer_is_one_layer_in_the_copy():
    x = placeholder()
    w = weight()
    copy = clone_network(x, (x @ w) @ w)
    assert len(copy.variables) == 1


def test_shapes_that_were_set_by_hand_are_known_of_the_copy():
    x = tf.placeholder(tf.float32, None, "x")
    rows = tf.reshape(x, tf.stack([tf.size(x) // 3, 3]))
    rows.set_shape((7, 3))
    y = rows @ weight()
    assert clone_network(x, rows).outputs.shape.as_list() == [7, 3]
    assert clone_network(x, y, scope="other").outputs.shape.as_list() == [7, 3]


def test_shapes_are_not_those_of_another_batch():
    x, other = placeholder(shape=(2, 3)), placeholder("other")
    copy = clone_network(x, tf.nn.relu(x) @ weight(value=np.eye(3, dtype="f")), new_inputs=other)
    assert copy.outputs.shape.as_list() == [None, 3]
    assert run(copy.outputs, {other: X}).shape == (4, 3)


def test_dropout_with_a_seed_drops_the_same():
    x = placeholder()
    y = tf.nn.dropout(x @ weight(), rate=0.5, seed=3)
    copy = clone_network(x, y)
    one, two = run([y, copy.outputs], {x: X})
    assert 0 < (one == 0).sum() < one.size
    np.testing.assert_array_equal(one, two)


def test_devices_are_kept():
    x = placeholder()
    with tf.device("/CPU:0"):
        w = weight()
        y = x @ w
    copy = clone_network(x, y)
    assert copy.variables[0].device == "/device:CPU:0"
    assert copy.outputs.op.device == "/device:CPU:0"


def test_operations_are_colocated_with_those_of_the_copy_alone():
    x = placeholder()
    w = weight()
    hidden = x @ w
    with tf.colocate_with(hidden.op):
        y = tf.nn.relu(hidden)
    with tf.colocate_with(w.op):
        y = y + 1.0
    copy = clone_network(x, y)
    groups = {
        group.decode()
        for operation in tf.get_default_graph().get_operations()
        if operation.name.startswith("clone/")
        for group in operation.colocation_groups()
    }
    assert "loc:@clone/" + hidden.op.name in groups
    assert all(group.startswith("loc:@clone/") for group in groups)
    one, two = run([y, copy.outputs], {x: X})
    np.testing.assert_array_equal(one, two)


def test_what_the_output_waits_for_is_done_in_the_copy():
    x = placeholder()
    w, count = weight(), weight("net/count", np.float32(0))
    with tf.control_dependencies([count.assign_add(1.0), tf.no_op(), x]):
        y = x @ w + 0.0
    copy = clone_network(x, y)
    assert list(copy.mapping.values()) == ["clone/net/w", "clone/net/count"]
    counts = [count, copy.variables[1]]
    assert run(counts, before=[]) == [0.0, 0.0]
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(copy.outputs, {x: X})
        assert session.run(counts) == [0.0, 1.0]


def test_it_waits_for_nothing_of_the_caller():
    x, missing = placeholder(), placeholder("missing")
    y = x @ weight()
    with tf.control_dependencies([missing]), tf.name_scope("elsewhere"):
        copy = clone_network(x, y)
    assert copy.outputs.op.name == f"clone/{y.op.name}"
    one, two = run([y, copy.outputs], {x: X})
    np.testing.assert_array_equal(one, two)


def test_a_clone_is_cloned():
    x, w = placeholder(), weight()
    y = tf.while_loop(lambda a: tf.reduce_sum(a) < 9.0, lambda a: a + tf.exp(a @ w), [x])
    first = clone_network(x, y)
    second = clone_network(x, first.outputs, scope="second")
    assert list(second.mapping.values()) == ["second/clone/net/w"]
    gradients = [
        tf.gradients(one, variable)[0]
        for one, variable in ((y, w), (second.outputs, second.variables[0]))
    ]
    results = run([y, second.outputs, *gradients], {x: X})
    np.testing.assert_array_equal(results[0], results[1])
    np.testing.assert_array_equal(results[2], results[3])


def test_sparse_gradients_move_the_rows_of_the_copy_alone():
    ids = tf.placeholder(tf.int32, (None,), "ids")
    table = weight("net/table", RNG.normal(size=(5, 2)).astype("f"))
    copy = clone_network(ids, tf.nn.embedding_lookup(table, ids))
    (own,) = copy.variables
    train = tf.train.GradientDescentOptimizer(1.0).minimize(
        tf.reduce_sum(copy.outputs), var_list=[own]
    )
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        before = session.run(table)
        session.run(train, {ids: [1, 3, 3]})
        np.testing.assert_array_equal(session.run(table), before)
        expected = before - np.array([0, 1, 0, 2, 0])[:, None]
        np.testing.assert_allclose(session.run(own), expected, rtol=1e-6)


def test_a_network_without_variables_has_none():
    x = placeholder()
    copy = clone_network(x, tf.nn.relu(x))
    assert copy.variables == []
    with tf.Session() as session:
        session.run([copy.initializer, copy.sync_op])
        np.testing.assert_array_equal(session.run(copy.outputs, {x: X}), np.maximum(X, 0))
