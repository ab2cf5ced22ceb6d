"""What can't be cloned, and what the error says."""

from __future__ import annotations

import re

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import layers

from tb_pastnet import clone_network
from tb_pastnet.errors import InvalidArgument

HINT = "clone a function: clone_network(tf.function(model), example=batch)."


def refused(text, *args, **settings):
    with pytest.raises(InvalidArgument, match=re.escape(text)):
        clone_network(*args, **settings)


@pytest.fixture
def tensors():
    x, y = keras.Input((2,), name="x"), keras.Input((3,), name="y")
    hidden = layers.Dense(3, name="hidden")(x)
    return x, y, hidden, layers.add([hidden, y], name="sum")


def test_an_input_is_forgotten(tensors):
    x, y, _, total = tensors
    refused(
        "Could not clone a network: expected all inputs that its outputs need, got none for 'y' "
        "of shape (None, 3). Add it to inputs.",
        x,
        total,
    )
    refused("got none for 'x' of shape (None, 2)", {"y": y}, [total])


def test_an_output_is_not_reachable(tensors):
    _, y, hidden, total = tensors
    refused(
        "Could not clone a network: expected outputs that are computed from the inputs 'y' of "
        "shape (None, 3), got 'hidden' of shape (None, 3), which needs only 'x' of shape (None, "
        "2). Pass tensors of one network.",
        y,
        [total, hidden],
    )


def test_tensors_of_two_networks(tensors):
    other = keras.Input((2,), name="other")
    refused(
        "expected outputs that are computed from the inputs 'other' of shape (None, 2), got "
        "'sum' of shape (None, 3), which needs only 'x' of shape (None, 2), 'y' of shape (None, "
        "3). Pass tensors of one network.",
        other,
        tensors[3],
    )


def test_an_input_is_not_needed(tensors):
    x, y, hidden, total = tensors
    refused(
        "Could not clone a network: expected only inputs that its outputs need, got 'y' of shape "
        "(None, 3), which none needs. Leave it out, or add the output that it leads to.",
        [x, y],
        hidden,
    )
    refused("got 'x' of shape (None, 2), which none needs", [x, y, hidden], total)
    # A model keeps its signature.
    model = keras.Model([x, y], hidden)
    assert len(clone_network(model).inputs) == 2


def test_an_input_twice(tensors):
    x, _, hidden, _ = tensors
    refused(
        "Could not clone a network: expected each input once, got 'x' of shape (None, 2) twice. "
        "Leave one out.",
        [x, x],
        hidden,
    )


def test_values_in_the_place_of_symbolic_tensors(tensors):
    x, _, hidden, _ = tensors
    told = "Pass symbolic tensors, such as model.inputs and layer.output, or a function."
    refused(
        f"Could not clone a network: expected KerasTensors as inputs, got a ndarray. {told}",
        np.ones((1, 2)),
        hidden,
    )
    refused(f"expected KerasTensors as outputs, got a EagerTensor. {told}", x, tf.ones((1, 2)))
    refused("expected KerasTensors as inputs, got a Functional.", keras.Model(x, hidden), hidden)
    refused("expected KerasTensors as outputs, got none. Pass at least one.", x, [])
    refused(
        "Could not clone a network: expected outputs as well as inputs, got none. Pass the "
        "KerasTensors at the end of the network.",
        [x],
    )
    refused(
        "Could not clone a network: expected KerasTensors, a keras.Model or a function, got a "
        "ndarray. Pass symbolic tensors, such as model.inputs and model.outputs, or a function.",
        np.ones(3),
    )


def test_a_tensor_made_by_hand():
    x = keras.KerasTensor((None, 2), name="hand")
    y = layers.Dense(1)(x)
    refused("which needs only 'hand' of shape (None, 2)", keras.Input((2,)), y)
    assert clone_network(x, y).count_params() == 3


def test_a_saved_model_tells_its_functions(tmp_path):
    model = keras.Sequential([keras.Input((2,)), layers.Dense(1)])
    model.export(tmp_path / "model", verbose=False)
    loaded = tf.saved_model.load(tmp_path / "model")
    refused("got a _UserObject. Pass one of its functions: serve.", loaded)


def test_a_model_that_is_not_built():
    refused(
        "expected a built model, got one without weights. Call model.build(input_shape), or the "
        "model on one batch.",
        keras.Sequential([layers.Dense(1)]),
    )


