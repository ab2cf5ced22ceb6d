"""Whoever owns, trains, changes or copies a network: its masks hold, and all that is told is true."""

from __future__ import annotations

import copy
import pickle
import random
import threading

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import layers

from tb_pastnet import Masks, PastNetCallback, load_model, read

# Keras has none of what an optimizer keeps that made no step before its model was saved.
pytestmark = pytest.mark.filterwarnings("ignore:Skipping variable loading for optimizer")

WAYS = 60
STEPS = 50
BATCH = 4

X = np.random.default_rng(0).normal(size=(BATCH * STEPS // 2, 6)).astype("f4")
Y = np.random.default_rng(1).normal(size=(BATCH * STEPS // 2, 2)).astype("f4")

OPTIMIZERS = {
    "sgd": lambda: keras.optimizers.SGD(0.01, momentum=0.9, weight_decay=0.01),
    "adamw": lambda: keras.optimizers.AdamW(0.01, weight_decay=0.1),
    "ema": lambda: keras.optimizers.Adam(0.01, use_ema=True, ema_overwrite_frequency=7),
    "ema-end": lambda: keras.optimizers.SGD(0.01, use_ema=True),
    "clipped": lambda: keras.optimizers.RMSprop(0.01, global_clipnorm=0.5),
    "gathered": lambda: keras.optimizers.Adam(0.01, gradient_accumulation_steps=2),
    "scaled": lambda: keras.optimizers.LossScaleOptimizer(keras.optimizers.SGD(0.01)),
}


def body():
    return keras.Sequential([keras.Input((6,)), layers.Dense(8, "tanh"), layers.Dense(5, "tanh")])


def under_a_head(part):
    inputs = keras.Input((6,))
    return keras.Model(inputs, layers.Dense(2)(part(inputs)))


class TwoOptimizers(keras.Model):
    """Trains its part with an optimizer of its own, as the networks of a GAN are trained."""

    def __init__(self, part, optimizer):
        super().__init__()
        self.part, self.head, self.inner = part, layers.Dense(2), optimizer

    def call(self, x):
        return self.head(self.part(x))

    def train_step(self, data):
        x, y = data
        with tf.GradientTape(persistent=True) as tape:
            loss = self.compute_loss(x, y, self(x, training=True))
        for optimizer, owner in ((self.inner, self.part), (self.optimizer, self.head)):
            weights = owner.trainable_variables
            optimizer.apply(tape.gradient(loss, weights), weights)
        return {"loss": loss}


WHOLES = {
    "under a head": lambda part, optimizer: under_a_head(part),
    "under two heads": lambda part, optimizer: under_a_head(under_a_part(part)),
    "sharing layers": lambda part, optimizer: keras.Sequential(
        [keras.Input((6,)), *part.layers, layers.Dense(2)]
    ),
    "with an optimizer of its own": TwoOptimizers,
}


def under_a_part(part):
    inputs = keras.Input((6,))
    return keras.Model(inputs, part(inputs))


def fit(model, *callbacks):
    model.fit(X, Y, BATCH, verbose=0, shuffle=False, callbacks=list(callbacks))


def own_loop(model, compiled):
    optimizer, weights = model.optimizer, model.trainable_variables
    optimizer.build(weights)

    def step(x, y):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((model(x, training=True) - y) ** 2)
        optimizer.apply(tape.gradient(loss, weights), weights)

    step = tf.function(step) if compiled else step
    for start in range(0, len(X), BATCH):
        step(X[start : start + BATCH], Y[start : start + BATCH])


def in_threads(model):
    optimizer, weights = model.optimizer, model.trainable_variables
    optimizer.build(weights)

    @tf.function
    def step(x, y):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((model(x, training=True) - y) ** 2)
        optimizer.apply(tape.gradient(loss, weights), weights)

    def run():
        for start in range(0, len(X), BATCH):
            step(X[start : start + BATCH], Y[start : start + BATCH])

    step(X[:BATCH], Y[:BATCH])
    threads = [threading.Thread(target=run) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


TRAINED = {
    "fit": fit,
    "own loop": lambda model: own_loop(model, compiled=True),
    "eager loop": lambda model: own_loop(model, compiled=False),
    "threads": in_threads,
}


def saved(model, folder):
    model.save(folder / "model.keras")
    return load_model(folder / "model.keras")


COPIES = {
    "none": lambda model, folder: model,
    "deepcopy": lambda model, folder: copy.deepcopy(model),
    "pickle": lambda model, folder: pickle.loads(pickle.dumps(model)),
    "saved": saved,
}


class Held:
    """What masks hold of each weight, by an account of its own."""

    def __init__(self, masks):
        masks.state.look()
        self.values = {
            name: np.where(masks.kept[name], np.asarray(weight.variable), np.float32(0))
            for name, weight in masks.state.weights.items()
        }
        self.through = {name: masks.kept[name] & masks.trainable[name] for name in self.values}

    def check(self, masks):
        """Held values are what they were, bit by bit; what trains has moved, as far as it can."""
        moved = []
        for name, weight in masks.state.weights.items():
            value, through = np.asarray(weight.variable), self.through[name]
            assert value[~through].tobytes() == self.values[name][~through].tobytes(), name
            moved.append((value != self.values[name])[through])
            assert masks.sparsity(weight.variable) == pytest.approx(float((value == 0).mean())), (
                name
            )
        # Some lead to pruned weights alone.
        assert np.concatenate(moved).mean() > 0.2
        assert masks.sparsity() == pytest.approx(masks.zeros())
        assert masks.audit() == []


def freeze_some(masks, name):
    """Freezes the first channel that isn't pruned."""
    variable = masks.state.weights[name].variable
    masks.freeze(variable, channels=np.flatnonzero(masks.kept[name].any(0))[:1])


def hold(rng, masks):
    """Prunes and freezes some of it."""
    names = [name for name in masks.state.weights if name.endswith("kernel")]
    masks.prune_smallest(rng.choice([0.2, 0.5, 0.8]), rng.choice(["global", "layer"]))
    freeze_some(masks, rng.choice(names))
    # A bias begins at zero, where what is kept could be taken for pruned.
    for name in set(masks.state.weights) - set(names):
        weight = masks.state.weights[name].variable
        weight.assign(np.linspace(0.1, 0.2, weight.shape[0]))


def meanwhile(rng, model, masks, optimizer):
    """What people do between two trainings."""
    for event in rng.sample(["nothing", "compile", "replace", "late", "layers", "flag"], 2):
        if event == "compile":
            model.compile(optimizer(), "mse")
        elif event == "replace":
            model.optimizer = optimizer()
        elif event == "late":
            freeze_some(masks, next(iter(masks.kept)))
        elif event == "layers" and type(model) is keras.Sequential:
            model.pop()
            model.add(layers.Dense(3))
            model.add(layers.Dense(2))
            model.compile(optimizer(), "mse")
        elif event == "flag":
            model.layers[-1].trainable = False
            model.compile(optimizer(), "mse")
            model.layers[-1].trainable = True
            model.compile(optimizer(), "mse")


def owned(rng):
    """A network, and one of its parts; compiled, and maybe trained already."""
    part = body()
    model = WHOLES[rng.choice([*WHOLES])](part, OPTIMIZERS[rng.choice([*OPTIMIZERS])]())
    model(X[:1])
    return part, model


def check(seed, folder):
    """Draws a way of owning a network, trains it and looks at all that is told of its masks."""
    rng = random.Random(seed)
    keras.utils.set_random_seed(seed)
    part, model = owned(rng)
    own = isinstance(model, TwoOptimizers)
    # `fit` ends with the averages of all weights, as if one optimizer had trained them.
    optimizer = OPTIMIZERS[
        rng.choice([name for name in OPTIMIZERS if "ema" not in name or not own])
    ]
    trained = "fit" if own else rng.choice([*TRAINED])
    copied = "none" if own else rng.choice([*COPIES])
    late = rng.random() < 0.5
    if late:
        model.compile(optimizer(), "mse")
        fit(model)
    masks = Masks(part if rng.random() < 0.6 else model)
    hold(rng, masks)
    if not late:
        model.compile(optimizer(), "mse")
    whole = COPIES[copied](model, folder)
    if whole is not model:
        masks, model = Masks(whole), whole
    meanwhile(rng, model, masks, optimizer)
    held = Held(masks)
    callback = PastNetCallback(folder / "log", every=5)
    TRAINED[trained](model, *([callback] if trained == "fit" else []))
    held.check(masks)
    if trained == "fit":
        callback.close()
        (run,) = read(folder / "log").runs.values()
        assert run.violations == ()
        assert run.sparsity[-1] == pytest.approx(Masks(model).sparsity())
        assert Masks(model).sparsity() > 0


@pytest.mark.parametrize("seed", range(2))
def test_masks_hold_however_a_network_is_owned(seed, tmp_path):
    check(seed, tmp_path)


@pytest.mark.prove
@pytest.mark.parametrize("seed", range(2, WAYS))
def test_masks_hold_however_a_network_is_owned_in_many_ways(seed, tmp_path):
    check(seed, tmp_path)
