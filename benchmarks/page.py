"""How fast the tab is: a real TensorBoard with its default flags, a real Chromium, generated logs.

Twenty runs of 300 layers, 50,000 channels and 1,000 steps are written (or given by --logdir). The
server is warm: it has answered once what the page asks. Times go from the click's own timestamp to
the second frame after the last picture was there; each round is in a new profile of the browser.
Work of a frame is what the main thread did since the frame before, from Chromium's trace, in time
of that thread; of the frames from an input, a whole drag for a zoom, until 250 ms after it the one
with the most of it counts. Nothing else is asked of the page meanwhile.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
import urllib.parse
import urllib.request
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks._boards import board
from benchmarks._logs import TINY, Size, write_logs
from benchmarks._options import parser
from benchmarks._rows import Rows
from tools.browser import installed

DRIVER = Path(__file__).with_name("_page") / "drive.mjs"
PATIENCE = 600.0
BARS = {"tab": 500, "layer": 300, "frame": 8, "overview": 2.0}
"""Milliseconds; of an overview megabytes."""


def index_of(address: str) -> Any:
    """What the route `index` answers."""
    with urllib.request.urlopen(f"{address}/data/plugin/pastnet/index") as answer:  # noqa: S310  our own
        return json.load(answer)


def read_to_the_end(address: str) -> Any:
    """Waits until the server knows all records, and gives its index."""
    end, before = time.monotonic() + PATIENCE, -1
    while True:
        index = index_of(address)
        records = sum(run["records"] for run in index["runs"])
        if records == before and records > 0:
            return index
        if time.monotonic() > end:
            raise SystemExit(f"Could not read the log: got {records} records in {PATIENCE:.0f} s.")
        before = records
        time.sleep(5)


def drive(address: str, **options: Any) -> Any:
    """What the driver has measured."""
    env = {**os.environ, "CHROMIUM": installed() or ""}
    command = ["node", str(DRIVER), address, json.dumps(options)]
    done = subprocess.run(command, env=env, stdout=subprocess.PIPE, check=False)
    if done.returncode:
        raise SystemExit(f"Could not drive the page: expected status 0, got {done.returncode}.")
    return json.loads(done.stdout)


def times(rows: Rows, found: Any) -> None:
    """Prints how long it took until the pictures were there."""
    title = "Until the pictures are there"
    print(title)
    for key, start, end, of, bar in (
        ("tab", "click on the tab, first visit", "findings listed", "strips", BARS["tab"]),
        ("tab", "click on the tab, first visit", "all requests answered", "all", None),
        ("again", "click on the tab, later visit", "findings listed", "strips", BARS["tab"]),
        ("again", "click on the tab, later visit", "all requests answered", "all", None),
        ("load", "load of TensorBoard at the Network view", "strips painted", "strips", None),
        ("layer", "click on a layer's name", "its heatmap painted", "heat", BARS["layer"]),
        ("layer", "click on a layer's name", "those of all runs painted", "all", None),
    ):
        values = [one[of] for one in found[key]]
        if values:
            name = f"{start}: {end}"
            rows.line(title, name, values, "ms", column="median", bar=bar)
            rows.line(title, name, min(values), "ms", column="best")


def requests(rows: Rows, found: Any) -> None:
    """Prints what was fetched for a visit and for a layer."""
    title = "Requests for a picture"
    print(f"\n{title}")
    for key, of in (("tab", "first visit"), ("again", "later visit"), ("layer", "a layer")):
        for route, one in found[key][-1]["routes"].items() if found[key] else ():
            name = f"{of}: {route}"
            bar = BARS["overview"] if "overview" in route else None
            rows.line(title, name, one["requests"], column="requests")
            rows.line(title, name, one["largest"] / 1e6, "MB", column="largest", bar=bar)
            rows.line(title, name, one["wire"] / 1e6, "MB", column="on the wire")
            rows.line(title, name, one["raw"] / 1e6, "MB", column="unpacked")
            rows.line(title, name, one["milliseconds"], "ms", column="longest")
    memory = found["tab"][-1]["memory"] / 2**20
    rows.line(title, "all scripts", memory, "MiB", column="memory")


def work(rows: Rows, found: Any) -> None:
    """Prints the work of the most expensive frame after each input."""
    title = "Work of a frame after an input"
    print(f"\n{title}")
    for name, values in found["work"].items():
        rows.line(title, name, values, "ms", column="median", bar=BARS["frame"])
        for column, share in (("best", 0.0), ("nine of ten", 0.9)):
            rows.line(title, name, float(np.quantile(values, share)), "ms", column=column)


def main(argv: Sequence[str]) -> int:
    """Prints the tables."""
    top = parser("page", __doc__)
    top.add_argument("--logdir", type=Path, help="logs of benchmarks._logs that are there")
    top.add_argument("--rounds", type=int, default=9)
    top.add_argument("--address", help="of a TensorBoard that runs")
    for name, default in zip(Size._fields, Size(), strict=True):
        top.add_argument(f"--{name}", type=int, default=default)
    arguments = top.parse_args(argv)
    size = Size(*(getattr(arguments, name) for name in Size._fields))
    size, rounds = (TINY, 1) if arguments.smoke else (size, arguments.rounds)
    rows = Rows("page")
    with ExitStack() as stack:
        logdir, address = arguments.logdir, arguments.address
        if not logdir and not address:
            logdir = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            write_logs(logdir, size)
        address = address or stack.enter_context(board(logdir)).address
        index = read_to_the_end(address)
        layers = index["networks"][0]["layers"]
        layer = max(layers, key=lambda one: one["channels"])
        print(f"{len(index['runs'])} runs, {len(layers)} layers, the widest {layer['channels']}.")
        drive(address, rounds=1, layer=layer["id"], inputs=0)
        found = drive(address, rounds=rounds, layer=layer["id"])
        times(rows, found)
        requests(rows, found)
        work(rows, found)
    return rows.finish()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
