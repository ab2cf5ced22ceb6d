"""What can't be cloned is refused, before the graph is changed."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf2
import tensorflow.compat.v1 as tf

from tb_pastnet.errors import InvalidArgument, UnknownName
from tb_pastnet.v1 import clone_network

EAGER = tf2.constant(1.0)


def placeholder(name="x", shape=(None, 3)):
    return tf.placeholder(tf.float32, shape, name)


@pytest.fixture
def network(graph):
    x = placeholder()
    return x, x @ tf.get_variable("w", (3, 3))


@pytest.fixture
def refused(graph):
    def check(text, error=InvalidArgument, **given):
        size = len(graph.get_operations())
        with pytest.raises(error, match=text):
            clone_network(**given)
        assert len(graph.get_operations()) == size

    return check


def test_a_forgotten_input(network, refused):
    x, y = network
    rate = placeholder("rate", ())
    refused(
        r"Could not clone a network: expected inputs that its outputs can be computed from, got "
        r"none for placeholder 'rate'\. Add it to inputs, or to share for one that feeds both\.",
        inputs=x,
        outputs=y * rate,
    )
    assert clone_network(x, y * rate, share=rate).outputs is not None


def test_a_placeholder_with_a_default_is_no_less_an_input(network, refused):
    x, y = network
    training = tf.placeholder_with_default(False, (), "training")
    y = tf.cond(training, lambda: y, lambda: -y)
    refused(r"got none for placeholder 'training'", inputs=x, outputs=y)


def test_an_input_that_no_output_needs(network, refused):
    x, y = network
    refused(
        r"Could not clone a network: expected only inputs that its outputs need, got 'rate:0', 'Exp:0', "
        r"which none needs\. Leave it out, or add the output that it leads to\.",
        inputs=[x, placeholder("rate"), tf.exp(y)],
        outputs=y,
    )


@pytest.mark.parametrize("nothing", [[], {}], ids=str)
def test_no_outputs(network, refused, nothing):
    refused(
        r"Could not clone a network: expected outputs, got none\. Pass the tensors at its end\.",
        inputs=network[0],
        outputs=nothing,
    )


def test_what_is_no_tensor_of_a_graph(network, refused):
    x, y = network
    for wrong in (None, EAGER, np.ones(3), "x:0", tf.global_variables()[0]):
        refused(
            rf"expected tensors of a tf\.Graph, got {type(wrong).__name__}\. For a variable pass "
            r"a tensor read from it; for Keras and eager code use tb_pastnet without v1\.",
            inputs=x,
            outputs=[y, wrong],
        )


def test_tensors_of_two_graphs(network, refused):
    with tf.Graph().as_default():
        other = placeholder("other")
    x, y = network
    text = r"Could not clone a network: expected tensors and variables of one graph, got 'other:0'"
    refused(text, inputs=other, outputs=y)
    refused(text, inputs=x, outputs=y, new_inputs=other)
    refused(text, inputs=x, outputs=y, share=other)


def test_a_finalized_graph(graph, network, refused):
    graph.finalize()
    refused(
        r"Could not clone a network: expected a graph that accepts operations, got a finalized one",
        inputs=network[0],
        outputs=network[1],
    )


def test_the_graph_of_a_function():
    seen = []

    @tf2.function(autograph=False)
    def function(x):
        with pytest.raises(InvalidArgument) as error:
            clone_network(x, x * 2.0)
        seen.append(str(error.value))
        return x

    function(tf2.constant(1.0))
    assert seen[0].startswith(
        "Could not clone a network: expected a tf.Graph, got that of a function, 'function'."
    )


@pytest.mark.parametrize("scope", ["", "/", "_x", "a b", 3])
def test_a_scope_that_is_none(network, refused, scope):
    refused(
        rf"expected a valid scope of TensorFlow, got {scope!r}\. Begin it with a letter",
        inputs=network[0],
        outputs=network[1],
        scope=scope,
    )


def test_a_scope_that_is_taken(network, refused):
    clone_network(*network)
    refused(
        r"expected a scope that is free, got 'clone', which has \d+ operations\. Pass another",
        inputs=network[0],
        outputs=network[1],
        scope="clone/",
    )
    clone_network(*network, scope="clon")
    clone_network(*network, scope="w/clone")


def test_an_input_that_is_there_twice(network, refused):
    x, y = network
    refused(
        r"expected each input once, got 'x:0' twice\. Leave one out\.", inputs=[x, x], outputs=y
    )


def test_new_inputs_of_another_kind(network, refused):
    x, y = network
    refused(
        r"expected new_inputs in the structure of inputs, with 1 tensors, got 2 in another one\.",
        inputs=x,
        outputs=y,
        new_inputs=[x, x],
    )
    refused(
        r"expected float32 for new input 'ids:0', as 'x:0' has, got int32\. The copy is the same",
        inputs=x,
        outputs=y,
        new_inputs=tf.placeholder(tf.int32, (None, 3), "ids"),
    )
    refused(
        r"expected shape \(None, 3\) for new input 'wide:0', as 'x:0' has, got \(None, 4\)\.",
        inputs=x,
        outputs=y,
        new_inputs=placeholder("wide", (None, 4)),
    )


def test_an_unknown_way_to_initialize(network, refused):
    refused(
        r"expected initial 'copy' or 'initializer', got 'zeros'\. Choose one of them\.",
        inputs=network[0],
        outputs=network[1],
        initial="zeros",
    )


def test_a_session_of_another_graph(network, refused):
    with tf.Session(graph=tf.Graph()) as session:
        refused(
            r"expected a session of its graph, got one of another graph\. Make it with",
            inputs=network[0],
            outputs=network[1],
            session=session,
        )


def test_what_cannot_be_shared(network, refused):
    x, y = network
    refused(
        r"expected names of the graph's operations in share, got 'tabel'\. Pass variables, tensors",
        UnknownName,
        inputs=x,
        outputs=y,
        share=["tabel"],
    )
    refused(
        r"expected parts of the graph in share, got int\. Pass variables, tensors, operations",
        inputs=x,
        outputs=y,
        share=3,
    )


def test_a_lookup_table_unless_it_is_shared(graph, refused):
    words = tf.placeholder(tf.string, (None,), "words")
    keys, values = tf.constant(["a", "b"]), tf.constant([1.0, 2.0])
    table = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(keys, values), 0.0)
    y = table.lookup(words) * tf.get_variable("w", initializer=3.0)
    refused(
        r"expected variables as its state, got 'hash_table' \(HashTableV2\), which can't be "
        r"copied\. Add it to share for both to use it\.",
        inputs=words,
        outputs=y,
    )
    shared = [
        clone_network(words, y, f"clone{at}", share=one)
        for at, one in enumerate((table, "hash_table", table.resource_handle.op, [table]))
    ]
    with tf.Session() as session:
        session.run([tf.tables_initializer(), tf.global_variables_initializer()])
        for copy in shared:
            assert session.run(copy.outputs, {words: ["b"]}).tolist() == [6.0]


def test_an_iterator_unless_what_it_gives_is_shared(graph, refused):
    batch = tf.data.make_one_shot_iterator(
        tf.data.Dataset.from_tensor_slices([1.0, 2.0]).repeat()
    ).get_next()
    y = batch * tf.get_variable("w", initializer=3.0)
    refused(
        r"expected variables as its state, got '\w*Iterator\w*' \(OneShotIterator\), which can't",
        inputs=(),
        outputs=y,
    )
    copy = clone_network((), y, share=batch)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        one, two = session.run([y, copy.outputs])  # of the same batch
        assert one == two == 3.0


@pytest.mark.parametrize("make", [tf.py_func, tf.numpy_function], ids=lambda make: make.__name__)
def test_python_code_unless_what_it_gives_is_shared(network, refused, make):
    x, y = network
    seen = make(lambda value: value, [y], tf.float32, name="peek")
    refused(
        r"expected TensorFlow operations, got Python code in 'peek' \(PyFunc(Stateless)?\), "
        r"whose use of state is unknown\. Write it with TensorFlow operations",
        inputs=x,
        outputs=seen + y,
    )
    assert len(clone_network(x, seen + y, share=seen).variables) == 1


def test_python_code_and_state_in_a_function(graph, refused):
    x = placeholder()
    function = tf2.function(lambda a: tf.py_function(lambda b: b, [a], tf.float32))
    refused(
        r"expected functions without Python code or internal state, got 'EagerPyFunc' "
        r"\(EagerPyFunc\) in function '.*'\. Build it outside of the loop, branch or tf\.function\.",
        inputs=x,
        outputs=function(x),
    )
