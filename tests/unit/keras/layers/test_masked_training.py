"""What layers hold stays bit-identical, whatever moves their trained variables."""

from __future__ import annotations

import keras
import numpy as np
import pytest
from keras import layers, optimizers

from tb_pastnet.keras.layers.masked import Masked, MaskedDense

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(48, 6)).astype("f"), RNG.integers(0, 3, 48)
OPTIMIZERS = {
    "SGD": lambda: optimizers.SGD(0.1),
    "Nesterov, decay": lambda: optimizers.SGD(0.05, 0.9, nesterov=True, weight_decay=0.1),
    "AdamW, AMSGrad": lambda: optimizers.AdamW(0.01, weight_decay=0.1, amsgrad=True),
    "RMSprop, global_clipnorm": lambda: optimizers.RMSprop(0.01, momentum=0.9, global_clipnorm=0.1),
    "Adam, EMA overwriting": lambda: optimizers.Adam(0.01, use_ema=True, ema_overwrite_frequency=3),
    "Adam, EMA final": lambda: optimizers.Adam(0.01, use_ema=True),
    "Adam, accumulation": lambda: optimizers.Adam(0.01, gradient_accumulation_steps=2),
    "Lion": lambda: optimizers.Lion(0.01, weight_decay=0.1),
    "Adafactor": lambda: optimizers.Adafactor(0.1),
    "Lamb": lambda: optimizers.Lamb(0.01, weight_decay=0.1),
}


def network(optimizer, **settings):
    keras.utils.set_random_seed(1)
    model = keras.Sequential(
        [
            keras.Input((6,)),
            MaskedDense(8, "relu", name="first"),
            layers.BatchNormalization(),
            Masked(layers.Dense(6, kernel_constraint="max_norm"), name="second"),
            MaskedDense(3, kernel_regularizer="l2", name="third"),
        ]
    )
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(optimizer, loss, **settings)
    # Slots that the first step makes would have it traced twice: test_masked_saving has such.
    model.optimizer.build(model.trainable_variables)
    return model


def fit(model, epochs=2, batch_size=4):
    return model.fit(X, Y, batch_size=batch_size, epochs=epochs, verbose=0).history["loss"]


def weights(model):
    masked = [layer for layer in model.layers if isinstance(layer, Masked)]
    return [weight for layer in masked for weight in layer.masked_weights()]


def hold(model):
    """Prunes and freezes at random; returns the held places and their values."""
    rng = np.random.default_rng(7)
    for weight in weights(model):
        weight.prune(rng.random(weight.shape) > 0.3)
        open_places = rng.random(weight.shape) > 0.3
        weight.freeze(open_places | ~weight.kept)
    held = [~(weight.kept & weight.trainable) for weight in weights(model)]
    return [
        (weight, where, weight.numpy()) for weight, where in zip(weights(model), held, strict=True)
    ]


def check(held):
    for weight, where, before in held:
        after = weight.numpy()
        assert where.any()
        assert after[where].tobytes() == before[where].tobytes()
        assert (after[~weight.kept] == 0).all()
    assert any((weight.numpy()[~where] != before[~where]).any() for weight, where, before in held)


NOW = ("Nesterov, decay", "Adam, EMA overwriting", "Adam, accumulation")
"""The others move weights as one of these does: the layers know of no optimizer."""


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[pytest.mark.prove] * (name not in NOW)) for name in OPTIMIZERS],
)
def test_under_every_kind_of_optimizer(name):
    model = network(OPTIMIZERS[name]())
    fit(model, epochs=1)
    held = hold(model)
    losses = fit(model)
    check(held)
    assert np.isfinite(losses).all()


# Some versions of Keras say so at the end of an epoch whose last execution is short.
@pytest.mark.filterwarnings("ignore:Your input ran out of data")
@pytest.mark.parametrize(
    "settings",
    # By default XLA compiles.
    [{"jit_compile": False}, {"steps_per_execution": 4}, {"run_eagerly": True}],
    ids=lambda settings: next(iter(settings)),
)
def test_however_the_step_is_compiled(settings):
    model = network(OPTIMIZERS["AdamW, AMSGrad"](), **settings)
    batch_size = 16 if "run_eagerly" in settings else 4
    fit(model, epochs=1, batch_size=batch_size)
    traces = _traces(model)
    held = hold(model)
    fit(model, batch_size=batch_size)
    check(held)
    assert _traces(model) == traces


