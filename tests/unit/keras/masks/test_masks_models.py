"""Masks on models of every make: subclassed, nested, with shared layers, a tf.Module, plain variables."""

from __future__ import annotations

import keras
import numpy as np
import pytest
import tensorflow as tf

import tb_pastnet as pastnet
from tb_pastnet.keras.masks.carried import attached


@keras.saving.register_keras_serializable("tests")
class Subclassed(keras.Model):
    def __init__(self, **more):
        super().__init__(**more)
        self.first = keras.layers.Dense(5, activation="tanh")
        self.rest = [keras.layers.Dense(3)]

    def call(self, inputs):
        return self.rest[0](self.first(inputs))


def subclassed():
    model = Subclassed()
    model(np.zeros((1, 6)))
    return model


def nested():
    inner = keras.Sequential([keras.Input((6,)), keras.layers.Dense(5)], name="inner")
    inputs = keras.Input((6,))
    return keras.Model(inputs, keras.layers.Dense(3)(inner(inputs)))


def shared():
    layer = keras.layers.Dense(6)
    inputs = keras.Input((6,))
    return keras.Model(inputs, keras.layers.Dense(3)(layer(layer(inputs))))


class Back(keras.layers.Layer):
    """Multiplies by the transposed kernel of another layer."""

    def __init__(self, layer):
        super().__init__()
        self.kernel = layer.kernel

    def call(self, inputs):
        return inputs @ keras.ops.transpose(self.kernel)


def tied():
    inputs = keras.Input((6,))
    layer = keras.layers.Dense(6, use_bias=False)
    hidden = layer(inputs)
    return keras.Model(inputs, keras.layers.Dense(3)(Back(layer)(hidden)))


def recurrent():
    inputs = keras.Input((2, 3))
    return keras.Model(inputs, keras.layers.Dense(3)(keras.layers.LSTM(4)(inputs)))


MODELS = {
    "subclassed": (subclassed, "dense/kernel"),
    "nested": (nested, "inner/dense/kernel"),
    "shared": (shared, "dense/kernel"),
    "recurrent": (recurrent, "recurrent_kernel"),
}


def data(model):
    generator = np.random.default_rng(0)
    shape = (2, 3) if isinstance(model.layers[-2], keras.layers.LSTM) else (6,)
    return generator.normal(size=(16, *shape)).astype("f"), generator.normal(size=(16, 3)).astype(
        "f"
    )


def masked(make, name):
    model = make()
    model.compile(keras.optimizers.SGD(0.05, momentum=0.9, weight_decay=0.1), "mse")
    # Slots that the first step makes would have it traced twice: the inner model below has such.
    model.optimizer.build(model.trainable_variables)
    masks = pastnet.Masks(model)
    masks.prune(name, channels=[0])
    masks.freeze(name, channels=[1])
    return model, masks


def held(masks, model, name):
    through = masks.kept[name] & masks.trainable[name]
    weight = next(w for n, w in attached(model).weights.items() if n.endswith(name))
    return weight.variable.numpy()[~through].tobytes()


FILES = {
    "subclassed": "keras",
    "nested": "weights.h5",
    "shared": "keras",
}


# Each make, and each kind of file: masks are stored by names, and files have these of any make.
@pytest.mark.parametrize(
    ("kind", "saved"),
    [
        pytest.param(kind, saved, marks=[pytest.mark.prove] * (saved != FILES.get(kind)))
        for kind in MODELS
        for saved in ("keras", "weights.h5")
    ],
)
def test_held_saved_and_back(kind, saved, tmp_path):
    make, name = MODELS[kind]
    model, masks = masked(make, name)
    x, y = data(model)
    before = held(masks, model, name)
    model.fit(x, y, epochs=3, verbose=0)
    assert held(masks, model, name) == before
    path = tmp_path / f"model.{saved}"
    if saved == "keras":
        model.save(path)
        other = pastnet.load_model(path)
        found = pastnet.Masks(other)
    else:
        model.save_weights(path)
        other = make()
        other.compile("sgd", "mse")
        other.optimizer.build(other.trainable_variables)
        found = pastnet.Masks(other)
        with pytest.warns(UserWarning, match="Skipping variable loading for optimizer"):
            other.load_weights(path)
    np.testing.assert_array_equal(found.kept[name], masks.kept[name])
    np.testing.assert_array_equal(found.trainable[name], masks.trainable[name])
    assert held(found, other, name) == before
    assert [id_.endswith(name) for id_ in found.resumed.equal] == [True]
    assert not found.resumed.changed
    other.fit(x, y, epochs=3, verbose=0)
    assert held(found, other, name) == before


def test_shared_variables_have_one_mask_and_count_once():
    for make, weights in ((shared, 6 * 6 + 6 * 3), (tied, 6 * 6 + 6 * 3)):
        model, masks = masked(make, "dense/kernel")
        assert masks.sparsity() == pytest.approx(6 / weights)
        x, y = data(model)
        before = held(masks, model, "dense/kernel")
        model.fit(x, y, epochs=3, verbose=0)
        assert held(masks, model, "dense/kernel") == before


def test_an_inner_model_carries_its_own_masks(tmp_path):
    model = nested()
    optimizer = keras.optimizers.SGD(0.05, momentum=0.9)
    model.compile(optimizer, "mse")
    inner = model.get_layer("inner")
    masks = pastnet.Masks(inner, optimizer)
    masks.prune("kernel", channels=[0])
    model.fit(*data(model), epochs=2, verbose=0)
    assert not inner.get_weights()[0][:, 0].any()
    inner.save(tmp_path / "inner.keras")
    assert (
        pastnet.Masks(pastnet.load_model(tmp_path / "inner.keras"), enforce=False).sparsity() == 0.2
    )


class Module(tf.Module):
    def __init__(self):
        super().__init__()
        self.w = tf.Variable(np.random.default_rng(0).normal(size=(6, 3)).astype("f"), name="w")
        self.b = tf.Variable(np.ones(3, "f"), name="b")

    def __call__(self, x):
        return x @ self.w + self.b


@pytest.mark.parametrize("given", ["module", "mapping"])
def test_variables_without_keras(given):
    """Keras's optimizers update plain tf.Variables as well."""
    module = Module()
    optimizer = keras.optimizers.SGD(0.05, momentum=0.9, weight_decay=0.1)
    weights = [keras.Variable(module.w), keras.Variable(module.b)] if given == "mapping" else None
    model = {"w": weights[0], "b": weights[1]} if weights else module
    trained = weights or [module.w, module.b]
    masks = pastnet.Masks(model, optimizer)
    masks.prune("w", channels=[0])
    masks.freeze("w", channels=[1])
    before = np.asarray(trained[0])
    for _ in range(20):
        optimizer.apply([tf.ones((6, 3)), tf.ones(3)], trained)
    after = np.asarray(trained[0])
    assert after[:, :2].tobytes() == before[:, :2].tobytes()
    assert (after[:, 2] != before[:, 2]).all()


def test_a_module_keeps_its_masks_in_a_checkpoint(tmp_path):
    module, other = Module(), Module()
    other.w.assign(np.full((6, 3), 7.0))
    masks = pastnet.Masks(module, keras.optimizers.SGD())
    masks.prune("w", channels=[2])
    path = tf.train.Checkpoint(module=module).save(str(tmp_path / "at"))
    found = pastnet.Masks(other, keras.optimizers.SGD())
    tf.train.Checkpoint(module=other).restore(path)
    np.testing.assert_array_equal(found.kept["w"], np.ones((6, 3)) * [True, True, False])
    assert found.resumed == (("w",), {})
