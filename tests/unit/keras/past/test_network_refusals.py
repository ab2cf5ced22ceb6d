"""What a past network refuses: each error by its text."""

from __future__ import annotations

import copy
import pickle

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import layers

from tb_pastnet import PastNetwork, PastVariables
from tb_pastnet.errors import InvalidArgument, UnknownName
from tb_pastnet.keras.graphs.reason import reason

X = tf.ones((2, 4))


@pytest.fixture
def model():
    return keras.Sequential([keras.Input((4,)), layers.Dense(3), layers.Dense(2)], name="net")


def refused(*parts):
    """Matches an error with these parts in order, and without line breaks."""
    return pytest.raises(InvalidArgument, match=r"(?-s:^.*" + ".*".join(parts) + ".*$)")


@pytest.mark.parametrize("copied", [copy.deepcopy, pickle.dumps])
def test_a_past_is_not_copied(model, copied):
    text = "past of model 'net': expected the network", "Make a PastNetwork of the copied network"
    with refused(*text):
        copied({"model": model, "past": PastNetwork(model)})


def test_a_model_that_is_not_built():
    with refused("'net' as a network: expected a built model", "Call model.build"):
        PastNetwork(keras.Sequential([layers.Dense(2)], name="net"))


@pytest.mark.parametrize("value", [3, "net", None, [1.0]])
def test_what_cannot_be_called(value):
    with refused(f"Could not use a {type(value).__name__} as a network: expected a keras.Model"):
        PastNetwork(value)


def test_a_module_without_call_names_its_functions():
    module = tf.Module()
    module.serve = tf.function(lambda x: x)
    with refused("Could not use a Module", "Pass one of its functions: serve"):
        PastNetwork(module)


def test_a_wrong_shape(model):
    past = PastNetwork(model)
    with refused(r"trace model 'net': .* got float32 \(2, 3\)\. Input 0 .* value 4, but received"):
        past(tf.ones((2, 3)))


def test_a_wrong_number_of_inputs(model):
    past = PastNetwork(model)
    with refused("trace model 'net': expected valid inputs, got no tensors"):
        past()
    two = tf.function(lambda a, b: a + b)
    with refused(
        r"trace function '<lambda>': .* got float32 \(2, 4\)\. .*missing a required .* 'b'"
    ):
        PastNetwork(two, example=X)


@pytest.mark.parametrize("kind", ["list", "dict"])
def test_an_input_that_was_forgotten(kind):
    a, b = keras.Input((4,), name="a"), keras.Input((4,), name="b")
    inputs = [a, b] if kind == "list" else {"a": a, "b": b}
    model = keras.Model(inputs, layers.Add()([layers.Dense(4)(a), b]), name="net")
    past = PastNetwork(model)
    # What Keras says has the name of the input in it.
    with refused(r"trace model 'net': .* got float32 \(2, 4\)\.", "b"):
        past(X if kind == "list" else {"a": X})


def test_an_input_that_a_subclassed_model_looks_up():
    class Sum(keras.Model):
        def __init__(self):
            super().__init__(name="net")
            self.dense = layers.Dense(3)

        def call(self, x):
            return self.dense(x["a"]) + x["b"]

    model = Sum()
    model({"a": X, "b": tf.ones((2, 3))})
    with refused("trace model 'net'", "KeyError: 'b'"):
        PastNetwork(model)({"a": X})


def test_a_keras_tensor(model):
    with refused("Could not call a past network: expected values, got <KerasTensor", "`call`"):
        PastNetwork(model)(keras.Input((4,)))


def test_a_value_that_cannot_be_compared(model):
    with refused("expected tensors and hashable values, got {1}", "Pass a set as a tensor"):
        PastNetwork(model)(X, mask={1})


def table():
    values = tf.constant([1.0, 2.0])
    keys = tf.constant(["a", "b"])
    return tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(keys, values), -1.0)