def test_inside_of_a_function(tensors):
    @tf.function(autograph=False)
    def step():
        clone_network(tensors[0], tensors[2])

    with pytest.raises(
        InvalidArgument,
        match=r"expected to run eagerly, got a call inside of a tf\.function\. Clone it outside, and call the clone inside\.",
    ):
        step()


def test_a_lambda_that_closes_over_a_variable():
    variable = tf.Variable(2.0, name="closed_over")
    x = keras.Input((2,))
    y = layers.Lambda(lambda z: z * variable)(x)
    refused(
        "Could not clone the network: expected its own variables, got closed_over of the "
        "original: Python code that closes over it, such as a Lambda, keeps using it. Make it a "
        f"weight of a layer, or {HINT}",
        x,
        y,
    )
    # The hint helps.
    model = keras.Model(x, y)
    copy = clone_network(tf.function(model), example=tf.TensorSpec((None, 2)))
    variable.assign(5.0)
    assert copy(tf.ones((1, 2))).numpy().tolist() == [[2.0, 2.0]]


def test_a_lambda_that_closes_over_a_layer():
    hidden = layers.Dense(2, name="hidden")
    hidden.build((None, 2))
    x = keras.Input((2,))
    refused(
        "expected its own variables, got hidden/kernel, hidden/bias of the original",
        x,
        layers.Lambda(lambda z: hidden(z))(x),  # noqa: PLW0108 - it closes over it
    )


def test_random_numbers_of_the_seed_that_all_share():
    x = keras.Input((2,))
    y = layers.Lambda(lambda z: z + keras.random.normal((2,)))(x)
    refused(f"Draw from a keras.random.SeedGenerator of the layer, or {HINT}", x, y)


def test_python_code():
    x = keras.Input((2,))
    y = layers.Lambda(lambda z: tf.py_function(lambda a: a, [z], tf.float32), output_shape=(2,))(x)
    told = (
        "expected TensorFlow operations, got Python code (EagerPyFunc), whose use of state is "
        "unknown. Replace tf.py_function and tf.numpy_function by TensorFlow operations."
    )
    refused(f"Could not clone the network: {told}", x, y)
    refused(told, lambda z: tf.py_function(lambda a: a, [z], tf.float32), example=1.0)


def test_a_model_that_was_built_in_another_way():
    class Two(keras.Model):
        def __init__(self):
            super().__init__(name="two")
            self.dense = layers.Dense(3)

        def call(self, a, b):
            return self.dense(a) + b

    model = Two()
    model(np.ones((1, 2)), np.ones((1, 3)))
    refused(
        "Could not build the copy of model 'two': expected one that takes the model's inputs",
        model,
    )
    refused("Pass example=, a batch.", model)


def test_an_example_that_does_not_fit():
    model = keras.Sequential([keras.Input((2,)), layers.Dense(1)], name="small")
    refused(
        "Could not trace model 'small': expected valid inputs, got float32 (1, 7).",
        model,
        example=tf.ones((1, 7)),
    )


def test_a_model_of_which_nothing_tells_its_inputs():
    class Own(keras.Model):
        def __init__(self):
            super().__init__(name="own")
            self.weight = self.add_weight(shape=(2,), name="weight")
            self.built = True

        def call(self, x):
            return x * self.weight

    refused(
        "Could not clone model 'own': expected a model with known inputs, got one that was built "
        "without shapes. Pass example=, a batch.",
        Own(),
    )
    assert clone_network(Own(), example=tf.ones((1, 2))).count_params() == 2


def test_a_model_that_builds_itself_from_a_config_of_its_own():
    class Own(keras.Model):
        def build(self, input_shape):
            self.dense = layers.Dense(2)
            self.dense.build(input_shape)
            self.shape = input_shape
            self.built = True

        def call(self, x):
            return self.dense(x)

        def get_build_config(self):
            return {"input_shape": self.shape}

        def build_from_config(self, config):
            self.build(config["input_shape"])

    model = Own()
    x = np.ones((1, 3), "f")
    model(x)
    np.testing.assert_array_equal(clone_network(model)(x), model(x))


def test_a_copy_under_another_strategy():
    strategy = tf.distribute.MirroredStrategy(["CPU:0"])
    with strategy.scope():
        model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1, name="dense")])
    with pytest.raises(InvalidArgument, match=r"to be in replicas of a .* got it on one device\."):
        clone_network(model)
    with strategy.scope():
        copy = clone_network(model)
    batch = tf.ones((3, 2))
    np.testing.assert_array_equal(copy(batch), model(batch))
