from __future__ import annotations

import gc
import weakref

import keras
import numpy as np
import pytest
import tensorflow as tf

from tb_pastnet import clone_network
from tests.clones import NETWORKS, arrays, equal, gradients, move, values
from tests.families import MODELS


@pytest.fixture(scope="module", params=NETWORKS)
def cloned(request):
    keras.utils.set_random_seed(7)
    inputs, outputs, x = NETWORKS[request.param]()
    return keras.Model(inputs, outputs), clone_network(inputs, outputs), x


@pytest.fixture
def network(cloned):
    """A model, its copy, and a batch."""
    model, copy, x = cloned
    before = values(model), values(copy)
    yield model, copy, x
    for one, kept in zip((model, copy), before, strict=True):
        for variable, value in zip(one.variables, kept, strict=True):
            variable.assign(value)


def test_the_copy_computes_the_same(network):
    model, copy, x = network
    for training in (False, True):
        assert equal(model(x, training=training), copy(x, training=training))
    # Also what it wrote meanwhile, such as statistics, seeds and states.
    assert equal(values(model), values(copy))


def test_gradients_are_equal(network):
    model, copy, x = network
    for training in (False, True):
        found = gradients(model, x, training=training)
        assert equal(found, gradients(copy, x, training=training))


def test_names_shapes_and_flags_are_kept(network):
    model, copy, _ = network
    told = [
        [
            (v.path.rpartition("seed_generator")[2], v.shape, v.dtype, v.trainable)
            for v in one.variables
        ]
        for one in (model, copy)
    ]
    assert told[0] == told[1]
    assert [one.name for one in model.layers if not made_for_inputs(one)] == [
        one.name for one in copy.layers if not made_for_inputs(one)
    ]


def made_for_inputs(layer):
    return isinstance(layer, keras.layers.InputLayer)


def test_it_is_independent_both_ways(network):
    model, copy, x = network
    for one, other in ((model, copy), (copy, model)):
        before = values(one)
        move(other)
        assert equal(values(one), before)
        assert not equal(values(one), values(other))
        move(one)
        assert equal(values(one), values(other))
        assert equal(one(x), other(x))


def test_an_optimizer_of_its_own_trains_it(network):
    model, copy, x = network
    before, start = values(model), [variable.numpy() for variable in copy.trainable_variables]
    optimizer = keras.optimizers.SGD(0.5)
    with tf.GradientTape() as tape:
        outputs = tf.nest.flatten(copy(x))
        loss = sum(tf.reduce_mean(tf.cast(one, "float32") ** 2) for one in outputs)
    slopes = tape.gradient(loss, [variable.value for variable in copy.trainable_variables])
    pairs = zip(slopes, copy.trainable_variables, strict=True)
    optimizer.apply_gradients([(slope, one) for slope, one in pairs if slope is not None])
    assert equal(values(model), before)
    assert not equal([variable.numpy() for variable in copy.trainable_variables], start)


def test_the_original_can_be_deleted():
    inputs, outputs, x = NETWORKS["dense"]()
    expected = arrays(keras.Model(inputs, outputs)(x))
    copy = clone_network(inputs, outputs)
    layer = weakref.ref(outputs._keras_history.operation)
    del inputs, outputs
    gc.collect()
    assert layer() is None
    assert equal(copy(x), expected)


@pytest.mark.parametrize("family", MODELS)
def test_whole_models_of_every_family(family):
    make, x = MODELS[family]
    model = make()
    model(x)
    copy = clone_network(model)
    assert type(copy) is type(model)
    assert copy.name == model.name
    assert equal(model(x), copy(x))
    before = values(model)
    move(copy)
    assert equal(values(model), before)
    assert not equal(model(x), copy(x))


def test_compile_and_fit_touch_the_copy_alone():
    inputs, outputs, x = NETWORKS["dense"]()
    model, copy = keras.Model(inputs, outputs), clone_network(inputs, outputs)
    before = values(model)
    copy.compile("adam", "mse")
    copy.fit(x, np.ones((4, 2)), epochs=2, verbose=0)
    assert equal(values(model), before)
    changed = [not equal(a, b) for a, b in zip(before, values(copy), strict=True)]
    # All but the kernel of a dead channel may have moved; both biases certainly.
    assert changed[1]
    assert changed[-2]


def test_a_clone_of_a_clone():
    inputs, outputs, x = NETWORKS["nested"]()
    first = clone_network(inputs, outputs)
    second = clone_network(first)
    third = clone_network(second.inputs[0], second.outputs[0])
    result = arrays(first(x))
    move(second)
    assert equal(first(x), result)
    assert equal(third(x), result)
