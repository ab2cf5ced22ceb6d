"""How long TensorBoard takes to start, with the tab and without it.

From the start of its process until it has answered which tabs there are, for which every plugin is
asked; on a log that we have written, with default flags. By turns as it is installed here, and with
our plugin left out, which then isn't imported. Memory is that of all of its processes at that time.
"""

from __future__ import annotations

import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from subprocess import DEVNULL, Popen

import numpy as np

from benchmarks._boards import Board
from benchmarks._logs import TINY, write_logs
from benchmarks._options import pairs_of, with_pairs
from benchmarks._rows import Rows
from tb_pastnet.cli.board import free_port

MAIN = Path(__file__).with_name("_board_without.py")
WITH, WITHOUT = "with the tab", "without it"
LEFT_OUT = {WITH: "", WITHOUT: "pastnet"}
PATIENCE, LOOK = 120.0, 0.005
BAR = 1.05
"""Times the start without us."""


def answered(port: int, server: Popen[bytes]) -> bytes:
    """What TensorBoard says of its tabs, as soon as it does.

    Raises:
        SystemExit: it doesn't.
    """
    end = time.monotonic() + PATIENCE
    while server.poll() is None and time.monotonic() < end:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/data/plugins_listing") as answer:
                return bytes(answer.read())
        except (urllib.error.URLError, OSError):
            time.sleep(LOOK)
    raise SystemExit(f"Could not start TensorBoard: expected an answer within {PATIENCE:.0f} s.")


def start(logdir: Path, way: str) -> tuple[float, float]:
    """Starts TensorBoard once and ends it: seconds, and MiB."""
    port = free_port(6306)
    flags = [f"--logdir={logdir}", f"--port={port}", "--host=127.0.0.1"]
    begin = time.perf_counter()
    with Popen(
        [sys.executable, MAIN, LEFT_OUT[way], *flags], stdout=DEVNULL, stderr=DEVNULL
    ) as server:
        try:
            listing = answered(port, server)
            spent = time.perf_counter() - begin
            if (b'"pastnet"' in listing) != (way == WITH):
                raise SystemExit(f"Could not start TensorBoard {way}: got the tabs {listing!r}.")
            return spent, Board(server, port).resident()
        finally:
            server.terminate()


def main(argv: Sequence[str]) -> int:
    """Prints the figures.

    Returns:
        The exit code: 1 if the bar is missed.
    """
    chosen = with_pairs("start", __doc__).parse_args(argv)
    rows, title = Rows("start"), "Until TensorBoard has told its tabs"
    with tempfile.TemporaryDirectory() as folder:
        logdir = Path(folder)
        write_logs(logdir, TINY)
        ways = (WITH, WITHOUT)
        for way in ways:
            start(logdir, way)
        found = [
            {way: start(logdir, way) for way in ways[:: -1 if at % 2 else 1]}
            for at in range(pairs_of(chosen))
        ]
    seconds, memory = (
        {way: np.array([one[way][at] for one in found]) for way in ways} for at in range(2)
    )
    for way in ways:
        rows.line(title, way, seconds[way], "s", column="time")
        rows.line(title, way, memory[way], "MiB", column="memory")
    name = f"{WITH} / {WITHOUT}"
    rows.line(title, name, seconds[WITH] / seconds[WITHOUT], column="time", bar=BAR)
    rows.line(title, name, memory[WITH] / memory[WITHOUT], column="memory")
    return rows.finish()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
