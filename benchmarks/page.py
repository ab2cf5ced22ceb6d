"""How fast the tab is: a real TensorBoard with its default flags, a real Chromium, generated logs.

Twenty runs of 300 layers, 50,000 channels and 1,000 steps are written (or given by --logdir). The
server is warm: it has answered once what the page asks. Times go from the click's own timestamp to
the second frame after the last picture was there; the best of some rounds counts, each in a new
profile of the browser. Work of a frame is what the main thread did since the frame
before, from Chromium's trace, in time of that thread; of the frames after an input the one with the
most of it counts.
"""

from __future__ import annotations

import argparse
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

from benchmarks._logs import Size, write_logs
from demo.serve import free_port, wait
from tools.browser import installed

DRIVER = Path(__file__).with_name("_page") / "drive.mjs"
PATIENCE = 600.0
BARS = {"tab": 500, "layer": 300, "frame": 8, "overview": 2e6}


def tensorboard(stack: ExitStack, logdir: Path) -> str:
    """Starts TensorBoard and gives its address."""
    port = free_port(6900)
    command = [sys.executable, "-m", "tensorboard.main", f"--logdir={logdir}", f"--port={port}"]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    server = stack.enter_context(subprocess.Popen(command, **quiet))  # type: ignore[call-overload]
    stack.callback(server.terminate)
    address = f"http://127.0.0.1:{port}"
    if not wait(address, server):
        raise SystemExit(f"Could not start TensorBoard: expected an answer on port {port}.")
    return address


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


def times(found: Any) -> None:
    """Prints how long it took until the pictures were there."""
    print("\n| from | to | best | median | bar |\n| --- | --- | --- | --- | --- |")
    for key, start, end, of, bar in (
        ("tab", "click on the tab, first visit", "strips painted", "strips", BARS["tab"]),
        ("tab", "the same", "all requests answered", "all", None),
        ("again", "click on the tab, later visit", "strips painted", "strips", BARS["tab"]),
        ("again", "the same", "all requests answered", "all", None),
        ("load", "load of TensorBoard at #pastnet", "strips painted", "strips", None),
        ("layer", "click on a layer's name", "its heatmap painted", "heat", BARS["layer"]),
        ("layer", "the same", "those of all runs painted", "all", None),
    ):
        values = [one[of] for one in found[key]]
        if values:
            best, middle = min(values), np.median(values)
            print(f"| {start} | {end} | {best:.0f} ms | {middle:.0f} ms | {bar or ''} |")


def requests(found: Any) -> None:
    """Prints what was fetched for the first visit and for the layer."""
    print("\n| for | route | requests | largest | on the wire | unpacked | longest |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for key in ("tab", "again", "layer"):
        for route, one in found[key][-1]["routes"].items() if found[key] else ():
            sizes = " | ".join(f"{one[of] / 1e6:.2f} MB" for of in ("largest", "wire", "raw"))
            took = f"{one['milliseconds']:.0f} ms"
            print(f"| {key} | {route} | {one['requests']} | {sizes} | {took} |")
    print(f"\nMemory of scripts: {found['tab'][-1]['memory'] / 2**20:.0f} MiB.")


def work(found: Any) -> None:
    """Prints the work of the most expensive frame after each input."""
    print(f"\n| input | work of a frame, best | median | nine of ten | bar {BARS['frame']} ms |")
    print("| --- | --- | --- | --- | --- |")
    for name, values in found["work"].items():
        least, middle, most = np.quantile(values, (0, 0.5, 0.9))
        verdict = "met" if middle <= BARS["frame"] else "missed"
        print(f"| {name} | {least:.1f} ms | {middle:.1f} ms | {most:.1f} ms | {verdict} |")


def main(argv: Sequence[str]) -> int:
    """Prints the tables."""
    parser = argparse.ArgumentParser(prog="page", description=__doc__.splitlines()[0])
    parser.add_argument("--logdir", type=Path, help="logs of benchmarks._logs that are there")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--address", help="of a TensorBoard that runs")
    for name, default in zip(Size._fields, Size(), strict=True):
        parser.add_argument(f"--{name}", type=int, default=default)
    arguments = parser.parse_args(argv)
    with ExitStack() as stack:
        logdir, address = arguments.logdir, arguments.address
        if not logdir and not address:
            logdir = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            write_logs(logdir, Size(*(getattr(arguments, name) for name in Size._fields)))
        address = address or tensorboard(stack, logdir)
        index = read_to_the_end(address)
        layers = index["networks"][0]["layers"]
        layer = max(layers, key=lambda one: one["channels"])
        print(f"{len(index['runs'])} runs, {len(layers)} layers, the widest {layer['channels']}.")
        drive(address, rounds=1, layer=layer["id"], inputs=0)
        found = drive(address, rounds=arguments.rounds, layer=layer["id"])
        times(found)
        requests(found)
        work(found)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
