"""Trains with Keras on the backend of KERAS_BACKEND, and prints what came of it, as JSON."""

from __future__ import annotations

import json
import logging
import sys
import tempfile

if __name__ == "__main__":
    # Neither backend needs it, nor may what records them.
    sys.modules["tensorflow"] = None  # type: ignore[assignment]

import keras
import numpy as np

import tb_pastnet as pastnet

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 8, 8, 1)).astype("float32")
Y = RNG.integers(0, 3, 60)


def built(accumulated=None, **compiled):
    keras.utils.set_random_seed(3)
    model = keras.Sequential(
        [
            keras.Input((8, 8, 1)),
            keras.layers.Conv2D(4, 3, name="first"),
            keras.layers.BatchNormalization(),
            keras.layers.Flatten(),
            keras.layers.Dense(5, activation="relu"),
            keras.layers.Dense(3),
        ]
    )
    model.layers[0].trainable = False
    rate = keras.optimizers.schedules.ExponentialDecay(1e-2, 4, 0.5)
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    optimizer = keras.optimizers.AdamW(rate, gradient_accumulation_steps=accumulated)
    model.compile(optimizer, loss, **compiled)
    return model


def trained(model, *callbacks, epochs=2):
    history = model.fit(X, Y, 8, epochs, verbose=0, shuffle=False, callbacks=[*callbacks])
    return history.history["loss"]


class Weights(keras.callbacks.Callback):
    """Those after each step, also before the first."""

    def __init__(self):
        super().__init__()
        self.seen = []

    def on_train_begin(self, logs=None):
        self.seen.append(self.model.get_weights())

    def on_train_batch_end(self, batch, logs=None):
        self.seen.append(self.model.get_weights())


class Donated(keras.callbacks.Callback):
    """Whether JAX has taken each state's memory for the next one."""

    def __init__(self):
        super().__init__()
        self.answers, self._state = [], None

    def on_train_batch_end(self, batch, logs=None):
        if self._state is not None:
            self.answers.append(all(array.is_deleted() for array in self._state))
        state = getattr(self._model, "_jax_state", None)
        self._state = state and state["trainable_variables"]


def recorded(logdir):
    (run,) = pastnet.read(logdir).runs.values()
    return run


def main():
    plain, watched, seen, donated = built(), built(), Weights(), Donated()
    losses = trained(plain, seen)
    logdir = tempfile.mkdtemp()
    callback = pastnet.PastNetCallback(logdir, every=1)
    same = losses == trained(watched, callback, donated)
    pairs = zip(plain.get_weights(), watched.get_weights(), strict=True)
    same = same and all((a == b).all() for a, b in pairs)
    callback.recorder.flush()
    run = recorded(logdir)
    # Of each weight how far the norm of each step is from that of what another training saw.
    worst = 0.0
    for number, variable in enumerate(run.variables.values()):
        values = [weights[number].reshape(-1, weights[number].shape[-1]) for weights in seen.seen]
        norms = np.array([np.linalg.norm(b - a, axis=0) for a, b in zip(values, values[1:])])  # noqa: B905, RUF007
        error = abs(variable.delta_norm - norms) / np.maximum(norms, 1e-12)
        worst = max(worst, float(error.max()))
    before = watched.layers[0].kernel.numpy().copy()
    watched.layers[0].kernel.assign(before + 1)
    watched.layers[3].trainable = False
    watched.compile("sgd", watched.loss)  # as Keras on JAX asks for
    trained(watched, callback, epochs=1)
    callback.close()
    after = recorded(logdir)
    stride = tempfile.mkdtemp()
    several = pastnet.PastNetCallback(stride, every=1)
    executions = 3 if keras.backend.backend() == "jax" else 1
    trained(built(steps_per_execution=executions), several, epochs=1)
    several.close()
    folder = tempfile.mkdtemp()
    accumulated = pastnet.PastNetCallback(folder, every=1)
    trained(built(accumulated=2), accumulated)
    accumulated.close()
    gathered = recorded(folder)
    try:
        trained(built(), pastnet.PastNetCallback(tempfile.mkdtemp(), probe=X[:2]))
    except pastnet.errors.InvalidArgument as error:
        refused = str(error)
    sys.stdout.write(
        json.dumps(
            {
                "same": same,
                "donated": donated.answers,
                "worst": worst,
                "names": [*run.variables],
                "steps": run.steps.tolist(),
                "rates": run.learning_rates.tolist(),
                "roles": [variable.role for variable in run.variables.values()],
                "notes": [*run.notes],
                "all_steps": after.steps.tolist(),
                "violated": sorted({(v.variable, v.first_step) for v in after.violations}),
                "trainable": after.variables["dense/kernel"].trainable[[0, -1], 0].tolist(),
                "strides": recorded(stride).steps.tolist(),
                "accumulated": {
                    "notes": [*gathered.notes],
                    "steps": gathered.steps.tolist(),
                    "rates": gathered.learning_rates.tolist(),
                },
                "refused": refused,
            }
        )
    )


if __name__ == "__main__":
    logging.getLogger("tb_pastnet").setLevel(logging.ERROR)
    main()
