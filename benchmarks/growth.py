"""How the costs of recording and of reading grow: with weights, variables, channels, steps, runs.

Steps: a small network is trained for 10,000 steps and recorded at each one; its step time beside
that of a twin, its memory and what waits in the queue are a curve, whose slope is what grew.
Recording: a record of `every=1` after all weights moved, on the training thread; variables are
moved by an addition that isn't timed. Reading: in TensorBoard's application in this process,
without a socket, the first answers of an index, an overview and a layer over generated logs. The
exponent is the slope of log cost over log size, of all sizes and of the three largest; at most
linear is our bar, with some room for noise.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from benchmarks._growth import curve
from benchmarks._growth_reading import ROUTES, asked
from benchmarks._growth_recording import cost_of_record
from benchmarks._growth_steps import long_training
from benchmarks._logs import Size
from benchmarks._options import parser
from benchmarks._pairs import PAIRS
from benchmarks._rows import Rows
from benchmarks._variants import VARIANTS
from tools.steps import Failure

WEIGHTS = [10**power for power in range(3, 9)]
VARIABLES = [1, 10, 100, 1_000]
CHANNELS = [2**power for power in range(4, 21, 4)]
RUNS = [1, 4, 16, 64]
RECORDS = [250, 1_000, 4_000, 16_000]
STEPS = 10_000
OF_A_VARIABLE = 4_096  # weights, where the number of variables grows
OF_CHANNELS = 2**22  # weights, where the number of channels grows
WIDTH = 100  # channels, where the number of weights grows


def recording(rows: Rows, *, smoke: bool) -> None:
    """Prints what a record costs."""
    weights = [1_000, 2_000] if smoke else WEIGHTS
    variables = [1, 2] if smoke else VARIABLES
    channels = [4, 8] if smoke else CHANNELS
    total, pairs = (2**8, 2) if smoke else (OF_CHANNELS, PAIRS)
    for what, sizes, shapes in (
        ("weights of one variable", weights, [(1, n // WIDTH, WIDTH) for n in weights]),
        (f"variables of {OF_A_VARIABLE:,} weights", variables, [(n, 64, 64) for n in variables]),
        (f"channels of {total:,} weights", channels, [(1, total // n, n) for n in channels]),
    ):
        series = {}
        for variant in VARIANTS:
            try:
                variant.choose()
            except Failure as failure:
                rows.fail(f"Growth with {what}", variant.name, failure, column="exponent")
            else:
                costs = [cost_of_record(number, of, width, pairs) for number, of, width in shapes]
                series[f"a record, {variant.name}"] = [1e3 * cost for cost in costs]
        curve(rows, what, sizes, series)


def reading(rows: Rows, *, smoke: bool) -> None:
    """Prints what first answers cost."""
    runs, records = ([1, 2], [20, 40]) if smoke else (RUNS, RECORDS)
    layers, channels = (2, 20) if smoke else (20, 2_000)
    many = [asked(Size(number, layers, channels, 200)) for number in runs]
    long = [asked(Size(1, 5, 500, number)) for number in records]
    for what, sizes, found in (
        (f"runs of {layers} layers, {channels:,} channels, 200 records", runs, many),
        ("records of 5 layers, 500 channels", records, long),
    ):
        curve(
            rows,
            what,
            sizes,
            {name: [one[name] for one in found] for name in ROUTES},
        )


def main(argv: Sequence[str]) -> int:
    """Prints the curves.

    Returns:
        The exit code: 1 if something grows faster than it may.
    """
    smoke = parser("growth", __doc__).parse_args(argv).smoke
    rows = Rows("growth")
    long_training(rows, 40 if smoke else STEPS)
    recording(rows, smoke=smoke)
    reading(rows, smoke=smoke)
    return rows.finish()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
