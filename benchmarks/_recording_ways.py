"""What is done after a training step to record it: by us, by each peer, and at the limit."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from contextlib import ExitStack
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import keras
import numpy as np
import tensorflow as tf

import tb_pastnet as pastnet
from benchmarks._by_hand import ByHand
from benchmarks._pairs import Action

NEVER = 10**9

PLAIN = {"CNN": 6.0, "ResNet-50": 20.0, "transformer": 14.0, "200 small variables": 35.0}
"""Our bars for a record at each step, in % of a step."""


class Background:
    """The processor time of the threads that write a log."""

    def __init__(self) -> None:
        self._before = set(threading.enumerate())

    def seconds(self) -> float:
        """Of those that began since this was made, as far as they still run."""
        own = set(threading.enumerate()) - self._before
        clocks = [time.pthread_getcpuclockid(one.ident) for one in own if one.ident]
        return sum(map(time.clock_gettime, clocks))


class Ours(NamedTuple):
    """Our recorder in the parts that make up `every=1` and `every=10`.

    Attributes:
        record: of `every=1`: it compares, and copies in the same pass.
        compare: what a record does whose past was copied before.
        copy: the past copy alone.
        idle: a step at which nothing is due.
        behind: what `record` costs on the thread that writes.
        flush: waits until all is written.
    """

    record: Action
    compare: Action
    copy: Action
    idle: Action
    behind: Background
    flush: Action

    @property
    def actions(self) -> dict[str, Action]:
        """What is timed."""
        return {name: getattr(self, name) for name in ("record", "compare", "copy", "idle")}


def ours(model: Any, folder: Path, stack: ExitStack, **options: Any) -> Ours:
    """Our recorder.

    Args:
        model: what it records.
        folder: of the logs.
        stack: closes them.
        options: of the recorder, for a path that isn't the one it takes by itself.
    """

    def recorder(name: str, every: int, past: str) -> pastnet.Recorder:
        made = pastnet.Recorder(folder / name, model, every=every, past=past, **options)
        return stack.enter_context(made)

    def numbered(one: pastnet.Recorder) -> Action:
        steps = count(1)
        return lambda: one.record(next(steps))

    every = recorder("every", 1, "previous")
    behind = Background()
    record = numbered(every)
    record()  # its thread begins with the first record
    compare = numbered(recorder("compare", 1, "initial"))
    never = recorder("never", NEVER, "epoch")
    return Ours(record, compare, never.sync, numbered(never), behind, every.flush)


def peers(model: Any, folder: Path, stack: ExitStack) -> dict[str, Action]:
    """The peers that need no more than TensorFlow and Keras.

    Args:
        model: what they record, compiled.
        folder: of the logs.
        stack: closes them.
    """
    writer = tf.summary.create_file_writer(str(folder / "all"))
    stack.callback(writer.close)
    steps, epochs, records = count(1), count(), count(1)

    def histograms() -> None:
        with writer.as_default(next(steps)):
            for weight in model.weights:
                tf.summary.histogram(weight.path, weight.value)

    callback = keras.callbacks.TensorBoard(
        str(folder / "keras"), histogram_freq=1, write_graph=False
    )
    callback.set_model(model)
    callback.on_train_begin()
    stack.callback(callback.on_train_end)
    by_hand = ByHand(model, str(folder / "by_hand"))
    return {
        "tf.summary.histogram of all variables": histograms,
        "Keras's TensorBoard callback, histogram_freq=1": lambda: callback.on_epoch_end(
            next(epochs), {}
        ),
        "by hand: NumPy, tf.summary.write": lambda: by_hand.record(next(records)),
    }


def limits(weights: int) -> Mapping[str, Action]:
    """What it takes to stream 12 bytes a weight: read current and past, write past.

    Args:
        weights: how many.
    """
    current, past = np.zeros(weights, np.float32), np.ones(weights, np.float32)
    with tf.device("CPU"):
        given, kept = tf.zeros(weights), tf.Variable(tf.ones(weights))

    def stream() -> None:
        kept.assign_add(given)

    return {"one core": lambda: np.add(past, current, out=past), "all cores": tf.function(stream)}
