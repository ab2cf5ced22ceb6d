"""The runs in Keras. Each of five is a function of the data and the callbacks that record it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import keras

import tb_pastnet as pastnet
from demo import LOTTERY, lottery
from demo.digits import BATCH, Digits
from demo.keras_network import accuracy, leaves, network
from demo.leak import GradientMasks, MaskedGradients
from demo.story import (
    EPOCHS,
    EVERY,
    FREEZE,
    LEAK,
    LEAK_DECAY,
    LEAK_RATE,
    LEAKING,
    PRUNE,
    THAW,
    Say,
    progress,
    pruned_share,
    rate,
)

PROBE = 32  # of the test digits: how far the outputs move on these
PROBE_EVERY = 20  # records from one such evaluation to the next

Recording = list[keras.callbacks.Callback]  # what records it, and says how far it is


def compile_(model: Any, optimizer: Any) -> None:
    """Compiles a classifier of digits."""
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(optimizer, loss, metrics=["accuracy"])


def fit(model: Any, data: Digits, callbacks: Recording, start: int = 0, end: int = EPOCHS) -> None:
    """Trains from one epoch to another; the learning rate drops by the calendar of RATES."""
    drops = keras.callbacks.LearningRateScheduler(rate)
    model.fit(
        *data.train,
        batch_size=BATCH,
        initial_epoch=start,
        epochs=end,
        verbose=0,
        callbacks=[drops, *callbacks],
    )


def dense(data: Digits, recording: Recording) -> Any:
    """The baseline: nothing is frozen, nothing is pruned."""
    model = network()
    compile_(model, keras.optimizers.Adam())
    keras.utils.set_random_seed(0)
    fit(model, data, recording)
    return model


def freeze_steps(data: Digits, recording: Recording) -> Any:
    """Layers are frozen one by one with `trainable = False`; the last is thawed near the end."""
    model = network()
    keras.utils.set_random_seed(0)
    convolutions = [layer for layer in leaves(model) if isinstance(layer, keras.layers.Conv2D)]
    compile_(model, keras.optimizers.Adam())
    fit(model, data, recording, 0, FREEZE[0])
    for layer, start, end in zip(convolutions, FREEZE, (*FREEZE[1:], THAW), strict=True):
        layer.trainable = False
        compile_(model, keras.optimizers.Adam())
        fit(model, data, recording, start, end)
    convolutions[-1].trainable = True
    compile_(model, keras.optimizers.Adam())
    fit(model, data, recording, THAW)
    return model


def prune_channels(data: Digits, recording: Recording, seed: int) -> Any:
    """Half of the channels of each layer are pruned by magnitude; the seed is the data's order."""
    model = network()
    compile_(model, keras.optimizers.Adam())
    masks = pastnet.Masks(model)
    kernels = [name for name in masks.kept if name.endswith("/kernel") and "logits" not in name]

    def prune(epoch: int, _: Any) -> None:
        if epoch not in PRUNE:
            return
        share = pruned_share(epoch)
        masks.prune_smallest(share, scope="layer", structured=True, variables=kernels)
        for name in kernels:
            kept = masks.kept[name]
            # A channel without its bias as well gives nothing but zeros.
            masks.prune(f"{name.removesuffix('kernel')}bias", kept.any(tuple(range(kept.ndim - 1))))

    keras.utils.set_random_seed(seed)
    fit(model, data, [keras.callbacks.LambdaCallback(on_epoch_begin=prune), *recording])
    return model


def leak_weight_decay(data: Digits, recording: Recording) -> Any:
    """Half of the channels of block2 were to be frozen, but weight decay moves them.

    The masks only say what was meant, so that the recorder's audit sees what is done instead.
    """
    plain = network()
    model = MaskedGradients(plain.inputs[0], plain.outputs[0], name="digits")
    model.masks = GradientMasks(leaves(model.get_layer("block2")))
    # Without momentum, and at a constant rate: the leak is weight decay alone.
    compile_(model, keras.optimizers.RMSprop(learning_rate=LEAK_RATE, weight_decay=LEAK_DECAY))
    declared = pastnet.Masks(model, enforce=False)

    def freeze(epoch: int, _: Any) -> None:
        if epoch == LEAK:
            model.masks.freeze(slice(0, LEAKING))
            for name in ("block2/conv1/kernel", "block2/conv2/kernel"):
                declared.freeze(name, channels=range(LEAKING))

    callbacks = [keras.callbacks.LambdaCallback(on_epoch_begin=freeze), *recording]
    keras.utils.set_random_seed(0)
    model.fit(*data.train, batch_size=BATCH, epochs=EPOCHS, verbose=0, callbacks=callbacks)
    return model


RUNS: dict[str, Callable[[Digits, Recording], Any]] = {
    "dense": dense,
    "freeze_steps": freeze_steps,
    "prune_channels_s0": lambda data, recording: prune_channels(data, recording, 0),
    "prune_channels_s1": lambda data, recording: prune_channels(data, recording, 1),
    "leak_weight_decay": leak_weight_decay,
}


class Progress(keras.callbacks.Callback):
    """Says at some epochs how far a run is."""

    def __init__(self, name: str, say: Say) -> None:
        super().__init__()
        self._name, self._say = name, say

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """Says it at each quarter."""
        progress(self._name, epoch, self._say)


def trained(
    name: str, data: Digits, logdir: Path, say: Say = lambda _: None
) -> Iterator[tuple[str, float]]:
    """Trains what a name stands for, and records it.

    Args:
        name: one of demo.NAMES.
        data: the digits.
        logdir: where its runs lie.
        say: gets a line now and then.

    Yields:
        Name of each run, several of the lottery and one of all others, and its share of the test
        digits that are right.
    """
    if name == LOTTERY:
        for part, model in lottery.shown(data, logdir / name):
            yield f"{name}/{part}", accuracy(model, data)
    else:
        probe = data.test[0][:PROBE]
        recording = pastnet.PastNetCallback(
            logdir / name, every=EVERY, probe=probe, probe_every=PROBE_EVERY
        )
        yield name, accuracy(RUNS[name](data, [recording, Progress(name, say)]), data)
