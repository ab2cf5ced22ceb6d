"""Which operations are taken for those that write to a variable."""

from __future__ import annotations

import pytest
import tensorflow.compat.v1 as tf

from tb_pastnet.v1.clones.functions import called_functions
from tb_pastnet.v1.writes import needed, writes

pytestmark = pytest.mark.usefixtures("graph")


@pytest.fixture
def weight(world):
    return tf.get_variable("w", (3, 2))


def kinds(*elements):
    """The types of operations that write, of those that these need."""
    graph = tf.get_default_graph()
    operations = needed(elements).values()
    functions = called_functions(graph, operations)
    return {one.type for one in operations if writes(one, functions)}


def test_reads(weight):
    step = tf.get_variable("step", initializer=0)
    rows = tf.gather(weight, [0, 2])
    looked_up = tf.nn.embedding_lookup(weight, [1])
    chosen = tf.cond(step > 0, lambda: weight * 2.0, lambda: -weight)
    summed = tf.while_loop(lambda i, _: i < 3, lambda i, x: (i + 1, x + weight), (0, weight))
    ready = tf.is_variable_initialized(weight)
    assert kinds(rows, looked_up, chosen, *summed, ready, tf.identity(weight)) == set()


def test_tables_and_arrays_are_no_variables():
    numbers = tf.lookup.KeyValueTensorInitializer(["a"], [1.0])
    table = tf.lookup.StaticHashTable(numbers, 0.0)
    array = tf.TensorArray(tf.float32, 2).unstack([1.0, 2.0])
    assert kinds(table.lookup(tf.constant("a")), array.stack()) == set()


def test_writes(weight, world):
    kind = "reference" if "reference" in world else "resource"
    rows = tf.IndexedSlices(tf.ones((1, 2)), [1], (3, 2))
    found = {
        "assign": kinds(weight.assign(weight * 2.0)),
        "add": kinds(weight.assign_add(tf.ones((3, 2)))),
        "rows": kinds(weight.scatter_update(rows)),
        "descent": kinds(tf.train.GradientDescentOptimizer(1.0).minimize(tf.reduce_sum(weight))),
        "initial": kinds(weight.initializer),
    }
    assert (
        found
        == {
            "reference": {
                "assign": {"Assign"},
                "add": {"AssignAdd"},
                "rows": {"ScatterUpdate"},
                "descent": {"ApplyGradientDescent"},
                "initial": {"Assign"},
            },
            "resource": {
                "assign": {"AssignVariableOp"},
                "add": {"AssignAddVariableOp"},
                "rows": {"ResourceScatterUpdate"},
                "descent": {"ResourceApplyGradientDescent"},
                "initial": {"AssignVariableOp"},
            },
        }[kind]
    )


def test_writes_in_a_branch(weight, world):
    chosen = tf.placeholder(tf.bool, ())
    moved = tf.cond(chosen, lambda: tf.group(weight.assign_add(tf.ones((3, 2)))), tf.no_op)
    expected = {
        "reference-v1": "AssignAdd",
        "resource-v1": "AssignAddVariableOp",
        "resource-v2": "If",
    }
    assert kinds(moved) == {expected[world]}
