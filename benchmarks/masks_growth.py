"""How the cost of masks grows with the number of weights and of variables.

Timed is `optimizer.apply` of Adam alone, compiled, with constant gradients: stock, and with masks
that prune a quarter and freeze a quarter of each variable; and a magnitude update of all masks. The
exponent is the slope of log time over log size, of all sizes and of the three largest.
"""

from __future__ import annotations

import sys

import keras
import numpy as np
import tensorflow as tf

import tb_pastnet as pastnet
from benchmarks._pairs import Action, exponent, interleaved
from benchmarks.masks import half_held, updating

WEIGHTS = [10**power for power in range(3, 8)]
VARIABLES = [1, 10, 100, 1000]
ROWS = 100
STEEP = 1.15  # an exponent above it isn't linear any more, noise allowed for


def variables(number: int, weights: int) -> dict[str, tf.Variable]:
    """Kernels with that many weights each."""
    rng = np.random.default_rng(0)
    rows = min(ROWS, weights)
    return {
        f"layer{at}/kernel": tf.Variable(rng.normal(size=(rows, weights // rows)).astype("f"))
        for at in range(number)
    }


def update(kernels: dict[str, tf.Variable], optimizer: keras.optimizers.Optimizer) -> Action:
    """One update with constant gradients, compiled."""
    every = list(kernels.values())
    optimizer.build(every)
    gradients = [tf.ones(kernel.shape) * 1e-3 for kernel in every]
    compiled: Action = tf.function(lambda: optimizer.apply(gradients, every))
    return compiled


def measure(number: int, weights: int) -> tuple[float, float, float]:
    """Milliseconds of a stock update, of one with masks, and of a magnitude update of the masks."""
    stock = update(variables(number, weights), keras.optimizers.Adam())
    kernels, optimizer = variables(number, weights), keras.optimizers.Adam()
    half_held(kernels, optimizer)
    held = update(kernels, optimizer)
    pruned = variables(number, weights)
    magnitude = updating(pastnet.Masks(pruned, keras.optimizers.Adam()))
    calls = max(1, 10**5 // (number * weights))
    times = np.median(interleaved(stock, held, pairs=9, calls=calls), axis=1)
    own = np.median(interleaved(magnitude, pairs=5, calls=1))
    return float(times[0] * 1e3), float(times[1] * 1e3), float(own * 1e3)


def table(title: str, sizes: list[int], rows: list[tuple[float, float, float]]) -> bool:
    """Prints a curve and its exponents; whether one is steep at the large end."""
    print(f"{title:>12} {'stock':>10} {'masks':>10} {'magnitude update':>18}   ms")
    for size, row in zip(sizes, rows, strict=True):
        print(f"{size:12,} {row[0]:10.3f} {row[1]:10.3f} {row[2]:18.3f}")
    columns = [list(column) for column in zip(*rows, strict=True)]
    whole = [exponent(sizes, column) for column in columns]
    large = [exponent(sizes[-3:], column[-3:]) for column in columns]
    print(f"{'exponent':>12} {whole[0]:10.2f} {whole[1]:10.2f} {whole[2]:18.2f}")
    print(f"{'at the end':>12} {large[0]:10.2f} {large[1]:10.2f} {large[2]:18.2f}\n", flush=True)
    return max(large[1:]) > max(STEEP, large[0] + STEEP - 1)


def main() -> int:
    """Prints the curves.

    Returns:
        The exit code: 1 if one is steeper than linear.
    """
    steep = table("weights", WEIGHTS, [measure(1, weights) for weights in WEIGHTS])
    steep |= table("variables", VARIABLES, [measure(number, 4096) for number in VARIABLES])
    return int(steep)


if __name__ == "__main__":
    sys.exit(main())
