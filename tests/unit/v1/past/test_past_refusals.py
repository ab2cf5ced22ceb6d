"""What has no past in a graph, and what the error says."""

from __future__ import annotations

import pytest
import tensorflow.compat.v1 as tf

from tb_pastnet.errors import InvalidArgument, UnknownName
from tb_pastnet.v1 import past_network

pytestmark = pytest.mark.usefixtures("graph")


@pytest.fixture
def x():
    return tf.placeholder(tf.float32, (), name="x")


@pytest.fixture
def weight():
    return tf.get_variable("net/w", initializer=2.0)


def refused(text, *arguments, error=InvalidArgument, **settings):
    before = len(tf.get_default_graph().get_operations())
    with pytest.raises(error) as caught:
        past_network(*arguments, **settings)
    assert str(caught.value) == text
    assert len(tf.get_default_graph().get_operations()) == before


@pytest.mark.parametrize("nothing", [[], {}, ()])
def test_outputs_that_are_none(x, weight, nothing):
    refused(
        "Could not make a past network: expected outputs, got none. Pass the tensors at its end.",
        x,
        nothing,
    )


@pytest.mark.parametrize("given", [3.0, "x:0", None])
def test_what_is_no_tensor(x, weight, given):
    output = x * weight
    for inputs, outputs in (([x, given], output), (x, [output, given])):
        refused(
            "Could not make a past network: expected tensors of a tf.Graph, got "
            f"{type(given).__name__}. For a variable pass a tensor read from it; for Keras and "
            "eager code use tb_pastnet without v1.",
            inputs,
            outputs,
        )


def test_a_scope_that_is_taken(x, weight):
    output = x * weight
    with pytest.raises(
        InvalidArgument,
        match=r"^Could not make a past network: expected a scope that is free, got 'net', which has \d+ operations\. Pass another scope\.$",
    ):
        past_network(x, output, scope="net/")


def test_an_input_that_no_output_needs(x, weight):
    other = tf.placeholder(tf.float32, (), name="other")
    refused(
        "Could not make a past network: expected only inputs that its outputs need, got 'other:0', "
        "which none needs. Leave it out, or add the output that it leads to.",
        [x, other],
        x * weight,
    )


def test_an_input_behind_another_one(x, weight):
    hidden = tf.multiply(x, 2.0, name="hidden")
    refused(
        "Could not make a past network: expected only inputs that its outputs need, got 'x:0', "
        "which none needs. Leave it out, or add the output that it leads to.",
        [x, hidden],
        hidden * weight,
    )


def test_a_network_without_variables(x, weight):
    hidden = x * weight
    refused(
        "Could not make a past network: expected variables between its inputs and outputs, got "
        "none. Pass inputs from before the first layer.",
        hidden,
        hidden + 1.0,
    )


def test_a_variable_that_no_collection_has(x):
    hidden = x * tf.Variable(2.0, name="hidden", collections=[], trainable=False)
    refused(
        "Could not make a past network: expected variables that the graph lists, got 'hidden', "
        "which is in none of its collections. Choose others with variables=.",
        x,
        hidden,
    )


def test_names_that_fit_none_or_several(x, weight):
    output = x * weight * tf.get_variable("head/w", initializer=1.0)
    refused(
        "Could not find variable 'kernel': expected one of net/w, head/w, got no match. Use a "
        "variable's path below the model, or the end of it.",
        x,
        output,
        ["kernel"],
        error=UnknownName,
    )
    refused(
        "Could not find variable 'w': expected a name that fits one variable, got 2 with this "
        "ending: net/w, head/w. Write more of its path.",
        x,
        output,
        "w",
        error=UnknownName,
    )
    refused(
        "Could not find variables by '*/kernel': expected a pattern that fits some of net/w, "
        "head/w, got one that fits none. Correct it, or leave it out.",
        x,
        output,
        "*/kernel",
        error=UnknownName,
    )
    # A refusal takes no name either.
    assert past_network(x, output, "net/w").mapping == {"net/w": "past/net/w"}


def test_a_variable_of_something_else(x, weight):
    other = tf.get_variable("other", initializer=1.0)
    refused(
        "Could not choose 'other': expected a variable that the network uses, got a different one. "
        "Correct variables=.",
        x,
        x * weight,
        [other],
    )


def test_outputs_that_write(kind, x):
    weight = tf.get_variable("net/w", initializer=2.0)
    moved = weight.assign_add(1.0, read_value=False)
    with tf.control_dependencies([moved]):
        output = x * weight.read_value()
    refused(
        "Could not make a past network: expected outputs that write no variable, got "
        f"{moved.name!r}, which they need. Use the tensors from before that control dependency.",
        x,
        output,
    )


def test_tensors_of_two_graphs(x, weight):
    with tf.Graph().as_default():
        other = tf.placeholder(tf.float32, (), name="other")
    refused(
        "Could not make a past network: expected tensors and variables of one graph, got "
        "'other:0' of another one. Build everything in the same tf.Graph.",
        [x, other],
        x * weight,
    )


def test_a_finalized_graph(graph, x, weight):
    past = past_network(x, x * weight)
    graph.finalize()
    sentence = "expected a graph that accepts operations, got a finalized one. Build them before the session: a MonitoredTrainingSession finalizes its graph."
    refused(f"Could not make a past network: {sentence}", x, past.outputs)
    for build, doing in (
        (past.sync, "sync a past network"),
        (past.step().__enter__, "sync a past network"),
        (past.delta, "build the delta of a past network"),
    ):
        with pytest.raises(InvalidArgument) as caught:
            build()
        assert str(caught.value) == f"Could not {doing}: {sentence}"


def test_a_tau_outside_of_its_range(x, weight):
    past = past_network(x, x * weight)
    with pytest.raises(
        InvalidArgument,
        match=r"^Could not sync past variables: expected tau from 0 to 1, or a scalar tensor, got 2\. Use 1 for a copy\.$",
    ):
        past.sync(2)


def test_other_state_than_variables(weight):
    keys = tf.placeholder(tf.string, (), name="keys")
    numbers = tf.lookup.KeyValueTensorInitializer(["a"], [1.0])
    table = tf.lookup.StaticHashTable(numbers, 0.0, name="table")
    refused(
        "Could not make a past network: expected variables as its state, got 'table' "
        "(HashTableV2), which can't be copied. Add it to share for both to use it.",
        keys,
        weight * table.lookup(keys),
    )


def test_python_code(x, weight):
    squared = tf.py_func(lambda value: value**2, [x * weight], tf.float32, name="squared")
    with pytest.raises(
        InvalidArgument, match=r"expected TensorFlow operations, got Python code in 'squared'"
    ):
        past_network(x, squared)
