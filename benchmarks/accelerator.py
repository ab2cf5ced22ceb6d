"""What a record costs where PyTorch and JAX train on a GPU, from which each one copies all weights.

A ResNet-50 as in `frameworks`. Where there is no GPU, it says so and measures nothing.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence

import numpy as np

from benchmarks._options import with_pairs
from benchmarks._rows import Rows
from benchmarks.frameworks import FAST, PLAIN, measured

WAYS = {"torch": "PyTorch", "jax": "JAX"}
TITLE = "A step of a ResNet-50, and a record"


def main(argv: Sequence[str]) -> int:
    """Prints the figures.

    Returns:
        The exit code: 0, as no bar is set.
    """
    chosen = with_pairs("accelerator", __doc__).parse_args(argv)
    if not chosen.smoke and shutil.which("nvidia-smi") is None:
        print("There is no GPU here: nothing is measured.")
        return 0
    rows = Rows("accelerator")
    for name, shown in WAYS.items():
        for column, (steps, spent) in zip((FAST, PLAIN), measured(name, chosen), strict=True):
            if column == FAST:
                rows.line(TITLE, shown, 1e3 * np.asarray(steps), "ms", column="step")
            rows.line(TITLE, shown, 1e3 * np.asarray(spent), "ms", column=f"record, {column}")
    return rows.finish()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
