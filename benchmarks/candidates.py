"""Ways to compute the statistics of all channels on processors, against the limit.

Each compares the weights of a network with their past copy, gives five statistics a channel, and
makes the current values the past ones: what a record at each step takes. The limit is what it takes
to stream 12 bytes a weight. Two of them are what tb_pastnet does, without and with numba.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from typing import Any
from unittest import mock

import keras
import numpy as np
import tensorflow as tf

from benchmarks._models import ALL_TASKS, tiny
from benchmarks._options import pairs_of, with_pairs
from benchmarks._pairs import Action, interleaved
from benchmarks._recording_ways import limits
from benchmarks._rows import Rows
from tb_pastnet.core.numba_switch import SWITCH
from tb_pastnet.keras.keras_source import KerasSource
from tb_pastnet.keras.measure import copies
from tb_pastnet.keras.measure.learning_rate import LearningRate
from tb_pastnet.keras.model.tf_weights import TFWeight, network
from tb_pastnet.record import array_copies
from tb_pastnet.record.weight import Network

TABLE = "Statistics and past copy of all weights, as multiples of the limit"
PLAIN, FAST = "ours: TensorFlow, small variables stacked", "ours, [fast]: numba"
BAR = 3.0


def ours(records: Sequence[TFWeight], way: str) -> Action:
    """What tb_pastnet does."""
    with mock.patch.dict(os.environ, {SWITCH: "1" if way == FAST else "0"}):
        source = KerasSource(Network.of(records), LearningRate())
    return lambda: source.compare(0, replace=True)


def one_by_one(records: Sequence[TFWeight]) -> Action:
    """The same in TensorFlow, without stacking small variables."""
    with mock.patch.object(copies, "STACK_ELEMENTS", 0):
        return ours(records, PLAIN)


def one_thread(records: Sequence[TFWeight]) -> Action:
    """The same by numba, without threads."""
    with mock.patch.object(array_copies, "processors", return_value=1):
        return ours(records, FAST)


def by_function(
    records: Sequence[TFWeight], reduce: Callable[[Any, Any, Any], Any], **options: Any
) -> Action:
    """A formula in one tf.function, a variable at a time."""
    pairs = [(record.variable, record.axis) for record in records]
    past = [tf.Variable(tf.convert_to_tensor(one), trainable=False) for one, _ in pairs]

    def run() -> list[Any]:
        values = [tf.convert_to_tensor(one) for one, _ in pairs]
        rows = [
            reduce(value, old.read_value(), axis)
            for value, old, (_, axis) in zip(values, past, pairs, strict=True)
        ]
        for old, value in zip(past, values, strict=True):
            old.assign(value)
        return rows

    compiled = tf.function(run, autograph=False, **options)
    return lambda: [row.numpy() for row in compiled()]


def squares(value: Any, past: Any, axis: Any) -> Any:
    """Sums of squares as they are: XLA, which fuses them, has no Euclidean norm."""
    now, before = tf.reshape(value, axis.view), tf.reshape(past, axis.view)
    delta = now - before
    over = [at for at in range(len(axis.view)) if at not in axis.axes]
    sums = [tf.sqrt(tf.reduce_sum(one * one, over)) for one in (now, before, delta)]
    changed = tf.reduce_sum(tf.cast(tf.not_equal(now, before), tf.float32), over)
    return tf.stack([*sums, tf.reduce_max(tf.abs(delta), over), changed])


def products(value: Any, past: Any, axis: Any) -> Any:
    """Sums of squares as products with ones; what over- or underflows isn't seen."""
    now, before = (
        tf.reshape(tf.transpose(tf.reshape(one, axis.view), _last(axis)), (-1, axis.channels))
        for one in (value, past)
    )
    delta = now - before
    ones = tf.ones((1, now.shape[0]))
    sums = [tf.sqrt(tf.matmul(ones, one * one))[0] for one in (now, before, delta)]
    changed = tf.matmul(ones, tf.cast(tf.not_equal(now, before), tf.float32))[0]
    return tf.stack([*sums, tf.reduce_max(tf.abs(delta), 0), changed])


def in_numpy(records: Sequence[TFWeight]) -> Action:
    """What one writes by hand, at the least: values are read without a copy."""
    pairs = [(record.variable, record.axis) for record in records]
    past = [np.array(tf.convert_to_tensor(one)) for one, _ in pairs]

    def run() -> None:
        for (variable, axis), before in zip(pairs, past, strict=True):
            now = np.asarray(memoryview(tf.convert_to_tensor(variable)))
            new, old = (one.reshape(axis.view) for one in (now, before))
            over = tuple(at for at in range(new.ndim) if at not in axis.axes)
            delta = new - old
            for one in (new, old, delta):
                np.sqrt(np.sum(one * one, axis=over))
            np.max(np.abs(delta), axis=over)
            np.mean(new != old, axis=over)
            np.copyto(before, now)

    return run


def candidates(records: Sequence[TFWeight]) -> dict[str, Action]:
    """All ways, by what they are called."""
    return {
        FAST: ours(records, FAST),
        "numba, one thread": one_thread(records),
        PLAIN: ours(records, PLAIN),
        "TensorFlow, a variable at a time": one_by_one(records),
        "TensorFlow, XLA": by_function(records, squares, jit_compile=True),
        "TensorFlow, sums as matrix products": by_function(records, products),
        "NumPy": in_numpy(records),
    }


def measure(rows: Rows, name: str, make: Callable[[Any], Any], pairs: int) -> None:
    """Prints how the ways compare for one network."""
    model = make(keras).model
    ways = candidates(network(model, None, None).weights)
    streams = limits(model.count_params())
    times = interleaved(*streams.values(), *ways.values(), pairs=pairs, calls=1)
    limit = times[: len(streams)].min(axis=0)
    print(f"\n{name}: the limit is {1e3 * np.median(limit):.2f} ms")
    for way, spent in zip(ways, times[len(streams) :], strict=True):
        bar = BAR if way == FAST else None
        rows.line(TABLE, way, spent / limit, column=name, bar=bar)


def main(argv: Sequence[str]) -> int:
    """Prints the figures.

    Returns:
        The exit code: 1 if the bar is missed.
    """
    chosen = with_pairs("candidates", __doc__).parse_args(argv)
    rows = Rows("candidates")
    for name, make in ({"tiny": tiny} if chosen.smoke else ALL_TASKS).items():
        measure(rows, name, make, pairs_of(chosen))
    return rows.finish()


def _last(axis: Any) -> list[int]:
    rest = [at for at in range(len(axis.view)) if at not in axis.axes]
    return [*rest, *axis.axes]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
