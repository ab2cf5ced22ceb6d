"""One training, written for two tabs: histograms of all variables, and the records of tb_pastnet.

The log directory gets two folders, `histograms` and `pastnet`, each with the runs of RUNS. The
weights after every step stay in memory: from them NumPy gives the answers that the tabs are asked
for.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import keras
import numpy as np
import tensorflow as tf
from numpy.typing import NDArray

import tb_pastnet as pastnet
from demo.digits import BATCH, Digits, digits
from demo.story import rate

RUNS = ("seed_0", "seed_1")
EPOCHS = 40
EVERY = 2  # both are written at every second step
PROBE = 32  # images
FREEZE, THAW = 8, 26  # the epochs at which conv1 is held, and let go
STAIRS = (
    (6, 0.2),
    (10, 0.4),
    (13, 0.5),
)  # epochs, and the share of conv2's channels pruned from then on
HALVE = 9  # at this epoch half of the weights of hidden are pruned
FORGET = 14  # at this epoch logits is set to trainable=False, without a new compile

Array = NDArray[Any]


class Told(NamedTuple):
    """What a training was, to compare answers with.

    Attributes:
        values: of each variable after each step, float32 (1 + steps, …), the initial values first.
        outputs: of the network on the probe before and after some steps, as asked for.
    """

    values: dict[str, Array]
    outputs: dict[int, Array]


def network() -> Any:
    """The network; its initial values are the same at each call."""
    keras.utils.set_random_seed(0)
    layers = [
        keras.Input((8, 8, 1)),
        keras.layers.Conv2D(16, 3, padding="same", activation="relu", name="conv1"),
        keras.layers.MaxPooling2D(name="pool1"),
        keras.layers.Conv2D(32, 3, padding="same", activation="relu", name="conv2"),
        keras.layers.MaxPooling2D(name="pool2"),
        keras.layers.Flatten(name="flatten"),
        keras.layers.Dense(64, activation="relu", name="hidden"),
        keras.layers.Dense(10, name="logits"),
    ]
    return keras.Sequential(layers, name="digits")


class Histograms(keras.callbacks.Callback):  # type: ignore[misc]
    """Writes a histogram of each variable, at the steps at which the other callback records."""

    def __init__(self, logdir: Path) -> None:
        super().__init__()
        self._writer = tf.summary.create_file_writer(str(logdir))
        self._step = 0

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        self._step += 1
        if self._step % EVERY == 0:
            with self._writer.as_default(self._step):
                for variable in self.model.weights:
                    tf.summary.histogram(variable.path, variable.value)

    def on_train_end(self, logs: Any = None) -> None:
        self._writer.close()


class Memory(keras.callbacks.Callback):  # type: ignore[misc]
    """Keeps all weights after each step, and the outputs at some."""

    def __init__(self, probe: Array, asked: tuple[int, ...]) -> None:
        super().__init__()
        self._probe, self._asked = probe, asked
        self.told = Told({}, {})
        self._kept: dict[str, list[Array]] = {}
        self._step = 0

    def _keep(self) -> None:
        for variable in self.model.weights:
            self._kept.setdefault(variable.path, []).append(np.array(variable))
        if self._step in self._asked:
            self.told.outputs[self._step] = np.array(self.model(self._probe, training=False))

    def on_train_begin(self, logs: Any = None) -> None:
        self._keep()

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        self._step += 1
        self._keep()

    def on_train_end(self, logs: Any = None) -> None:
        self.told.values.update({name: np.stack(kept) for name, kept in self._kept.items()})


def holding(model: Any) -> Any:
    """The callback that freezes, prunes and forgets."""
    masks = pastnet.Masks(model)

    def begin(epoch: int, _: Any) -> None:
        if epoch == FREEZE:
            masks.freeze("conv1/kernel")
            masks.freeze("conv1/bias")
        elif epoch == THAW:
            masks.thaw("conv1/kernel")
            masks.thaw("conv1/bias")
        elif epoch == HALVE:
            masks.prune_smallest(0.5, variables=["hidden/kernel"])
        elif epoch == FORGET:
            model.get_layer("logits").trainable = False
        elif epoch in dict(STAIRS):
            kernel = ["conv2/kernel"]
            masks.prune_smallest(dict(STAIRS)[epoch], structured=True, variables=kernel)
            masks.prune("conv2/bias", masks.kept["conv2/kernel"].any((0, 1, 2)))

    return keras.callbacks.LambdaCallback(on_epoch_begin=begin)


def train(run: str, data: Digits, logdir: Path, asked: tuple[int, ...]) -> Told:
    """Trains one run and writes both logs of it.

    Args:
        run: one of RUNS; the seed of the order of the data is its place there.
        data: the digits.
        logdir: of both folders.
        asked: steps at which the outputs are kept.

    Returns:
        What the training was.
    """
    model = network()
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(keras.optimizers.Adam(), loss)
    probe = data.test[0][:PROBE]
    memory = Memory(probe, asked)
    callbacks = [
        keras.callbacks.LearningRateScheduler(rate),
        holding(model),
        pastnet.PastNetCallback(logdir / "pastnet" / run, every=EVERY, probe=probe),
        Histograms(logdir / "histograms" / run),
        memory,
    ]
    keras.utils.set_random_seed(RUNS.index(run))
    model.fit(*data.train, batch_size=BATCH, epochs=EPOCHS, verbose=0, callbacks=callbacks)
    return memory.told


def trained(logdir: Path, asked: tuple[int, ...] = ()) -> dict[str, Told]:
    """Trains all runs.

    Args:
        logdir: a folder that is empty or isn't there yet.
        asked: as of `train`.
    """
    data = digits()
    return {run: train(run, data, logdir, asked) for run in RUNS}
