"""What the fingerprint of `core.fingerprint` costs, in processor seconds for 10^9 bytes of weights.

Beside it what one would do without: compare with a copy, and a checksum of the whole weight.
"""

from __future__ import annotations

import hashlib
import os
import sys
import time
from collections.abc import Sequence
from functools import partial
from typing import Any
from unittest import mock

import ml_dtypes
import numpy as np

from benchmarks._options import pairs_of, with_pairs
from benchmarks._pairs import Action
from benchmarks._rows import Rows
from tb_pastnet.core.axes import explicit_axis
from tb_pastnet.core.fingerprint import fingerprints
from tb_pastnet.core.numba_switch import SWITCH

TABLE = "Fingerprints, processor seconds for 10⁹ bytes"
FAST, PLAIN = "numba", "NumPy"
BARS = {FAST: 0.15, PLAIN: 0.5}
LAYOUTS = {
    "(out, in)": ((4096, 4096), 0),
    "(in, out)": ((4096, 4096), -1),
    "convolution of torch": ((1024, 512, 3, 3), 0),
    "convolution of Keras": ((3, 3, 512, 1024), -1),
    "short rows": ((300_000, 64), 0),
}
DTYPES = {"bfloat16": ml_dtypes.bfloat16, "float32": np.float32, "float8": ml_dtypes.float8_e4m3fn}
"""The bars are for the first two: a word of one byte takes as long as one of four."""


def ways(array: np.ndarray, axis: Any) -> dict[str, Action]:
    """What is timed, by columns."""
    copy, one = array.copy(), partial(fingerprints, array, axis)
    bits = f"u{array.dtype.itemsize}"
    return {
        FAST: mock.patch.dict(os.environ, {SWITCH: "1"})(one),
        PLAIN: mock.patch.dict(os.environ, {SWITCH: "0"})(one),
        "compare with a copy": lambda: np.array_equal(array.view(bits), copy.view(bits)),
        "SHA-256": lambda: hashlib.sha256(array.reshape(-1).view(np.uint8).data).digest(),
    }


def measure(rows: Rows, dtype: str, layout: str, pairs: int, smoke: bool) -> None:
    """Prints a row: medians of rounds in which all ways take turns."""
    shape, axis = LAYOUTS[layout]
    shape = (*(max(1, size // 16) for size in shape),) if smoke else shape
    array = np.random.default_rng(0).normal(size=shape).astype(DTYPES[dtype])
    timed = ways(array, explicit_axis(axis, shape, "weight"))
    for action in timed.values():
        action()
    spent: dict[str, list[float]] = {way: [] for way in timed}
    for _ in range(pairs):
        for way, action in timed.items():
            start = time.process_time()
            action()
            spent[way].append((time.process_time() - start) * 1e9 / array.nbytes)
    for way, seconds in spent.items():
        bar = BARS.get(way) if dtype != "float8" else None
        rows.line(TABLE, f"{dtype}, {layout}", seconds, "s", column=way, bar=bar)


def main(argv: Sequence[str]) -> int:
    """Prints the figures.

    Returns:
        The exit code: 1 if a bar is missed.
    """
    chosen = with_pairs("fingerprint", __doc__).parse_args(argv)
    rows = Rows("fingerprint")
    for dtype in DTYPES:
        for layout in LAYOUTS:
            measure(rows, dtype, layout, pairs_of(chosen), chosen.smoke)
    return rows.finish()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
