"""Bytes on disk for each channel and record, everything included.

Trains nothing: a Dense layer of 64, 512 or 4,096 channels is moved by noise, as a step of Adam
would, and recorded by the real recorder at each step. Counted are all files of the run: framing,
checksums, headers, the description and the timeline. Bias and kernel are both recorded.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import keras
import numpy as np
from numpy.typing import NDArray

import tb_pastnet as pastnet
from benchmarks._options import parser
from benchmarks._rows import Rows
from tb_pastnet.core.statistics import STATISTICS

WIDTHS = (64, 512, 4096)
BARS = {64: 5.0, 512: 3.0, 4096: 3.0}  # the most bytes a channel and record that we allow
RECORDS = 200
INPUTS = 32


def moved(kernel: NDArray[np.float32], rng: np.random.Generator) -> NDArray[np.float32]:
    """The kernel after one step: each channel moves by an amount of its own, some by none."""
    channels = kernel.shape[-1]
    rates = 1e-3 * np.exp(rng.normal(size=channels)) * (rng.random(channels) > 0.1)
    step: NDArray[np.float32] = (rng.normal(size=kernel.shape) * rates).astype(np.float32)
    return kernel + step


def size(width: int, records: int) -> tuple[int, int]:
    """Records a layer of this width so often.

    Returns:
        The bytes of all files, and the number of channels and records that were written.
    """
    rng = np.random.default_rng(0)
    layer = keras.layers.Dense(width, name="layer")
    model = keras.Sequential([keras.Input((INPUTS,)), layer])
    with tempfile.TemporaryDirectory() as folder:
        with pastnet.Recorder(folder, model, every=1) as recorder:
            for step in range(1, records + 1):
                layer.kernel.assign(moved(layer.kernel.numpy(), rng))
                layer.bias.assign(moved(layer.bias.numpy()[None], rng)[0])
                recorder.record(step)
        files = [path for path in Path(folder).rglob("*") if path.is_file()]
        return sum(path.stat().st_size for path in files), 2 * width * records


def main(argv: Sequence[str]) -> int:
    """Prints the table.

    Returns:
        The exit code: 1 if a bar is missed.
    """
    smoke = parser("bytes_per_record", __doc__).parse_args(argv).smoke
    records, rows = 2 if smoke else RECORDS, Rows("bytes_per_record")
    title = f"Bytes a channel and record, {len(STATISTICS)} statistics, {records} records"
    print(title)
    for width in WIDTHS:
        total, written = size(width, records)
        rows.line(title, f"{width:,} channels", total / written, bar=BARS[width])
    return rows.finish()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
