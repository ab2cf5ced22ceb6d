"""What recording costs beside a training step in PyTorch, JAX, and Keras on JAX.

A ResNet-50 on 32 images of 128 × 128, float32, AdamW, on 2 threads or a GPU: all channels of all
weights at each step, by numba's pass over views of the framework's memory, and without numba. And
what the callback costs a small CNN on JAX where nothing is due. Each framework trains in a process
of its own.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from benchmarks._options import pairs_of, with_pairs
from benchmarks._rows import Rows
from tools.steps import ROOT

FAST, PLAIN, IDLE, EPOCH = "with numba", "without", "hooks, nothing due", "epoch, nothing due"
BARS = {FAST: 4.0, PLAIN: 15.0, IDLE: 1.0, EPOCH: None}
"""% of a step."""

WAYS = {
    "torch": ("PyTorch", [FAST, PLAIN]),
    "jax": ("JAX", [FAST, PLAIN]),
    "keras": ("Keras on JAX, a small CNN", [IDLE, EPOCH]),
}


def main(argv: Sequence[str]) -> int:
    """Prints the figures.

    Returns:
        The exit code: 1 if a bar is missed.
    """
    chosen = with_pairs("frameworks", __doc__).parse_args(argv)
    rows = Rows("frameworks")
    for name, (shown, columns) in WAYS.items():
        for column, (steps, spent) in zip(columns, measured(name, chosen), strict=True):
            share = 100 * np.asarray(spent) / np.asarray(steps)
            rows.line("Recording beside a step", shown, share, "%", column=column, bar=BARS[column])
    return rows.finish()


def measured(name: str, chosen: object) -> list[tuple[list[float], list[float]]]:
    """Seconds of steps, and of what was done after each, for each way to record."""
    program = Path(__file__).with_name(f"_framework_{name}.py")
    size = "smoke" if chosen.smoke else "whole"  # type: ignore[attr-defined]
    command = [sys.executable, str(program), str(pairs_of(chosen)), size]  # type: ignore[arg-type]
    env = {**os.environ, "KERAS_BACKEND": "jax", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"Could not train with {name}:\n{done.stderr}")
    measured: list[tuple[list[float], list[float]]] = json.loads(done.stdout.splitlines()[-1])
    return measured


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
