"""Every kind of leak is found at the first record after it begins, with its channels and cause."""

from __future__ import annotations

import keras
import numpy as np
import pytest
import tensorflow as tf

from tb_pastnet.keras.masks.masks import Masks
from tests.planted import (
    BIAS,
    HELD,
    HELD_FROM,
    KERNEL,
    At,
    Audited,
    GradientMasks,
    build,
    declare,
    fit,
    holes,
)
from tests.sampled import sampled

PROVE = pytest.mark.prove
SGD, Adam = keras.optimizers.SGD, keras.optimizers.Adam


def leaking(optimizer, *callbacks, held_from=HELD_FROM):
    """Trains with gradient masks alone; audited at each step and at each tenth."""
    model = build()
    model.compile(optimizer, "mse")
    audits = [Audited(1), Audited(10)]
    fit(model, At(held_from, lambda: declare(model)), *callbacks, *audits)
    return audits


def check(audits, cause, channels=HELD, begin=HELD_FROM):
    for audited in audits:
        assert audited.found() == audited.truth
        assert set(audited.truth) == set(channels)
        first = -(-(begin + 1) // audited.every) * audited.every
        assert {one.first_step for one in audited.audit.violations} == {first}
        assert {one.cause for one in audited.audit.violations} == {cause}


@pytest.mark.parametrize(
    "optimizer",
    [
        pytest.param(SGD(0.05, weight_decay=0.1), id="sgd"),
        pytest.param(
            SGD(keras.optimizers.schedules.CosineDecay(0.1, 30), weight_decay=0.01),
            id="schedule",
            marks=PROVE,
        ),
        pytest.param(keras.optimizers.RMSprop(0.01, weight_decay=1e-3), id="rmsprop", marks=PROVE),
        pytest.param(
            keras.optimizers.Adafactor(0.01, weight_decay=0.01), id="adafactor", marks=PROVE
        ),
    ],
)
def test_weight_decay(optimizer):
    check(leaking(optimizer), "weight_decay")


def test_weight_decay_whose_rate_a_callback_changes():
    optimizer = SGD(0.05, weight_decay=0.1)
    later = At(8, lambda: setattr(optimizer, "learning_rate", 0.01))
    check(leaking(optimizer, later), "weight_decay")


def test_weight_decay_with_accumulated_gradients():
    optimizer = SGD(0.05, weight_decay=0.1, gradient_accumulation_steps=2)
    # Updates are made with every second batch.
    check(leaking(optimizer, held_from=6), "weight_decay", begin=7)


@pytest.mark.parametrize(
    "optimizer",
    [
        pytest.param(SGD(0.05, momentum=0.9), id="sgd"),
        pytest.param(keras.optimizers.AdamW(0.01, weight_decay=1e-4), id="adamw", marks=PROVE),
        pytest.param(keras.optimizers.Lamb(0.01), id="lamb"),
        pytest.param(SGD(0.05, momentum=0.9, nesterov=True), id="nesterov", marks=PROVE),
        pytest.param(Adam(0.01), id="adam", marks=PROVE),
        pytest.param(keras.optimizers.RMSprop(0.01, momentum=0.5), id="rmsprop", marks=PROVE),
        pytest.param(keras.optimizers.Nadam(0.01), id="nadam", marks=PROVE),
        pytest.param(keras.optimizers.Adamax(0.01), id="adamax", marks=PROVE),
        pytest.param(keras.optimizers.Lion(0.01), id="lion", marks=PROVE),
        pytest.param(Adam(0.01, amsgrad=True), id="amsgrad", marks=PROVE),
        pytest.param(keras.optimizers.LossScaleOptimizer(Adam(0.01)), id="scaled", marks=PROVE),
    ],
)
def test_momentum(optimizer):
    check(leaking(optimizer), "momentum")


def test_the_larger_of_weight_decay_and_momentum():
    check(leaking(keras.optimizers.AdamW(0.01, weight_decay=50.0)), "weight_decay")


def test_moving_average():
    optimizer = SGD(0.05, use_ema=True, ema_momentum=0.9, ema_overwrite_frequency=HELD_FROM + 1)
    check(leaking(optimizer), "ema")


def test_moving_average_when_fit_ends():
    model = build()
    model.compile(SGD(0.05, use_ema=True, ema_momentum=0.9), "mse")
    audits = [Audited(1), Audited(10)]
    fit(model, At(HELD_FROM, lambda: declare(model)), *audits)
    fit(model, *audits)
    check(audits, "ema", begin=20)


def test_set_weights():
    model = build()
    model.compile(Adam(0.01), "mse")
    audits = [Audited(1), Audited(10)]

    def load():
        noise = np.random.default_rng(7)
        model.set_weights([v + 0.1 * noise.normal(size=v.shape) for v in model.get_weights()])

    # Held from the beginning, so that there is no momentum either.
    fit(model, At(0, lambda: declare(model)), At(HELD_FROM, load), *audits)
    check(audits, "loaded")


def test_load_weights(tmp_path):
    model = build(keras.Model)
    model.compile("sgd", "mse")
    path = str(tmp_path / "old.weights.h5")
    model.save_weights(path)
    audits = [Audited(1), Audited(10)]
    freeze = At(2, lambda: Masks(model).freeze(KERNEL, holes()[0]))
    fit(model, freeze, At(HELD_FROM, lambda: model.load_weights(path)), *audits)
    check(audits, "loaded", {(KERNEL, 2), (KERNEL, 5)})


class Masking(keras.optimizers.SGD):
    """An optimizer with gradient masks inside, lost when another one replaces it."""

    def apply(self, grads, trainable_variables=None):
        masks = [*holes(), np.True_, np.True_]
        grads = [grad * mask.astype("f") for grad, mask in zip(grads, masks, strict=True)]
        super().apply(grads, trainable_variables)


def test_replaced_optimizer():
    model = build(keras.Model)
    model.compile(Masking(0.05), "mse")
    masks = Masks(model, enforce=False)
    masks.freeze(KERNEL, holes()[0])
    masks.freeze(BIAS, holes()[1])
    audits = [Audited(1), Audited(10)]
    fit(model, *audits, steps=HELD_FROM)
    model.compile(Adam(0.05), "mse")
    fit(model, *audits)
    check(audits, "optimizer_replaced")


@pytest.mark.parametrize(
    "optimizer", [SGD(0.05), pytest.param(keras.optimizers.AdamW(0.01), marks=PROVE)]
)
def test_trainable_without_compile(optimizer):
    model = build(keras.Model)
    model.compile(optimizer, "mse")
    audits = [Audited(1), Audited(10)]
    freeze = At(HELD_FROM, lambda: setattr(model.get_layer("dense"), "trainable", False))
    fit(model, freeze, *audits)
    every = [(KERNEL, channel) for channel in range(8)] + [(BIAS, channel) for channel in range(8)]
    check(audits, "not_recompiled", every)


@pytest.mark.parametrize("enforce", [True, False])
def test_what_a_graph_assigns(enforce):
    model = build()
    model.compile("sgd", "mse")
    audits = [Audited(1), Audited(10)]
    masks = Masks(model, enforce=enforce)
    masks.freeze(KERNEL, holes()[0])
    model.factors[0].assign(holes()[0].astype("f"))
    fit(model, At(HELD_FROM, lambda: model.leak.assign(0.01)), *audits)
    # Where no slot tells of a gradient, an optimizer may have done it.
    check(audits, "written" if enforce else "unknown", {(KERNEL, 2)})


def test_a_gradient_that_is_not_masked():
    model = build(keras.Model)
    model.compile(SGD(0.05, momentum=0.9, weight_decay=1e-3), "mse")
    audits = [Audited(1), Audited(10)]
    freeze = At(HELD_FROM, lambda: Masks(model, enforce=False).freeze(KERNEL, holes()[0]))
    fit(model, freeze, *audits)
    check(audits, "gradient", {(KERNEL, 2), (KERNEL, 5)})


def test_a_step_that_was_traced_before_the_masks():
    model = build(keras.Model)
    model.compile("sgd", "mse")
    x, y = np.ones((4, 6), "f"), np.ones((4, 3), "f")

    @tf.function
    def train():
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((model(x) - y) ** 2)
        variables = model.trainable_variables
        model.optimizer.apply(tape.gradient(loss, variables), variables)

    train()
    audited = Audited(1)
    audited.set_model(model)
    audited.on_train_begin()
    masks = Masks(model)
    masks.freeze(KERNEL, holes()[0])
    audited.on_train_batch_begin(0)
    train()
    audited.on_train_batch_end(0)
    check([audited], "bypassed", {(KERNEL, 2), (KERNEL, 5)}, begin=0)
    [note] = audited.audit.notes
    assert note == (
        "Could not hold 'dense/kernel' in a training step: expected a step traced after its first "
        "mask, got one traced before, which bypasses it. Create the tf.function of the step again."
    )


def test_momentum_in_a_step_of_ones_own():
    model = build()
    model.compile(SGD(0.05, momentum=0.9), "mse")
    Masks(model, enforce=False)
    audited = Audited(1)
    audited.set_model(model)
    audited.on_train_begin()
    batch = np.ones((4, 6), "f"), np.ones((4, 3), "f")
    train = tf.function(lambda: model.train_step(batch))
    for step in range(4):
        if step == 2:
            declare(model)
            audited._refer()
        train()
        # As a Recorder does, it looks only after a step; masks tell it themselves when they change.
        audited.on_train_batch_end(0)
    check([audited], "momentum", begin=2)


EVERY = [(KERNEL, channel) for channel in range(8)] + [(BIAS, channel) for channel in range(8)]


class Assigning(keras.Model):
    """Writes a kernel in its step, besides what an optimizer does."""

    def train_step(self, data):
        logs = super().train_step(data)
        kernel = self.get_layer("dense").kernel
        kernel.assign(kernel + 0.01)
        return logs


@pytest.mark.parametrize("held", ["masks", "declared", "flag"])
def test_what_a_step_assigns(held):
    model = build(Assigning if held != "declared" else GradientMasks)
    model.compile(Adam(0.01), "mse")
    audits = [Audited(1), Audited(10)]
    channels = {(KERNEL, channel) for channel in range(8)}
    if held == "flag":
        model.get_layer("dense").trainable = False
        model.compile(Adam(0.01), "mse")
    elif held == "masks":
        Masks(model).freeze(KERNEL)
    else:
        declare(model)
        model.leak.assign(0.01)
        channels = {(KERNEL, 2)}
    fit(model, *audits)
    check(audits, "written", channels, begin=0)


def test_an_update_of_one_variable_by_an_optimizer():
    model = build(keras.Model)
    model.compile(Adam(0.01), "mse")
    masks = Masks(model)
    masks.freeze(KERNEL)
    masks.audit()
    fit(model, steps=2)
    kernel = model.get_layer("dense").kernel
    model.optimizer.update_step(np.ones((6, 8), "f4"), kernel, 0.1)
    assert {each.cause for each in masks.audit()} == {"written"}


def test_a_layer_that_writes_its_own_weights():
    keras.utils.set_random_seed(3)
    layer = keras.layers.SpectralNormalization(keras.layers.Dense(8, name="dense"))
    model = keras.Sequential([keras.Input((6,)), layer, keras.layers.Dense(3)])
    layer.trainable = False
    model.compile("sgd", "mse")
    audited = Audited(1)
    fit(model, audited)
    assert {each.cause for each in audited.audit.violations} == {"written"}


@pytest.mark.parametrize(
    "optimizer",
    [pytest.param(SGD(0.05), id="sgd"), pytest.param(Adam(0.01), id="adam", marks=PROVE)],
)
def test_another_model_that_shares_the_layer(optimizer):
    model = build(keras.Model)
    head = keras.layers.Dense(3, name="head")
    other = keras.Sequential([keras.Input((6,)), model.get_layer("dense"), head])
    other.compile(optimizer, "mse")
    fit(other, steps=1)
    model.get_layer("dense").trainable = False
    model.compile("adam", "mse")
    fit(model, steps=1)
    audited = Audited(1)
    audited.set_model(model)
    audited.on_train_begin()
    audited.on_train_batch_begin(0)
    fit(other, steps=1)
    audited.on_train_batch_end(0)
    check([audited], "another_model", EVERY, begin=0)


CONSTRAINTS = [
    keras.constraints.MaxNorm(0.5),
    keras.constraints.NonNeg(),
    keras.constraints.UnitNorm(),
]


@pytest.mark.parametrize(
    "constraint", sampled(CONSTRAINTS, every=3), ids=lambda each: type(each).__name__
)
def test_a_constraint(constraint):
    model = build()
    model.get_layer("dense").kernel.constraint = constraint
    model.compile("sgd", "mse")
    audits = [Audited(1), Audited(10)]
    masks = Masks(model, enforce=False)
    masks.freeze(KERNEL, holes()[0])
    model.factors[0].assign(holes()[0].astype("f"))
    fit(model, *audits)
    for audited in audits:
        assert audited.found() == audited.truth
        assert {one.cause for one in audited.audit.violations} == {"constraint"}
