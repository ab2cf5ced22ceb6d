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

import pytest

from tests.e2e.browser import BROWSER, drive
from tests.e2e.stories import STORY_RECORDS, STORY_RUNS, story
from tests.layers import arrays_of

ROOT = Path(__file__).resolve().parents[2]
DEADLINE = 240.0
"""Seconds after which what a test waits for counts as never coming: how busy a machine is must not decide."""

BROWSED = ("fast", pytest.param("slow", marks=pytest.mark.prove))
"""Loaders behind the browser. That both give the same bytes is shown apart, and at each change."""


@dataclass
class Tab:
    """The tab of a running TensorBoard."""

    base: str

    def fetch(self, route: str, **query: Any) -> bytes:
        text = urllib.parse.urlencode(query, doseq=True)
        with urllib.request.urlopen(f"{self.base}/data/plugin/pastnet/{route}?{text}") as answer:
            return answer.read()  # type: ignore[no-any-return]

    def json(self, route: str, **query: Any) -> Any:
        return json.loads(self.fetch(route, **query))

    def arrays(self, route: str, **query: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        return arrays_of(self.fetch(route, **query))

    def drive(self, check: str, **given: Any) -> dict[str, Any]:
        """Runs one check of checks/*.mjs and gives what it saw."""
        return drive(self.base, check, **given)


def wait(condition: Callable[[], bool], what: str) -> None:
    """Polls until a condition holds; it fails when the deadline passes."""
    end = time.monotonic() + DEADLINE
    while not condition():
        assert time.monotonic() < end, f"still waiting for {what}"
        threading.Event().wait(0.1)


@contextlib.contextmanager
def listening(command: list[str], log: Path, address: str) -> Iterator[str]:
    """A server of this machine, and the address that it prints."""
    with log.open("w") as file:
        process = subprocess.Popen(command, stdout=file, stderr=subprocess.STDOUT)
    try:
        found: list[str] = []

        def started() -> bool:
            assert process.poll() is None, log.read_text()
            found[:] = re.findall(address, log.read_text())
            return bool(found)

        wait(started, f"the address of {command[0]}")
        yield found[0]
    finally:
        process.terminate()
        process.wait(timeout=DEADLINE)


@contextlib.contextmanager
def tensorboard(
    logdir: Path, *flags: str, loader: str = "fast", whole: bool = False, first: str = ""
) -> Iterator[Tab]:
    """TensorBoard with its default flags, on a free port; `first` is run in its process before it starts.

    TensorFlow reads for the slow loader. Beside the fast one TensorBoard takes long to import it, only to say
    so when it isn't installed: it starts as where it isn't, unless it is to be `whole`.
    """
    if loader == "slow":
        flags = ("--load_fast=false", *flags)
    elif not whole:
        first = f"import sys\nsys.modules['tensorflow'] = None\n{first}"
    start = f"{first}\nfrom tensorboard.main import run_main\nrun_main()"
    command = [sys.executable, "-c", start, "--logdir", str(logdir), "--port", "0"]
    log = logdir.parent / f"{logdir.name}.log"
    address = r"at (http://127\.0\.0\.1:\d+)"
    with listening([*command, "--host", "127.0.0.1", *flags], log, address) as base:
        yield Tab(base)


def known(tab: Tab, runs: int, records: int) -> bool:
    """Whether the server has read everything."""
    index = tab.json("index")
    return len(index["runs"]) == runs and sum(run["records"] for run in index["runs"]) == records


@pytest.fixture(scope="session", autouse=True)
def tools() -> Iterator[None]:
    """Node and the page's packages; a machine without them can't run these tests."""
    if shutil.which("node") is None:
        pytest.skip("Node isn't installed")
    if not (ROOT / "frontend" / "node_modules" / "playwright-core").is_dir():
        pytest.skip("run `npm ci` in frontend/ first")
    yield
    BROWSER.close()


@pytest.fixture(scope="session", params=["fast", "slow"])
def told(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tab]:
    """The story, in each loader."""
    logdir = tmp_path_factory.mktemp("told") / "logs"
    story(logdir)
    with tensorboard(logdir, loader=request.param, whole=True) as tab:
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
