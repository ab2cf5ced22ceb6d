"""What is done after a training step to record it: by us, by each peer, and at the limit."""

from __future__ import annotations

import threading
import time
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
from benchmarks._training import waited
from benchmarks._variants import Variant
from tb_pastnet.keras.model.tf_weights import network

NEVER = 10**9
PATIENCE = 120.0  # seconds until all is written


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

    def behind_a_record(self, model: Any, records: int = 32) -> float:
        """Seconds of a processor that the thread behind the queue takes for a record.

        Records are made as quickly as they come, so that whole blocks of them are packed, as in a
        training whose steps are short.

        Args:
            model: what is recorded; its weights are changed.
            records: how many, of which 16 are a block.
        """
        self.flush()
        start = self.behind.seconds()
        for _ in range(records):
            for weight in model.weights:
                move = tf.random.uniform(weight.shape[-1:], 0.999, 1.001)
                weight.assign(weight * move)
            self.record()
        self.flush()
        return (self.behind.seconds() - start) / records


def channels(model: Any) -> int:
    """How many channels a recorder sees in a model."""
    return sum(one.axis.channels for one in network(model, None, None).weights)


def ours(model: Any, variant: Variant, folder: Path, stack: ExitStack) -> Ours:
    """Our recorder.

    Args:
        model: what it records.
        variant: how.
        folder: of the logs.
        stack: closes them.

    Raises:
        Failure: what the variant needs isn't installed.
    """
    variant.choose()

    def recorder(name: str, every: int, past: str) -> pastnet.Recorder:
        made = pastnet.Recorder(folder / variant.fast / name, model, every=every, past=past)
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
    idle = numbered(never)
    return Ours(record, compare, waited(never.sync), idle, behind, lambda: every.flush(PATIENCE))


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


def limits(weights: int) -> dict[str, Action]:
    """What it takes to stream 12 bytes a weight: read current and past, write past.

    Args:
        weights: how many.
    """
    # Not zeros: untouched, they are one page of memory, which stays in the cache.
    current, past = np.ones(weights, np.float32), np.ones(weights, np.float32)
    given, kept = tf.ones(weights), tf.Variable(tf.ones(weights))

    def stream() -> None:
        kept.assign_add(given)

    return {
        "limit, 12 bytes a weight: one core": lambda: np.add(past, current, out=past),
        "limit, 12 bytes a weight: TensorFlow": waited(tf.function(stream)),
    }
