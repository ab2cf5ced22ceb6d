"""What a record of some variables costs on the training thread."""

from __future__ import annotations

import tempfile

import numpy as np
import tensorflow as tf

import tb_pastnet as pastnet
from benchmarks._pairs import PAIRS, Action, seconds

_ENOUGH = 10**6
"""Weights: with fewer, several records are timed together."""


def cost_of_record(variables: int, rows: int, channels: int, pairs: int = PAIRS) -> float:
    """Seconds of a record of `every=1`, the median of some.

    Args:
        variables: how many kernels.
        rows: of each.
        channels: of each.
        pairs: how often it is timed.
    """
    start = np.random.default_rng(0).normal(size=(rows, channels)).astype(np.float32)
    kernels = {f"layer{at}/kernel": tf.Variable(start) for at in range(variables)}
    amount = tf.constant(1e-3)

    def moving() -> None:
        for kernel in kernels.values():
            kernel.assign_add(tf.fill(kernel.shape, amount))

    move: Action = tf.function(moving)
    calls = int(np.clip(_ENOUGH // (variables * rows * channels), 1, 10))
    times = np.zeros((pairs, calls))
    with (
        tempfile.TemporaryDirectory() as folder,
        pastnet.Recorder(folder, kernels, every=1) as recorder,
    ):
        for step in range(2):  # the first two compile
            move()
            recorder.record(step)
        for at in range(times.size):
            move()
            times.flat[at] = seconds(lambda step=at + 2: recorder.record(step))  # type: ignore[misc]
    return float(np.median(times.mean(axis=1)))
