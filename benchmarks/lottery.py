"""Lottery tickets on the digits: test accuracy of winning and of random tickets, over five seeds.

The table of docs/tutorials/lottery_tickets.md, which says what is trained. Nothing is timed.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from benchmarks._options import parser
from benchmarks._rows import Rows
from demo.digits import digits
from demo.lottery import ROUNDS, SEEDS, study

TITLE = "Test accuracy of {} seeds, by round"


def fill(rows: Rows, results: NDArray[np.float64]) -> None:
    """Adds the figures of a study.

    Args:
        rows: they go there.
        results: as from `study`.
    """
    title = TITLE.format(len(results))
    for number, (sparsity, winning, random) in enumerate(np.moveaxis(results, 0, -1)):
        better = float((winning > random).sum() + (winning == random).sum() / 2)
        for column, values in (
            ("sparsity", sparsity),
            ("winning", winning),
            ("random", random),
            ("difference", winning - random),
        ):
            rows.line(title, f"{number}", 100 * values, "%", column=column)
        rows.line(title, f"{number}", better, f"of {len(results)}", column="winning better")


def main(argv: Sequence[str]) -> int:
    """Trains and prints.

    Returns:
        The exit code.
    """
    smoke = parser("lottery", __doc__).parse_args(argv).smoke
    rows = Rows("lottery")
    fill(rows, study(digits(), SEEDS[:1] if smoke else SEEDS, 1 if smoke else ROUNDS))
    return rows.finish()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