def _traces(model):
    counted = getattr(model.train_function, "experimental_get_tracing_count", None)
    return counted() if counted else None


# XLA with layers of one precision is above.
@pytest.mark.parametrize("jit", [False, pytest.param(True, marks=pytest.mark.prove)])
def test_mixed_precision(jit):
    keras.mixed_precision.set_global_policy("mixed_float16")
    try:
        model = network(OPTIMIZERS["AdamW, AMSGrad"](), jit_compile=jit)
        fit(model, epochs=1)
        held = hold(model)
        fit(model)
    finally:
        keras.mixed_precision.set_global_policy("float32")
    assert model.layers[0].compute_dtype == "float16"
    assert all(before.dtype == np.float32 for _, _, before in held)
    check(held)


@pytest.mark.parametrize(
    "name",
    [
        "AdamW, AMSGrad",
        *(pytest.param(name, marks=pytest.mark.prove) for name in ("SGD", "Nesterov, decay")),
    ],
)
def test_free_weights_train_as_those_of_a_stock_layer(name):
    def make(kind):
        keras.utils.set_random_seed(1)
        model = keras.Sequential([keras.Input((6,)), kind(8, "relu"), kind(3)])
        model.compile(OPTIMIZERS[name](), keras.losses.SparseCategoricalCrossentropy(True))
        model.optimizer.build(model.trainable_variables)
        return model

    ours, stock = make(MaskedDense), make(layers.Dense)
    held = hold(ours)
    for (_, _, value), variable in zip(held, stock.weights, strict=True):
        variable.assign(value)
    for at in range(0, 48, 4):
        ours.train_on_batch(X[at : at + 4], Y[at : at + 4])
        stock.train_on_batch(X[at : at + 4], Y[at : at + 4])
        for (_, where, value), variable in zip(held, stock.weights, strict=True):
            variable.assign(np.where(where, value, variable.numpy()))
    check(held)
    for (weight, _, _), variable in zip(held, stock.weights, strict=True):
        np.testing.assert_allclose(weight.numpy(), variable.numpy(), rtol=1e-5, atol=1e-7)


def test_what_is_thawed_and_regrown_goes_on_from_where_it_was_held():
    model = network(OPTIMIZERS["AdamW, AMSGrad"]())
    held = hold(model)
    fit(model)
    moved = [weight.weight.numpy()[where] != before[where] for weight, where, before in held]
    assert np.concatenate(moved).any()
    for weight, where, before in held:
        pruned = ~weight.kept
        weight.thaw()
        weight.regrow()
        assert weight.kept.all()
        assert weight.trainable.all()
        np.testing.assert_array_equal(weight.numpy()[where], before[where])
        np.testing.assert_array_equal(weight.weight.numpy(), weight.numpy())
        assert (weight.numpy()[pruned] == 0).all()
    fit(model)
    assert all((weight.numpy()[where] != before[where]).any() for weight, where, before in held)


def test_values_that_are_not_finite():
    model = network(OPTIMIZERS["Nesterov, decay"]())
    weight = model.layers[0].masked_weight("kernel")
    value = weight.numpy()
    value[0, 0], value[1, 1] = np.nan, -np.inf
    weight.weight.assign(value)
    weight.prune(np.isfinite(value))
    # As a diverging optimizer would leave it at a held place.
    weight.weight.assign(value)
    assert np.isfinite(fit(model)).all()
    assert np.isfinite(weight.numpy()).all()
    assert (weight.numpy()[~np.isfinite(value)] == 0).all()


MIRRORED = """
import tensorflow as tf
from tests.unit.keras.layers.test_masked_training import OPTIMIZERS, check, fit, hold, network
with strategy.scope():
    model = network(OPTIMIZERS["AdamW, AMSGrad"]())
fit(model, epochs=1)
held = hold(model)
fit(model)
check(held)
print("held")
"""


def test_two_replicas(two_devices):
    assert two_devices.run(MIRRORED).split()[-1] == "held"
