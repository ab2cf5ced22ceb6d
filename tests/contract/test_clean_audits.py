"""Trainings in which nothing leaks: the audit finds nothing, however weights are held."""

from __future__ import annotations

import keras
import numpy as np
import pytest
import tensorflow as tf

from tb_pastnet.core.violation import MOVING_STATISTICS
from tb_pastnet.keras.masks.masks import Masks, load_model
from tests.planted import BIAS, KERNEL, At, Audited, build, fit, holes

PROVE = pytest.mark.prove  # others of their kind are in the suite
SGD, AdamW = keras.optimizers.SGD, keras.optimizers.AdamW


def hold(model):
    masks = Masks(model)
    masks.freeze(KERNEL, holes()[0])
    masks.prune(KERNEL, channels=[1])
    masks.freeze(BIAS, channels=[2])
    return masks


def check(*audits, noted=()):
    for audited in audits:
        assert audited.audit.violations == []
        assert audited.truth == {}
        assert [note.split(",")[0] for note in audited.audit.notes] == [*noted]


@pytest.mark.parametrize(
    "optimizer",
    [
        SGD(0.05, momentum=0.9, weight_decay=0.1, clipnorm=1.0),
        AdamW(0.01, global_clipnorm=1.0, gradient_accumulation_steps=2),
        pytest.param(
            keras.optimizers.Adam(0.01, use_ema=True, ema_overwrite_frequency=3), marks=PROVE
        ),
        pytest.param(keras.optimizers.LossScaleOptimizer(keras.optimizers.Lion(0.01)), marks=PROVE),
        pytest.param(keras.optimizers.RMSprop(0.01, momentum=0.5), marks=PROVE),
        pytest.param(keras.optimizers.Adafactor(0.01, weight_decay=0.01), marks=PROVE),
        pytest.param(keras.optimizers.Lamb(0.01, weight_decay=0.01), marks=PROVE),
        pytest.param(keras.optimizers.Ftrl(0.01), marks=PROVE),
        pytest.param(keras.optimizers.Adagrad(0.01), marks=PROVE),
        pytest.param(keras.optimizers.Muon(0.01), marks=PROVE),
    ],
    ids=["sgd", "accumulation", "average", "scaled", "rmsprop", "adafactor", "lamb", "ftrl",
         "adagrad", "muon"],
)  # fmt: skip
def test_masks_that_enforce(optimizer):
    model = build(keras.Model)
    model.compile(optimizer, "mse", steps_per_execution=2)
    audits = [Audited(1), Audited(10)]
    # They come while it trains, before and after it is traced.
    freeze = At(1, lambda: Masks(model).freeze(BIAS, channels=[2]))
    fit(model, freeze, At(5, lambda: hold(model)), *audits)
    check(*audits)


def test_models_that_share_a_layer():
    model = build(keras.Model)
    head = keras.layers.Dense(3, name="head")
    other = keras.Sequential([keras.Input((6,)), model.get_layer("dense"), head])
    hold(model)
    audits = [Audited(1), Audited(1)]
    for _ in range(2):
        for one, audited in zip((model, other), audits, strict=True):
            one.compile(AdamW(0.01), "mse")
            fit(one, audited, steps=4)
    check(*audits)


def test_a_target_that_a_copy_follows():
    model = build(keras.Model)
    model.compile(AdamW(0.01), "mse")
    hold(model)
    target = build(keras.Model)
    target.trainable = False
    audited = Audited(1)

    def follow():
        target.set_weights(model.get_weights())

    fit(model, At(2, follow), At(3, follow), audited)
    check(audited)
    assert (target.get_layer("dense").kernel.numpy()[:, 1] == 0).all()


def test_masks_that_change():
    model = build(keras.Model)
    model.compile(AdamW(0.01), "mse")
    masks = hold(model)
    start = masks.snapshot()
    audits = [Audited(1), Audited(10)]

    def again():
        masks.thaw(KERNEL)
        masks.freeze(KERNEL, channels=[3])

    changes = [
        At(3, lambda: masks.regrow(KERNEL)),
        At(5, again),
        At(7, lambda: masks.prune_smallest(0.5)),
        At(11, lambda: masks.rewind(start)),
        At(13, lambda: masks.rewind(start, "learning_rate")),
    ]
    fit(model, *changes, *audits)
    check(*audits)


def test_an_optimizer_that_replaces_another():
    model = build(keras.Model)
    model.compile(SGD(0.05, momentum=0.9), "mse")
    hold(model)
    audits = [Audited(1), Audited(10)]
    fit(model, *audits)
    model.compile(AdamW(0.05), "mse")
    fit(model, *audits)
    check(*audits)


def test_weights_and_masks_that_are_loaded_while_it_trains(tmp_path):
    path = str(tmp_path / "model.keras")
    model = build(keras.Model)
    model.compile(AdamW(0.05), "mse")
    hold(model)
    fit(model)
    model.save(path)
    loaded = load_model(path)
    audits = [Audited(1), Audited(10)]
    # Back to the frozen values of the file, which are held from there on.
    fit(loaded, At(5, lambda: loaded.load_weights(path)), *audits)
    check(*audits)


@pytest.mark.parametrize("eagerly", [True, False])
def test_trainable_false_that_is_compiled(eagerly):
    model = build(keras.Model)
    model.compile(AdamW(0.05), "mse", run_eagerly=eagerly)
    fit(model, steps=3)
    model.get_layer("dense").trainable = False
    model.compile(AdamW(0.05), "mse", run_eagerly=eagerly)
    audits = [Audited(1), Audited(2)]
    fit(model, *audits, steps=4)
    check(*audits)


def test_statistics_of_a_frozen_normalization():
    inputs = keras.Input((6,))
    norm = keras.layers.BatchNormalization()
    model = keras.Model(inputs, keras.layers.Dense(3)(norm(inputs)))
    norm.gamma.trainable = norm.beta.trainable = False
    model.compile(AdamW(0.05), "mse")
    before = norm.moving_mean.numpy()
    audits = [Audited(1), Audited(10)]
    fit(model, *audits)
    assert (norm.moving_mean.numpy() != before).all()
    check(*audits, noted=[MOVING_STATISTICS])


def test_a_constraint_in_eager_steps_sets_nothing_by_hand():
    inputs = keras.Input((6,))
    dense = keras.layers.Dense(3, name="dense", kernel_constraint="max_norm")
    model = keras.Model(inputs, dense(inputs))
    model.compile(AdamW(0.05), "mse", run_eagerly=True)
    Masks(model).freeze(KERNEL, channels=[1])
    audited = Audited(1)
    fit(model, audited, steps=4)
    check(audited)


def test_a_step_of_ones_own():
    model = build(keras.Model)
    model.compile(SGD(0.05, momentum=0.9), "mse")
    hold(model)
    audited = Audited(1)
    audited.set_model(model)
    audited.on_train_begin()

    @tf.function
    def train(x, y):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((model(x) - y) ** 2)
        variables = model.trainable_variables
        model.optimizer.apply(tape.gradient(loss, variables), variables)

    for _ in range(5):
        train(np.ones((4, 6), "f"), np.ones((4, 3), "f"))
        audited.on_train_batch_end(0)
    check(audited)
