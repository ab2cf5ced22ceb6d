"""Which operations write to a variable, and to which."""

from __future__ import annotations

import pytest
import tensorflow.compat.v1 as tf

from tb_pastnet.keras.graphs.nodes import called_functions, needed
from tb_pastnet.v1.graph.writes import written

pytestmark = pytest.mark.usefixtures("graph")


@pytest.fixture
def weight(world):
    return tf.get_variable("w", (3, 2))


def kinds(*elements):
    """By the type of an operation that these need, and that writes, the variables."""
    operations = needed(elements).values()
    functions = called_functions(tf.get_default_graph(), operations)
    found = {one.type: set(written(one, functions)) for one in operations}
    return {kind: names & {"w"} for kind, names in found.items() if names & {"w"}}


def test_reads(weight):
    step = tf.get_variable("step", initializer=0)
    rows = tf.gather(weight, [0, 2])
    looked_up = tf.nn.embedding_lookup(weight, [1])
    chosen = tf.cond(step > 0, lambda: weight * 2.0, lambda: -weight)
    summed = tf.while_loop(lambda i, _: i < 3, lambda i, x: (i + 1, x + weight), (0, weight))
    ready = tf.is_variable_initialized(weight)
    assert kinds(rows, looked_up, chosen, *summed, ready, tf.identity(weight)) == {}


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
                "assign": {"Assign": {"w"}},
                "add": {"AssignAdd": {"w"}},
                "rows": {"ScatterUpdate": {"w"}},
                "descent": {"ApplyGradientDescent": {"w"}},
                "initial": {"Assign": {"w"}},
            },
            "resource": {
                "assign": {"AssignVariableOp": {"w"}},
                "add": {"AssignAddVariableOp": {"w"}},
                "rows": {"ResourceScatterUpdate": {"w"}},
                "descent": {"ResourceApplyGradientDescent": {"w"}},
                "initial": {"AssignVariableOp": {"w"}},
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
    assert kinds(moved) == {expected[world]: {"w"}}
