"""What the tab waits for: the routes over logs that fit into no cache, in a real TensorBoard.

Logs are generated (see `_logs`) unless a directory is named. With both loaders, one after the
other: TensorBoard is started and left alone until all is loaded; then the index, the overviews of
all runs and a wide layer are asked for, cold (for the first time), warm (again), and with another
threshold, when the records of a run have long been replaced by those of others. Median and worst
over the runs. Memory is that of all of TensorBoard's processes, before the tab asks for anything
and after all.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from benchmarks._boards import LOADERS, Board, Reply, board
from benchmarks._logs import TINY, Size, write_logs
from benchmarks._options import parser
from benchmarks._rows import Rows
from tb_pastnet.reader.store import CEILING

WARM = 11
THRESHOLD = 3e-4
MEMORY = 1.3  # times TensorBoard's own, beside the stated cache
BARS = {
    "index, warm": 100.0,
    "overview, another threshold": 1000.0,
    "layer, cold": 150.0,
}  # milliseconds
WIRE = 2e6  # bytes of an overview

Times = dict[str, Sequence[Reply]]


def complete(index: dict[str, Any], size: Size | None) -> bool:
    """Whether all is loaded, as far as it is known how much that is."""
    runs = index["runs"]
    if size is None:
        return bool(runs)
    return len(runs) == size.runs and all(run["records"] == size.steps for run in runs)


def loaded(here: Board, size: Size | None) -> tuple[dict[str, Any], float]:
    """Waits until TensorBoard has read everything.

    Returns:
        The index, and TensorBoard's memory before it was asked for, in MiB.
    """
    while True:
        here.settle()
        own = here.resident()
        index = json.loads(here.get("/index").body)
        if complete(index, size):
            return index, own


def measure(here: Board, index: dict[str, Any], cols: int) -> Times:
    """Asks for everything."""
    names = [run["name"] for run in index["runs"]]
    networks = [index["networks"][run["network"]] for run in index["runs"]]
    widest = [max(one["layers"], key=lambda layer: layer["channels"])["id"] for one in networks]

    def each(ask: Callable[[int], Reply]) -> list[Reply]:
        return [ask(at) for at in range(len(names))]

    found: Times = {"index, warm": [here.get("/index") for _ in range(WARM)]}
    found["overview, cold"] = first = each(
        lambda at: here.get("/overview", run=names[at], cols=cols)
    )
    found["overview, another threshold"] = each(
        lambda at: here.get("/overview", run=names[at], cols=cols, th=THRESHOLD)
    )
    found["overview, warm"] = each(lambda at: here.get("/overview", run=names[at], cols=cols))
    found["overview, 304"] = each(
        lambda at: here.get("/overview", first[at].tag, run=names[at], cols=cols)
    )
    found["layer, cold"] = each(lambda at: here.get("/layer", run=names[at], layer=widest[at]))
    found["layer, another threshold"] = each(
        lambda at: here.get("/layer", run=names[at], layer=widest[at], th=THRESHOLD)
    )
    found["layer, warm"] = [
        here.get("/layer", run=names[-1], layer=widest[-1], th=THRESHOLD) for _ in range(WARM)
    ]
    return found


def report(rows: Rows, loader: str, found: Times) -> None:
    """Prints what each answer took."""
    print(f"{loader} loader")
    title = f"Answers of TensorBoard's {loader} loader"
    for name, replies in found.items():
        worst, bar = 1e3 * max(one.seconds for one in replies), BARS.get(name)
        most = WIRE if name.startswith("overview") else None
        times = [1e3 * one.seconds for one in replies]
        rows.line(title, name, times, "ms", column="median", bar=bar)
        rows.line(title, name, worst, "ms", column="worst")
        wire = max(one.wire for one in replies)
        rows.line(title, name, wire, "bytes", column="most sent", bar=most)
        unpacked = max(len(one.body) for one in replies)
        rows.line(title, name, unpacked, "bytes", column="unpacked")


def bench(rows: Rows, logdir: Path, loader: str, cols: int, size: Size | None) -> None:
    """Measures one loader."""
    with board(logdir, loader, "--samples_per_plugin=pastnet=0") as here:
        index, own = loaded(here, size)
        found = measure(here, index, cols)
        after = here.resident()
    report(rows, loader, found)
    most = MEMORY * own + CEILING / 2**20
    title = f"Memory, bar {MEMORY} times of TensorBoard's own and a cache of {CEILING >> 20} MiB"
    rows.line(title, f"{loader} loader", own, "MiB", column="TensorBoard's own")
    rows.line(title, f"{loader} loader", after, "MiB", column="after all was asked", bar=most)


def main(argv: Sequence[str]) -> int:
    """Prints the tables.

    Returns:
        The exit code: 1 if a bar is missed.
    """
    top = parser("reading", __doc__)
    for name, default in zip(Size._fields, Size(), strict=True):
        top.add_argument(f"--{name}", type=int, default=default)
    top.add_argument("--cols", type=int, default=128, help="columns of an overview")
    top.add_argument("--loader", choices=sorted(LOADERS), help="one instead of both")
    top.add_argument("--logs", type=Path, help="a log directory instead of generated ones")
    chosen = top.parse_args(argv)
    size = Size(chosen.runs, chosen.layers, chosen.channels, chosen.steps)
    size = TINY if chosen.smoke else size
    rows = Rows("reading")
    with tempfile.TemporaryDirectory() as folder:
        logdir = chosen.logs or Path(folder)
        if chosen.logs is None:
            write_logs(logdir, size)
            print(
                f"{size.runs} runs of {size.layers} layers, {size.channels:,} channels, "
                f"{size.steps:,} steps; overviews of {chosen.cols} columns\n"
            )
        known = size if chosen.logs is None else None
        loaders = [chosen.loader] if chosen.loader else list(LOADERS)
        for loader in loaders:
            bench(rows, logdir, loader, chosen.cols, known)
    return rows.finish()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
