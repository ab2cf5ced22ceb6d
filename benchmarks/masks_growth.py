"""How the cost of masks grows with the number of weights and of variables.

Timed is `optimizer.apply` of Adam alone, compiled, with constant gradients: stock, and with masks
that prune a quarter and freeze a quarter of each variable; and a magnitude update of all masks. The
exponent is the slope of log time over log size, of all sizes and of the three largest. Where the
stock update itself is steep at the end, masks may be so, too.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

import keras
import numpy as np
import tensorflow as tf

import tb_pastnet as pastnet
from benchmarks._growth import LAST, STEEP, curve
from benchmarks._options import parser
from benchmarks._pairs import Action, exponent, interleaved
from benchmarks._rows import Rows
from benchmarks.masks import half_held, updating

WEIGHTS = [10**power for power in range(3, 8)]
VARIABLES = [1, 10, 100, 1000]
NAMES = "stock", "masks", "magnitude update"
ROWS = 100


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


def grown(rows: Rows, what: str, sizes: list[int], times: list[tuple[float, float, float]]) -> None:
    """Prints a curve."""
    series = dict(zip(NAMES, map(list, zip(*times, strict=True)), strict=True))
    stock = exponent(sizes[-LAST:], series["stock"][-LAST:])
    allowed = max(STEEP, stock + STEEP - 1)
    curve(rows, what, sizes, series, bars={"stock": None, **dict.fromkeys(NAMES[1:], allowed)})


def main(argv: Sequence[str]) -> int:
    """Prints the curves.

    Returns:
        The exit code: 1 if one is steeper than linear.
    """
    smoke = parser("masks_growth", __doc__).parse_args(argv).smoke
    rows, weights = Rows("masks_growth"), [10_000, 100_000] if smoke else WEIGHTS
    grown(rows, "weights", weights, [measure(1, size) for size in weights])
    if not smoke:
        grown(rows, "variables", VARIABLES, [measure(number, 4096) for number in VARIABLES])
    return rows.finish()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
