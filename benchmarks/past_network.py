"""What a past network costs in a training step, and in memory.

The step evaluates the network one step ago beside the current one, on a batch of 64, adds their
distance to the loss, syncs, and updates with Adam. It is timed against the same step written by
hand: a `keras.models.clone_model` copy that is called, and synced by `assign`. Each ratio is of
interleaved pairs in one process, median and quartiles.

Memory is what stays resident after some steps, when all that is free was given back, and the most
that was in the last of them, against the same steps without a past; each in a process of its own.
"""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any, NamedTuple

import keras
import numpy as np
import tensorflow as tf

import tb_pastnet as pastnet
from benchmarks._models import BATCH, TASKS, Task, tiny
from benchmarks._options import pairs_of, with_pairs
from benchmarks._pairs import Action, Seconds, interleaved, seconds
from benchmarks._rows import Rows

BAR = 1.15
TAU = 0.005
WIDE, DEEP = 4096, 4  # of the network whose memory is measured: 268 MB
STEPS = 5


class Past(NamedTuple):
    """Some way to keep and to call the past.

    Attributes:
        call: gives the past outputs.
        step: around what changes the current network.
    """

    call: Callable[[Any], Any]
    step: Callable[[], AbstractContextManager[None]]


def transformer() -> Task:
    """Two small blocks of attention over 32 tokens, 0.66 M weights."""
    tokens = keras.Input((32,), dtype="int32")
    x = keras.layers.Embedding(1000, 128)(tokens)
    for _ in range(2):
        y = keras.layers.LayerNormalization()(x)
        x = x + keras.layers.MultiHeadAttention(4, 64)(y, y)
        y = keras.layers.LayerNormalization()(x)
        x = x + keras.layers.Dense(128)(keras.layers.Dense(512, activation="gelu")(y))
    logits = keras.layers.Dense(10)(keras.layers.GlobalAveragePooling1D()(x))
    rng = np.random.default_rng(0)
    inputs = rng.integers(0, 1000, (BATCH, 32)).astype(np.int32)
    return Task(keras.Model(tokens, logits), inputs, rng.integers(0, 10, BATCH))


def by_hand(model: Any, tau: float) -> Past:
    """A copy, synced by assign."""
    copy = keras.models.clone_model(model)
    copy.set_weights(model.get_weights())
    copy.trainable = False

    def sync() -> AbstractContextManager[None]:
        for past, current in zip(copy.variables, model.variables, strict=True):
            past.assign(current if tau == 1 else tau * current + (1 - tau) * past)
        return nullcontext()

    return Past(lambda x: tf.stop_gradient(copy(x, training=False)), sync)


def network(model: Any, tau: float) -> Past:
    """Ours."""
    past = pastnet.PastNetwork(model)

    def sync() -> AbstractContextManager[None]:
        past.sync(tau)
        return nullcontext()

    return Past(past, sync)


def deltas(model: Any, tau: float) -> Past:
    """Ours, at half the memory; tau is 1."""
    del tau

    past = pastnet.PastNetwork(model, past=pastnet.PastDeltas(model.variables))
    return Past(past, past.step)


def without(_model: Any, _tau: float) -> Past:
    """No past: its place in the loss is constant."""
    return Past(lambda _x: 0.0, nullcontext)


def step(task: Task, make: Callable[..., Past], jit: bool | None, tau: float = 1) -> Action:
    """A training step of an own loop, compiled."""
    model, optimizer = task.model, keras.optimizers.Adam(1e-4)
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    x, y = tf.constant(task.x), tf.constant(task.y)
    optimizer.build(model.trainable_variables)
    past = make(model, tau)

    def train() -> Any:
        before = past.call(x)
        with past.step():
            with tf.GradientTape() as tape:
                outputs = model(x, training=True)
                value = loss(y, outputs) + tf.reduce_mean((outputs - before) ** 2)
            variables = model.trainable_variables
            optimizer.apply(tape.gradient(value, variables), variables)
        return value

    compiled: Callable[[], Any] = tf.function(train, jit_compile=jit)
    # Until its value is there, the step is not over.
    return lambda: compiled().numpy()


def cost_of_steps(
    rows: Rows, name: str, make: Callable[[], Task], jit: bool | None, pairs: int
) -> None:
    """Prints what the past costs a network's steps."""
    ways = (without, 1.0), (by_hand, 1.0), (network, 1.0), (by_hand, TAU), (network, TAU)
    steps = [step(make(), way, jit, tau) for way, tau in ways]
    # Under XLA a network can't be called with deltas.
    steps += [] if jit else [step(make(), deltas, jit)]
    times = interleaved(*steps, pairs=pairs)
    compiled = "XLA" if jit else "graph"
    print(f"{name}, {compiled}: {make().model.count_params():,} weights")

    def line(text: str, values: Seconds, unit: str = "", bar: float | None = None) -> None:
        title = f"A step with a past network, {compiled}"
        rows.line(title, text, values, unit, column=name, bar=bar)

    line("a step by hand", 1e3 * times[1], "ms")
    line("PastNetwork / by hand", times[2] / times[1], bar=BAR)
    line(f"tau={TAU}: PastNetwork / by hand", times[4] / times[3], bar=BAR)
    if not jit:
        line("PastNetwork of PastDeltas / by hand", times[5] / times[1])
    line("no past at all / by hand", times[0] / times[1])


