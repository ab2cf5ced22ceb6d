"""The variables of a graph: how they are found, read and written."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from tb_pastnet.errors import InvalidArgument, UnknownName
from tb_pastnet.v1.graph.graph_variables import choose, graph_variable, graph_variables

pytestmark = pytest.mark.usefixtures("graph")
ROWS = np.arange(10, dtype=np.float32).reshape(5, 2)
EAGER = tf.Variable(0.0, name="eager")
TWO = tf.fixed_size_partitioner(2)


def names(**where):
    return [variable.name for variable in graph_variables(**where)]


def test_a_variable_says_what_it_is(kind):
    tf.get_variable("net/kernel", shape=(3, 4))
    tf.get_variable("net/count", shape=(), dtype=tf.int64, trainable=False)
    kernel, count = graph_variables()
    assert (kernel.name, kernel.shape, kernel.dtype, kernel.trainable) == (
        "net/kernel",
        (3, 4),
        tf.float32,
        True,
    )
    assert (count.name, count.shape, count.dtype, count.trainable) == (
        "net/count",
        (),
        tf.int64,
        False,
    )
    assert kernel.parts[0].op.type == {"reference": "VariableV2", "resource": "VarHandleOp"}[kind]


def test_a_scope_is_taken_exactly():
    for name in ("net/w", "net_2/w", "net/block/w", "other/net/w", "net"):
        tf.Variable(0.0, name=name)
    assert names(scope="net") == names(scope="net/") == ["net/w", "net/block/w"]
    assert names(scope="net/block") == ["net/block/w"]
    assert names(scope="") == names() == ["net/w", "net_2/w", "net/block/w", "other/net/w", "net"]
    assert names(scope="absent") == []


def test_tensorflows_own_lookup_takes_the_neighbour_too():
    for name in ("net/w", "net_2/w"):
        tf.Variable(0.0, name=name)
    found = tf.get_collection(tf.GraphKeys.GLOBAL_VARIABLES, scope="net")
    assert [variable.op.name for variable in found] == ["net/w", "net_2/w"]
    assert names(scope="net") == ["net/w"]


def test_variables_of_any_collection_are_found_once():
    tf.Variable(0.0, name="global")
    tf.Variable(0.0, name="local", collections=[tf.GraphKeys.LOCAL_VARIABLES])
    tf.Variable(0.0, name="own", collections=["mine"], trainable=False)
    tf.Variable(0.0, name="none", collections=[], trainable=False)
    tf.add_to_collection("mine", "no variable")
    assert names() == ["global", "local", "own"]


def test_a_graph_of_its_own_is_looked_through():
    with tf.Graph().as_default() as other:
        tf.Variable(0.0, name="elsewhere")
    assert names() == []
    assert names(graph=other) == ["elsewhere"]


def test_reads_and_writes(kind):
    tf.get_variable("w", initializer=ROWS)
    (variable,) = graph_variables()
    value, write = variable.tensor(), variable.assign(2 * ROWS)
    with tf.Session() as session:
        session.run([part.initializer for part in variable.parts])
        np.testing.assert_array_equal(session.run(value), ROWS)
        assert session.run(write) is None
        np.testing.assert_array_equal(session.run(value), 2 * ROWS)


@pytest.mark.parametrize("axis", [0, 1])
def test_a_partitioned_variable_is_one(kind, axis):
    rows = ROWS if axis == 0 else ROWS.T
    partitioner = tf.fixed_size_partitioner(3, axis)  # of sizes 2, 2 and 1
    made = tf.get_variable(
        "net/w", shape=rows.shape, initializer=tf.constant(rows), partitioner=partitioner
    )
    (variable,) = graph_variables(scope="net")
    assert (variable.name, variable.shape, variable.trainable) == ("net/w", rows.shape, True)
    assert (
        [part.op.name for part in variable.parts]
        == [f"net/w/part_{n}" for n in range(3)]
        == [part.op.name for part in made]
    )
    value, write = variable.tensor(), variable.assign(2 * rows)
    with tf.Session() as session:
        session.run([part.initializer for part in variable.parts])
        np.testing.assert_array_equal(session.run(value), rows)
        session.run(write)
        np.testing.assert_array_equal(session.run(value), 2 * rows)
        np.testing.assert_array_equal(
            session.run(variable.parts[1]), np.split(2 * rows, [2, 4], axis)[1]
        )


def test_parts_are_in_their_order_even_where_their_names_are_not():
    made = tf.get_variable("w", shape=(12, 1), partitioner=tf.fixed_size_partitioner(12))
    parts = list(made)
    collection = tf.get_collection_ref(tf.GraphKeys.GLOBAL_VARIABLES)
    collection[:] = sorted(parts, key=lambda part: part.op.name)
    assert [part.op.name for part in collection][1:3] == ["w/part_1", "w/part_10"]
    tf.get_collection_ref(tf.GraphKeys.TRAINABLE_VARIABLES).clear()
    (variable,) = graph_variables()
    assert variable.parts == tuple(parts)


def test_an_imported_graph_has_each_variable_once(kind):
    tf.get_variable("w", shape=(5, 2), initializer=tf.constant(ROWS), partitioner=TWO)
    tf.get_variable("b", shape=(2,))
    meta = tf.train.export_meta_graph()
    for key in (tf.GraphKeys.GLOBAL_VARIABLES, tf.GraphKeys.TRAINABLE_VARIABLES):
        saved = meta.collection_def[key].bytes_list.value
        saved[:] = [without_trainable(one) for one in saved]  # as older versions wrote it
    with tf.Graph().as_default():
        tf.train.import_meta_graph(meta, import_scope="again")
        found = {variable.name: variable for variable in graph_variables()}
    assert {name: len(one.parts) for name, one in found.items()} == {"again/w": 2, "again/b": 1}
    assert all(one.trainable for one in found.values())


def without_trainable(saved):
    from tensorflow.core.framework import variable_pb2

    variable = variable_pb2.VariableDef.FromString(saved)
    variable.ClearField("trainable")
    return variable.SerializeToString()


def test_the_variable_behind_what_a_user_holds(kind):
    whole = tf.get_variable("w", shape=(5, 2), initializer=tf.constant(ROWS), partitioner=TWO)
    hidden = tf.Variable(0.0, name="hidden", collections=[], trainable=False)
    for given in (whole, list(whole)[1], graph_variables()[0]):
        found = graph_variable(given)
        assert (found.name, len(found.parts)) == ("w", 2)
    assert graph_variable(hidden).parts == (hidden,)


def test_a_shape_that_is_not_fixed_is_refused(kind):
    tf.Variable(tf.placeholder(tf.float32), validate_shape=False, name="free")
    with pytest.raises(
        InvalidArgument,
        match=r"Could not use variable 'free': expected a fixed shape, got <unknown>\. Make it without validate_shape=False\.",
    ):
        _ = graph_variables()[0].shape


def test_what_is_no_variable_of_a_graph_is_refused():
    with pytest.raises(
        InvalidArgument, match=r"Could not use 'x:0': expected a tf\.Variable of a graph, got "
    ):
        graph_variable(tf.constant(0.0, name="x"))
    with pytest.raises(
        InvalidArgument,
        match=r"Could not use 'eager:0': expected a tf\.Variable of a graph, got ResourceVariable\. Make it inside of the graph\.",
    ):
        graph_variable(EAGER)


def test_some_are_chosen():
    for name in ("net/a/w", "net/a/b", "net/b/w", "ab/w"):
        tf.Variable(0.0, name=name)
    known = graph_variables()
    for wanted, expected in {
        "net": ["net/a/w", "net/a/b", "net/b/w"],
        "net/a/": ["net/a/w", "net/a/b"],
        "": ["net/a/w", "net/a/b", "net/b/w", "ab/w"],
        "*/w": ["net/a/w", "net/b/w", "ab/w"],
        ("ab/w", "a/b"): ["net/a/b", "ab/w"],
        (known[2], known[3].parts[0]): ["net/b/w", "ab/w"],
        (): [],
    }.items():
        assert [one.name for one in choose(wanted, known)] == expected
    with pytest.raises(UnknownName, match="expected a pattern that fits some of .* got one that"):
        choose("none*", known)
    with pytest.raises(UnknownName, match=r"^Could not find variable 'c': expected one of "):
        choose("c", known)
    with pytest.raises(
        InvalidArgument,
        match=r"^Could not choose 'ab/w': expected a variable that the network uses, got a different one\. Correct variables=\.$",
    ):
        choose([known[3]], known[:3])
