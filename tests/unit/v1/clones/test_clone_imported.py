"""Clones of graphs that come from files, and what a plain import of a graph copies."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from tb_pastnet.errors import InvalidArgument
from tb_pastnet.v1 import clone_network

pytestmark = pytest.mark.usefixtures("kind")

X = np.random.default_rng(0).normal(size=(4, 3)).astype("f")


def built():
    """A network whose building function is gone: a loop, a branch, a custom gradient."""
    x = tf.placeholder(tf.float32, (None, 3), "x")
    # Seeded: with some weights no unit is active, and nothing would train.
    w = tf.get_variable("net/w", (3, 3), initializer=tf.glorot_uniform_initializer(1))
    b = tf.get_variable("net/b", (3,), trainable=False)
    y = tf.while_loop(lambda i, _: i < 3, lambda i, a: (i + 1, tf.tanh(a @ w)), (0, x))[1]
    y = tf.cond(tf.reduce_sum(y) > 0, lambda: y + b, lambda: y - b)
    y = tf.nn.relu(y)
    tf.add_to_collection(tf.GraphKeys.MODEL_VARIABLES, w)
    return x, tf.identity(y, "y")


@pytest.fixture
def ends(graph):
    return lambda: (graph.get_tensor_by_name("x:0"), graph.get_tensor_by_name("y:0"))


def test_question_3_an_import_shares_its_storage_and_a_clone_does_not(graph):
    """The tensors of a network are left, the function that built it is gone."""
    x = tf.placeholder(tf.float32, (), "x")
    w = tf.get_variable("w", initializer=3.0, use_resource=True)
    y = w * x
    # As it was answered.
    definition = graph.as_graph_def()
    (imported,) = tf.import_graph_def(definition, {"x": x}, return_elements=[y.name])
    copy = clone_network(x, y)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        assert session.run([y, imported, copy.outputs], {x: 2.0}) == [6.0, 6.0, 6.0]
        session.run(w.assign(10.0))
        assert session.run([y, imported, copy.outputs], {x: 2.0}) == [20.0, 20.0, 6.0]
        session.run(copy.variables[0].assign(5.0))
        assert session.run([y, imported, copy.outputs], {x: 2.0}) == [20.0, 20.0, 10.0]
        session.run(copy.sync_op)
        assert session.run([y, imported, copy.outputs], {x: 2.0}) == [20.0, 20.0, 20.0]
    # Nor is what was imported known to collections, savers and optimizers.
    assert tf.global_variables() == [w, *copy.variables]


def test_a_graph_of_a_checkpoint_is_cloned(control_flow, tmp_path, graph, ends):
    with tf.Graph().as_default(), tf.Session() as session:
        x, y = built()
        session.run(tf.global_variables_initializer())
        expected = session.run(y, {x: X})
        path = tf.train.Saver().save(session, str(tmp_path / "saved"))
    saver = tf.train.import_meta_graph(path + ".meta")
    x, y = ends()
    copy = clone_network(x, y)
    w, own = tf.model_variables()
    assert [w.op.name, own.op.name] == ["net/w", "clone/net/w"]
    assert [one.op.name for one in tf.trainable_variables()] == ["net/w", "clone/net/w"]
    train = tf.train.AdamOptimizer(0.1).minimize(-copy.outputs, var_list=copy.variables[:1])
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        saver.restore(session, path)
        session.run(copy.initializer)
        np.testing.assert_array_equal(session.run(copy.outputs, {x: X}), expected)
        # What a session gives of a reference variable may be its own memory.
        before = [value.copy() for value in session.run([w, own])]
        session.run(train, {x: X})
        after = session.run([w, own])
    np.testing.assert_array_equal(after[0], before[0])
    assert not np.array_equal(after[1], before[1])


def test_a_bare_graph_is_cloned_without_any_variable_object(graph, ends):
    with tf.Graph().as_default() as other:
        x, y = built()
        definition = other.as_graph_def()
    tf.import_graph_def(definition, name="")
    assert graph.collections == []
    x, y = ends()
    copy = clone_network(x, y)
    assert tf.global_variables() == tf.trainable_variables() == list(copy.variables)
    initialize = [f"net/{name}/Assign" for name in "wb"]
    with tf.Session() as session:
        session.run([*initialize, tf.global_variables_initializer()])
        one, two = session.run([y, copy.outputs], {x: X})
        np.testing.assert_array_equal(one, two)
        for variable in copy.variables:
            session.run(variable.assign(tf.ones_like(variable)))
        session.run(initialize)
        assert not np.array_equal(session.run(copy.outputs, {x: X}), one)
        session.run(copy.sync_op)
        one, two = session.run([y, copy.outputs], {x: X})
        np.testing.assert_array_equal(one, two)


def test_a_bare_graph_without_initializers_takes_its_values_by_a_sync(graph, ends):
    with tf.Graph().as_default() as other:
        built()
        kept = tf.graph_util.extract_sub_graph(other.as_graph_def(), ["y"])
    tf.import_graph_def(kept, name="")
    x, y = ends()
    with pytest.raises(
        InvalidArgument,
        match=r"Could not draw an initial value for the copy of 'net/w': expected an initializer "
        r"in the graph, got none\. Pass initial='copy'\.",
    ):
        clone_network(x, y, "fresh", initial="initializer")
    copy = clone_network(x, y)
    held = graph.get_operation_by_name("net/w")
    assert copy.variables[0].shape.as_list() == [3, 3]
    assert copy.variables[0].op.type == held.type