def cost_of_making(rows: Rows, name: str, make: Callable[[], Task]) -> None:
    """Prints how long copies take to be made, once."""
    model = make().model
    print(f"{name}: made once")
    for text, action in (
        ("keras.models.clone_model", lambda: keras.models.clone_model(model)),
        ("pastnet.clone_network", lambda: pastnet.clone_network(model)),
        ("pastnet.PastNetwork", lambda: pastnet.PastNetwork(model)),
    ):
        times = [1e3 * seconds(action) for _ in range(3)]
        rows.line("Made once", text, times, "ms", column=name)


def resident(make: Callable[..., Past] | None) -> tuple[float, float]:
    """Memory of some steps of a large network, in MB.

    Args:
        make: the past; None: nothing but the network.

    Returns:
        What is resident after them, and the most that was during the last one.
    """
    layers = [keras.layers.Dense(WIDE, use_bias=False) for _ in range(DEEP)]
    model = keras.Sequential([keras.Input((WIDE,)), *layers])
    past = (make or without)(model, 1)
    x = tf.ones((1, WIDE))

    def train() -> None:
        before = past.call(x)
        with past.step():
            update = 1e-6 * tf.reduce_mean(model(x) - before)
            for variable in model.trainable_variables:
                variable.assign_add(tf.fill(variable.shape, update))

    compiled: Action = tf.function(train)
    free = ctypes.CDLL(None).malloc_trim
    for _ in range(STEPS):
        free(0)
        # From here on the kernel counts the peak anew.
        Path("/proc/self/clear_refs").write_text("5")
        compiled()
    peak = _of_process("VmHWM")
    free(0)
    return _of_process("VmRSS"), peak


def memory(rows: Rows) -> None:
    """Prints the memory of each way to keep the past."""
    title = f"Memory of a past beside {4 * DEEP * WIDE**2 / 1e6:.0f} MB of weights"
    print(title)
    model = keras.Sequential([keras.Input((WIDE,)), keras.layers.Dense(WIDE, use_bias=False)])
    whole = pastnet.PastVariables(model.variables).nbytes * DEEP / 1e6
    half = pastnet.PastDeltas(model.variables).nbytes * DEEP / 1e6
    if sys.platform != "linux":
        print(f"  {rows.fail(title, 'any', 'what is resident is read from Linux').cell}")
        return
    rest, peak = _apart(without)
    for text, make, said in (
        ("copy by hand", by_hand, None),
        ("PastNetwork", network, whole),
        ("PastNetwork of PastDeltas", deltas, half),
    ):
        found = _apart(make)
        if said is not None:
            rows.line(title, text, said, "MB", column="nbytes")
        rows.line(title, text, found[0] - rest, "MB", column="at rest")
        rows.line(title, text, found[1] - peak, "MB", column="most in a step")


def _apart(make: Callable[..., Past]) -> tuple[float, float]:
    # oneDNN gives no memory back, nor does malloc of what it has split; here we see what is held.
    os.environ |= {"TF_ENABLE_ONEDNN_OPTS": "0", "MALLOC_MMAP_THRESHOLD_": "1000000"}
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(resident, (make,))


def _of_process(what: str) -> float:
    text = Path("/proc/self/status").read_text()
    return int(text.split(f"{what}:")[1].split()[0]) / 1e3 * 1.024


def main(argv: Sequence[str]) -> int:
    """Prints the tables.

    Returns:
        The exit code: 1 if a bar is missed.
    """
    chosen = with_pairs("past_network", __doc__).parse_args(argv)
    # Each way is a function of its own; TensorFlow takes that for one that is traced too often.
    tf.get_logger().setLevel("ERROR")
    print(f"ratios of {pairs_of(chosen)} interleaved pairs, batch {BATCH}: median (quartiles)\n")
    made = {"tiny": tiny} if chosen.smoke else TASKS
    tasks: dict[str, Callable[[], Task]] = {
        **{name: (lambda make=make: make(keras)) for name, make in made.items()},  # type: ignore[misc]
        **({} if chosen.smoke else {"transformer": transformer}),
    }
    rows = Rows("past_network")
    for jit in (None,) if chosen.smoke else (None, True):
        for name, make in tasks.items():
            cost_of_steps(rows, name, make, jit, pairs_of(chosen))
    for name, make in tasks.items():
        cost_of_making(rows, name, make)
    if not chosen.smoke:
        memory(rows)
    return rows.finish()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
