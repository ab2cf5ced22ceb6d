"""A real TensorBoard, as users start it, and a real browser on the page inside it."""

from __future__ import annotations

import contextlib
import json
import re
import shutil
import subprocess
import sys
import threading
import time
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tb_pastnet.core.quantize import quantize
from tb_pastnet.core.statistics import CHANGED
from tb_pastnet.serve.http.container import unpack
from tests.event_files import LineageWriter, codes, frame, freeze, prune, scalar_event, write_run

ROOT = Path(__file__).resolve().parents[2]
DRIVER = Path(__file__).with_name("drive.mjs")
DEADLINE = 90.0
LAYERS = {"conv1": 8, "block/conv2": 16, "block/conv3": 16, "logits": 10}


@dataclass
class Tab:
    """The tab of a running TensorBoard."""

    base: str

    def fetch(self, route: str, **query: Any) -> bytes:
        text = urllib.parse.urlencode(query)
        with urllib.request.urlopen(f"{self.base}/data/plugin/pastnet/{route}?{text}") as answer:
            return answer.read()  # type: ignore[no-any-return]

    def json(self, route: str, **query: Any) -> Any:
        return json.loads(self.fetch(route, **query))

    def arrays(self, route: str, **query: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        return unpack(self.fetch(route, **query))

    def drive(self, check: str, **arguments: Any) -> dict[str, Any]:
        """Runs one check of drive.mjs and gives what it saw."""
        done = subprocess.run(
            ["node", str(DRIVER), self.base, check, json.dumps(arguments)],
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout.strip().rsplit("\n", 1)[-1])  # type: ignore[no-any-return]


def wait(condition: Callable[[], bool], what: str) -> None:
    """Polls until a condition holds; it fails when the deadline passes."""
    end = time.monotonic() + DEADLINE
    while not condition():
        assert time.monotonic() < end, f"still waiting for {what}"
        threading.Event().wait(0.1)


@contextlib.contextmanager
def tensorboard(logdir: Path, *flags: str) -> Iterator[Tab]:
    """TensorBoard with its default flags, on a free port."""
    command = [sys.executable, "-m", "tensorboard.main", "--logdir", str(logdir), "--port", "0"]
    log = logdir.parent / f"{logdir.name}.log"
    with log.open("w") as file:
        process = subprocess.Popen(
            [*command, "--host", "127.0.0.1", *flags], stdout=file, stderr=subprocess.STDOUT
        )
    try:
        found: list[str] = []

        def started() -> bool:
            assert process.poll() is None, log.read_text()
            found[:] = re.findall(r"at (http://127\.0\.0\.1:\d+)", log.read_text())
            return bool(found)

        wait(started, "TensorBoard's address")
        yield Tab(found[0])
    finally:
        process.terminate()
        process.wait(timeout=30)


def known(tab: Tab, runs: int, records: int) -> bool:
    """Whether the server has read everything."""
    index = tab.json("index")
    return len(index["runs"]) == runs and sum(run["records"] for run in index["runs"]) == records


def leak(array: np.ndarray, records: slice, channels: slice) -> np.ndarray:
    """Moves channels that are held."""
    array[CHANGED, records, channels] = quantize(0.5)
    array[[2, 3], records, channels] = quantize(1e-3)
    return array


def story(logdir: Path) -> None:
    """Four runs: nothing held, frozen step by step, frozen with a leak, pruned from other initial weights."""
    steps = range(1, 41)

    def values(change: Callable[[np.ndarray, int], np.ndarray]) -> dict[str, np.ndarray]:
        return {
            f"{layer}/kernel": change(codes(steps, channels, seed=at), at)
            for at, (layer, channels) in enumerate(LAYERS.items())
        }

    everything = slice(None)
    held = {
        "dense": values(lambda array, at: array),
        "frozen": values(lambda array, at: freeze(array, slice(8 + 8 * at, 40), everything)),
        "leaky": values(
            lambda array, at: leak(
                freeze(array, slice(20, 40), slice(0, 4)),
                slice(25, 40) if at == 1 else slice(0, 0),
                slice(0, 2),
            )
        ),
    }
    for at, (run, arrays) in enumerate(held.items()):
        writer = LineageWriter(logdir, run, lineage=0x1000 + at, layers=LAYERS)
        writer.describe(0)
        writer.records(steps, arrays, learning_rates=[0.1 if step < 20 else 0.01 for step in steps])
        writer.close(40)
    few = range(2, 62, 2)
    writer = LineageWriter(
        logdir, "pruned", lineage=0x2000, layers=LAYERS, origin="other", past="epoch", every=2
    )
    writer.describe(0)
    writer.records(
        few,
        {
            f"{layer}/kernel": prune(codes(few, channels, seed=9), slice(10, 30), slice(1, None, 2))
            for layer, channels in LAYERS.items()
        },
        dropped=3,
        notes={"The disk was full for a while": 2},
    )
    writer.close(60, dropped=3)


STORY_RUNS, STORY_RECORDS = 4, 3 * 40 + 30

HOSTILE_RUNS = [
    "<script>alert(1)<",
    "\"quoted\" & 'single'",
    "עברית مرحبا",
    "a&b=c#d%2e%2e",
    "__proto__",
]
HOSTILE_LAYERS = {
    "<img src=x onerror=alert(1)>": 2,
    "\u202eevil": 3,
    "constructor": 2,
    "a\"b'c`d&amp;": 2,
    "x" * 300: 2,
}


def hostile(logdir: Path) -> None:
    """Runs and layers whose names want to be something else."""
    for at, run in enumerate(HOSTILE_RUNS):
        write_run(logdir, run, range(1, 9), lineage=0x3000 + at, layers=HOSTILE_LAYERS)


def neighbour(logdir: Path) -> None:
    """A run of scalars, without data of ours."""
    (logdir / "scalars").mkdir(parents=True)
    path = logdir / "scalars" / "events.out.tfevents.1700000000.host"
    path.write_bytes(b"".join(frame(scalar_event("loss", step, 1.0)) for step in range(5)))


@pytest.fixture(scope="session", autouse=True)
def tools() -> None:
    """Node and the page's packages; a machine without them can't run these tests."""
    if shutil.which("node") is None:
        pytest.skip("Node isn't installed")
    if not (ROOT / "frontend" / "node_modules" / "playwright-core").is_dir():
        pytest.skip("run `npm ci` in frontend/ first")


@pytest.fixture(scope="session", params=["fast", "slow"])
def told(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tab]:
    """The story, in each loader."""
    logdir = tmp_path_factory.mktemp("told") / "logs"
    story(logdir)
    flags = [] if request.param == "fast" else ["--load_fast=false"]
    with tensorboard(logdir, *flags) as tab:
        wait(lambda: known(tab, STORY_RUNS, STORY_RECORDS), "all records")
        yield tab


@pytest.fixture(scope="session")
def tab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tab]:
    """The story, in the default loader."""
    logdir = tmp_path_factory.mktemp("tab") / "logs"
    story(logdir)
    with tensorboard(logdir) as tab:
        wait(lambda: known(tab, STORY_RUNS, STORY_RECORDS), "all records")
        yield tab