def test_a_lookup_table_and_sharing_it():
    found, w = table(), tf.Variable(2.0)
    inner = tf.function(found.lookup)
    network = tf.function(lambda s: inner(s) * w)
    with refused("'<lambda>' as a network", "got a lookup table, used by '.*LookupTableFindV2'"):
        PastNetwork(network, example=tf.constant(["a"]))
    past = PastNetwork(network, example=tf.constant(["a"]), share=[found])
    w.assign(10.0)
    assert past(tf.constant(["b", "c"])).numpy().tolist() == [4.0, -2.0]


def test_a_layer_that_owns_a_lookup_table():
    lookup = layers.StringLookup(vocabulary=["a", "b"], name="words")
    x = keras.Input((1,), dtype="string")
    model = keras.Model(x, layers.Embedding(4, 2)(lookup(x)))
    with refused("got a lookup table, used by '.*words.*'", "share="):
        PastNetwork(model)
    past = PastNetwork(model, share=[lookup])
    before = model(tf.constant([["b"]])).numpy()
    model.layers[-1].embeddings.assign_add(tf.ones((4, 2)))
    np.testing.assert_array_equal(past(tf.constant([["b"]])), before)


def of_texts():
    texts = layers.TextVectorization(vocabulary=["a", "b"], output_sequence_length=3)
    x = keras.Input((), dtype="string")
    model = keras.Model(x, layers.Embedding(4, 2)(texts(x)))
    return model, texts, tf.constant(["b a"])


def of_features():
    space = keras.utils.FeatureSpace({"word": "string_categorical"}, output_mode="concat")
    space.adapt(tf.data.Dataset.from_tensor_slices({"word": ["a", "b"]}))
    features = space.get_encoded_features()
    model = keras.Model(dict(space.get_inputs()), layers.Dense(2)(features))
    return model, space, {"word": tf.constant([["b"]])}


@pytest.mark.parametrize("make", [of_texts, of_features])
@pytest.mark.parametrize("model_too", [False, True])
def test_what_owns_the_layer_of_a_lookup_table(make, model_too):
    model, owner, x = make()
    past = PastNetwork(model, share=[model if model_too else owner])
    before = model(x).numpy()
    model.layers[-1].weights[0].assign_add(tf.ones_like(model.layers[-1].weights[0]))
    np.testing.assert_array_equal(past(x), before)
    assert (model(x).numpy() != before).all()


def test_an_iterator_and_sharing_it():
    iterator, w = iter(tf.data.Dataset.range(9)), tf.Variable(2.0)
    network = tf.function(lambda x: x * w + tf.cast(next(iterator), tf.float32))
    with refused("got an iterator, used by 'IteratorGetNext'"):
        PastNetwork(network, example=1.0)
    past = PastNetwork(network, example=1.0, share=[iterator])
    assert [past(1.0).numpy() for _ in range(2)] == [2.0, 3.0]
    assert next(iterator).numpy() == 2


@pytest.mark.parametrize("value", [3, "net", X, tf.Module()])
def test_what_cannot_be_shared(model, value):
    with refused("Could not share a .*: expected a variable, a lookup table, .* got "):
        PastNetwork(model, share=[value])


def test_a_shared_variable_is_the_current_one(model):
    past = PastNetwork(model, share=[model.layers[1].kernel])
    assert len(past.past.past) == 3
    model.layers[1].kernel.assign(tf.zeros((3, 2)))
    assert not past(X).numpy().any()


def test_a_shared_variable_that_is_written():
    count = tf.Variable(0.0)
    w = tf.Variable(1.0)
    network = tf.function(lambda x: x * w + count.assign_add(1.0))
    past = PastNetwork(network, example=1.0, share=[count])
    assert [past(1.0).numpy() for _ in range(2)] == [2.0, 2.0]
    assert count.numpy() == 0.0
    count.assign(5.0)
    assert past(1.0).numpy() == 7.0


