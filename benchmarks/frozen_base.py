"""What a recorder takes for a large base of which little or nothing trains: memory and time.

Each case is a process of its own, in which a small recorder has first loaded and compiled what a
recorder needs. Times are processor seconds of all threads for 10⁹ bytes of weights.
"""

from __future__ import annotations

import importlib
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import tb_pastnet as pastnet
from benchmarks._options import parser
from benchmarks._rows import Rows
from tb_pastnet.core.numba_switch import SWITCH

TABLE = "A frozen base: what a recorder takes"
RECORDS = 9
WIDTH = 2048
WEIGHTS = 1 << 30
EMBEDDING = 128_256 * 4_096
FREE_ROWS = 10


class Bars(NamedTuple):
    """The most that is allowed.

    Attributes:
        fixed: bytes of memory, besides
        share: of the weights' bytes,
        seconds: and processor seconds for 10⁹ bytes, of the construction and of a record.
    """

    fixed: float
    share: float
    seconds: float | None


FAST, PLAIN = Bars(0.4e9, 0.05, 0.3), Bars(0.4e9, 0.05, 1.0)
CASES = {
    "99.9 % frozen, [fast]": ("frozen", FAST),
    "99.9 % frozen": ("frozen", PLAIN),
    "all trainable, [fast]": ("trainable", Bars(0.0, 1.2, None)),
    "an embedding with ten free rows, [fast]": ("rows", Bars(0.0, 0.05, None)),
}


def frozen(count: int, *, trains: bool = False) -> tuple[Any, Any, dict[str, Any]]:
    """Layers of bfloat16, what trains of them, and the options of a recorder."""
    torch = _torch()
    layers = [
        torch.nn.Linear(WIDTH, WIDTH, bias=False, dtype=torch.bfloat16)
        for _ in range(max(1, count // WIDTH**2))
    ]
    base = torch.nn.Sequential(*layers).requires_grad_(trains)
    head = torch.nn.Linear(8, 8)
    return torch.nn.ModuleList([base, head]), head.weight, {}


def rows_of(count: int) -> tuple[Any, Any, dict[str, Any]]:
    """An embedding of which the last rows train."""
    torch = _torch()
    width = WIDTH * 2 if count > WIDTH**2 else 64
    table = torch.nn.Embedding(count // width, width, dtype=torch.bfloat16)
    mask = torch.zeros(table.weight.shape, dtype=torch.bool)
    mask[-FREE_ROWS:] = True
    return table, table.weight[-FREE_ROWS:].detach(), {"trainable": {"weight": mask}}


KINDS: dict[str, Callable[[int], tuple[Any, Any, dict[str, Any]]]] = {
    "frozen": frozen,
    "trainable": lambda count: frozen(count, trains=True),
    "rows": rows_of,
}


def _torch() -> Any:
    return importlib.import_module("torch")  # by name: not every environment has it


def _resident() -> float:
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def _peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def measure(kind: str, count: int) -> dict[str, float]:
    """What a recorder takes in this process."""
    torch = _torch()
    warm = pastnet.torch.Recorder(tempfile.mkdtemp(), torch.nn.Linear(2, 2), audit="fingerprints")
    warm.record(1)
    warm.close()
    model, trained, options = KINDS[kind](count)
    size = sum(each.numel() * each.element_size() for each in model.parameters())
    before, peak, began = _resident(), _peak(), time.process_time()
    recorder = pastnet.torch.Recorder(tempfile.mkdtemp(), model, every=1, **options)
    constructed, taken = time.process_time() - began, []
    for step in range(1, RECORDS + 1):
        with torch.no_grad():
            trained += 0.01
        began = time.process_time()
        recorder.record(step)
        taken.append(time.process_time() - began)
    most = max(_peak() - peak, _resident() - before)
    found = {
        "own": recorder.overhead.memory / size,
        "memory": (_resident() - before) / size,
        "peak": most / size,
        "size": size,
        "construction": 1e9 * constructed / size,
        "first": 1e9 * taken[0] / size,
        "record": 1e9 * sorted(taken[1:])[len(taken) // 2 - 1] / size,
    }
    recorder.close()
    return found


def tell(rows: Rows, name: str, bars: Bars, found: dict[str, float]) -> None:
    """Prints the rows of a case."""
    most = bars.fixed / found["size"] + bars.share
    rows.line(TABLE, "its memory, × the weights'", found["own"], column=name)
    rows.line(TABLE, "memory added to the process, ×", found["memory"], column=name, bar=most)
    rows.line(TABLE, "at the peak, ×", found["peak"], column=name)
    rows.line(TABLE, "construction", found["construction"], "s", column=name, bar=bars.seconds)
    rows.line(TABLE, "the first record", found["first"], "s", column=name)
    rows.line(TABLE, "a record", found["record"], "s", column=name, bar=bars.seconds)


def main(argv: Sequence[str]) -> int:
    """Prints the table.

    Returns:
        The exit code: 1 if a bar is missed.
    """
    if argv[:1] == ["--case"]:
        print(json.dumps(measure(argv[1], int(argv[2]))))
        return 0
    chosen = parser("frozen_base", __doc__).parse_args(argv)
    rows = Rows("frozen_base")
    for name, (kind, bars) in CASES.items():
        count = EMBEDDING if kind == "rows" else WEIGHTS
        environment = {**os.environ, SWITCH: str(int("[fast]" in name))}
        arguments = kind, str(count // 1024 if chosen.smoke else count)
        command = [sys.executable, "-m", "benchmarks.frozen_base", "--case", *arguments]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        # Small weights are copied, and promise nothing.
        own = Bars(1e9, 1.0, None) if chosen.smoke else bars
        tell(rows, name, own, json.loads(done.stdout.splitlines()[-1]))
    return rows.finish()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
