"""A probe leaves a training bit-identical."""

from __future__ import annotations

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import layers

from tb_pastnet import PastNetCallback, Recorder
from tests.recorded import read_lineages, read_one

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(40, 6)).astype("f"), RNG.integers(0, 3, 40)
OPTIMIZERS = {
    "SGD": lambda: keras.optimizers.SGD(0.1, momentum=0.9),
    "Adam": lambda: keras.optimizers.Adam(0.01),
}


def compiled(optimizer="Adam", **settings):
    keras.utils.set_random_seed(1)
    parts = [
        layers.Dense(8, activation="relu"),
        layers.BatchNormalization(),
        layers.Dropout(0.3),
        layers.GaussianNoise(0.1),
        layers.Dense(3, dtype="float32"),
    ]
    model = keras.Sequential([keras.Input((6,)), *parts])
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(OPTIMIZERS[optimizer](), loss, **settings)
    return model


def fit(model, *callbacks):
    """Losses, and the bytes of all variables, also those of the optimizer and of seeds."""
    history = model.fit(X, Y, epochs=2, batch_size=4, verbose=0, callbacks=list(callbacks))
    variables = [*model.variables, *model.optimizer.variables]
    return history.history["loss"], [np.asarray(one).tobytes() for one in variables]


def steps_of(log):
    return [step for one in log.functions for step in one.steps.tolist()]


@pytest.mark.parametrize(
    ("optimizer", "jit", "every"),
    [
        ("SGD", False, 10),
        # What Keras compiles by default, as below, XLA compiles.
        pytest.param("Adam", True, 1, marks=pytest.mark.prove),
        pytest.param("Adam", False, 1, marks=pytest.mark.prove),
        pytest.param("SGD", True, 10, marks=pytest.mark.prove),
    ],
)
def test_training_is_bit_identical(tmp_path, optimizer, jit, every):
    without = fit(compiled(optimizer, jit_compile=jit))
    callback = PastNetCallback(tmp_path, every=every, probe=X[:7])
    assert fit(compiled(optimizer, jit_compile=jit), callback) == without
    callback.close()
    log = read_one(tmp_path)
    assert log.last.notes == {}
    assert steps_of(log) == sorted({1, *range(every, 21, every)})  # the first, too
    values = np.concatenate([one.values for one in log.functions], 1)
    assert (values[0] > 0).all()


# Some versions of Keras say so at the end of an epoch whose last execution is short.
@pytest.mark.filterwarnings("ignore:Your input ran out of data")
def test_executions_of_several_steps(tmp_path):
    without = fit(compiled(steps_per_execution=4))
    callback = PastNetCallback(tmp_path, every=1, probe=X[:7])
    assert fit(compiled(steps_per_execution=4), callback) == without
    callback.close()
    assert steps_of(read_one(tmp_path)) == [4, 8, 10, 14, 18, 20]


# That of float16 scales losses beside it; test_measures has other types.
@pytest.mark.parametrize(
    "policy", ["mixed_float16", pytest.param("mixed_bfloat16", marks=pytest.mark.prove)]
)
def test_mixed_precision(tmp_path, policy):
    keras.mixed_precision.set_global_policy(policy)
    try:
        without = fit(compiled())
        callback = PastNetCallback(tmp_path, every=1, probe=X[:7])
        assert fit(compiled(), callback) == without
    finally:
        keras.mixed_precision.set_global_policy("float32")
    callback.close()
    log = read_one(tmp_path)
    assert log.last.notes == {}
    assert steps_of(log) == list(range(1, 21))


def test_a_probe_that_raises_leaves_training_as_it_was(tmp_path, monkeypatch):
    without = fit(compiled())
    callback = PastNetCallback(tmp_path, every=1, probe=X[:7])
    monkeypatch.setattr("tb_pastnet.keras.probe.probe.Probe.values", lambda self, past: 1 / 0)
    assert fit(compiled(), callback) == without
    callback.close()
    log = read_one(tmp_path)
    assert log.record_steps() == list(range(1, 21))
    assert log.functions == []


def test_values_go_on_over_several_fits(tmp_path):
    model = compiled()
    callback = PastNetCallback(tmp_path, every=1, probe=X[:7])
    fit(model, callback)
    model.compile("sgd", "sparse_categorical_crossentropy")
    fit(model, callback)
    callback.close()
    (log,) = read_lineages(tmp_path)
    assert steps_of(log) == list(range(1, 41))


def test_a_loop_of_ones_own_around_a_module(tmp_path):
    class Model(tf.Module):
        def __init__(self):
            super().__init__()
            self.w = tf.Variable(tf.random.stateless_normal((6, 3), (1, 2)))

        @tf.function
        def __call__(self, x):
            return x @ self.w

    def train(recorder):
        for step, x in enumerate(np.split(X, 10), 1):
            with tf.GradientTape() as tape:
                loss = tf.reduce_sum(tf.square(model(x)))
            model.w.assign_sub(0.01 * tape.gradient(loss, model.w))
            if recorder is not None:
                recorder.record(step)
        return model.w.numpy().tobytes()

    model = Model()
    without = train(None)
    model = Model()
    with Recorder(tmp_path, model, every=1, initial_step=0, probe=X[:7]) as recorder:
        assert train(recorder) == without
    log = read_one(tmp_path)
    assert steps_of(log) == list(range(1, 11))
    assert [(place.kind, place.name) for place in log.functions[0].places] == [("output", "output")]