def test_a_deleted_variable():
    def network():
        w = tf.Variable(1.0)
        return tf.function(lambda x: x * w).get_concrete_function(1.0), w

    concrete, _ = network()
    del _
    with refused("expected its variables to exist, got one that was deleted. Keep the object"):
        PastNetwork(concrete)


def test_a_variable_that_is_found_late():
    class Late(keras.layers.Layer):
        def build(self, shape):
            self.seen = self.add_weight(shape=(), name="seen")
            self.raw = [tf.Variable(1.0, name="raw")]

        def call(self, x, training=False):
            return x + self.raw[0] if training else x + self.seen

    layer = Late(name="late")
    layer.build(())
    past = PastNetwork(layer)
    assert past(X).shape == (2, 4)
    with refused(
        "past of layer 'late': expected variables that it lists, got 'late/raw'", "example="
    ):
        past(X, training=True)
    assert past(X).shape == (2, 4)
    assert PastNetwork(layer, variables=["seen"])(X, training=True).shape == (2, 4)
    assert PastNetwork(layer, share=layer.raw)(X, training=True).shape == (2, 4)


def test_the_seed_that_keras_makes_late_is_no_late_variable():
    class Noise(keras.layers.Layer):
        def call(self, x, training=False):
            return x + keras.random.normal((4,)) if training else x

    keras.utils.set_random_seed(1)
    model = keras.Sequential([keras.Input((4,)), layers.Dense(4), Noise()])
    past = PastNetwork(model)
    noisy = past(X, training=True)
    assert not np.array_equal(noisy, past(X))
    # The seed is the current one's, which stays: both draw the same.
    np.testing.assert_array_equal(noisy, model(X, training=True))
    assert not np.array_equal(noisy, model(X, training=True))


def test_past_and_variables(model):
    with refused("expected past= or variables=, got both"):
        PastNetwork(model, past=PastVariables(model.variables), variables=["*"])


def test_names_that_fit_nothing(model):
    with pytest.raises(UnknownName, match="dense_9/kernel"):
        PastNetwork(model, variables=["dense_9/kernel"])
    with refused("Could not choose", "expected a variable or layer of this network"):
        PastNetwork(model, variables=[tf.Variable(1.0)])
    with pytest.raises(UnknownName, match="fits none"):
        PastNetwork(model, variables=["*/gamma"])
    with refused("at least one variable, got none"):
        PastNetwork(model, variables=[])


def test_the_past_of_another_network(model):
    other = keras.models.clone_model(model)
    with refused("of model 'net': expected the past of its own variables, got 4 of 4 that"):
        PastNetwork(model, past=PastVariables(other.variables))
    mixed = [*model.variables, tf.Variable(1.0)]
    with refused("got 1 of 5 that"):
        PastNetwork(model, past=PastVariables(mixed))


def test_the_past_of_another_function():
    w, v = tf.Variable(1.0), tf.Variable(1.0)
    past = PastNetwork(tf.function(lambda x: x * w), past=PastVariables([v]))
    with refused("Could not call the past of function '<lambda>'", "none of which it reads"):
        past(1.0)


def test_a_function_without_an_example():
    w = tf.Variable(1.0)
    with refused("of function '<lambda>': expected variables, got no example", "Pass example="):
        PastNetwork(lambda x: x * w)
    with refused("expected variables, got none"):
        PastNetwork(lambda x: x * 2, example=1.0)


@pytest.mark.parametrize("tau", [-0.1, 1.5])
def test_a_tau_out_of_range(model, tau):
    with refused(f"expected tau from 0 to 1, or a scalar tensor, got {tau}"):
        PastNetwork(model).sync(tau)


def test_long_reasons_end_with_a_sentence():
    assert reason(ValueError("It fails. " * 90)) == ("It fails. " * 30).strip()
    assert reason(ValueError("x" * 900)) == "x" * 300
    assert reason(RuntimeError("a\n  b")) == "RuntimeError: a b"
    assert reason(ValueError("")) == "ValueError: "
