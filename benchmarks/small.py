"""What recording costs small networks, with steps of 0.3 to 3 ms: processor time of all threads.

Steps of each way take turns with the others, one at a time; that of nothing at all stands twice,
and its difference is what such a difference means on this machine. Beside ours what one would write
by hand. Keras is in `recording`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks._options import pairs_of, with_pairs
from benchmarks._rows import Rows
from benchmarks._small import AGAIN, NOTHING
from tools.steps import ROOT

TABLE = "Microseconds of processor time a step"
SHARES = "The same as a share of the step"
BLOCK = 300
"""Steps of each way in a round."""
BARS = {"every=10": 50.0}
"""µs; the training alone has none."""
FRAMEWORKS = "torch", "jax"


def main(argv: Sequence[str]) -> int:
    """Prints the figures.

    Returns:
        The exit code: 1 if a bar is missed.
    """
    chosen = with_pairs("small", __doc__).parse_args(argv)
    rounds, block = pairs_of(chosen), 20 if chosen.smoke else BLOCK
    rows = Rows("small")
    for framework in FRAMEWORKS:
        for name, ways in measured(framework, rounds, block).items():
            add(rows, name, {way: np.array(found) for way, found in ways.items()})
    return rows.finish()


def add(rows: Rows, name: str, ways: dict[str, Any]) -> None:
    """Adds the rows of one network."""
    steps = ways.pop(NOTHING)
    rows.line(TABLE, name, steps[:, 0], "µs", column="a step alone")
    for way, found in ways.items():
        more = found - steps
        column = "twice the same" if way == AGAIN else way
        rows.line(TABLE, name, more[:, 0], "µs", column=column, bar=BARS.get(way))
        rows.line(SHARES, name, 100 * more[:, 0] / steps[:, 0], "%", column=column)
        if way.startswith("every="):
            shown = f"{column}, training thread"
            rows.line(SHARES, name, 100 * more[:, 1] / steps[:, 1], "%", column=shown)
            rows.line(TABLE, name, found[:, 2], "µs", column=f"{column}, of which the writer")


def measured(framework: str, rounds: int, block: int) -> dict[str, dict[str, list[list[float]]]]:
    """What a process of its own has measured, by network and way."""
    program = Path(__file__).with_name("_small.py")
    command = [sys.executable, str(program), framework, str(rounds), str(block)]
    env = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"Could not train with {framework}:\n{done.stderr}")
    found: dict[str, dict[str, list[list[float]]]] = json.loads(done.stdout.splitlines()[-1])
    return found


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
