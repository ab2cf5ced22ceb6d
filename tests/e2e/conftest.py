"""A real TensorBoard, as users start it, and a real browser on the page inside it."""

from __future__ import annotations

import contextlib
import json
import re
import shutil
import signal
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
from tests.interpreter import Interpreter
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


IMPORTS = """
import sys
sys.modules["tensorflow"] = None
from tensorboard.main import run_main
"""
BEGIN = """
import os, sys
log = os.open({log!r}, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
os.dup2(log, 1)
os.dup2(log, 2)
sys.argv = {command!r}
{first}
from tensorboard.main import run_main
run_main()
"""


@contextlib.contextmanager
def tensorboard(
    logdir: Path, *flags: str, loader: str = "fast", whole: bool = False, first: str = ""
) -> Iterator[Tab]:
    """TensorBoard with its default flags, on a free port; `first` is run in its process before it starts.

    TensorFlow reads for the slow loader. Beside the fast one TensorBoard takes long to import it, only to say
    so when it isn't installed: it starts as where it isn't, unless it is to be `whole`. What all of them import
    is imported once.
    """
    if loader == "slow":
        flags = ("--load_fast=false", *flags)
    log = logdir.parent / f"{logdir.name}.log"
    command = ["tensorboard", "--logdir", str(logdir), "--port", "0", "--host", "127.0.0.1", *flags]
    process = Interpreter(
        BEGIN.format(log=str(log), command=command, first=first),
        "" if whole or loader == "slow" else IMPORTS,
    )
    log.unlink(missing_ok=True)  # of a server that was here before
    process.start()
    try:
        found: list[str] = []

        def started() -> bool:
            said = log.read_text() if log.exists() else ""
            assert process.alive(), said
            found[:] = re.findall(r"at (http://127\.0\.0\.1:\d+)", said)
            return bool(found)

        wait(started, "the address of TensorBoard")
        yield Tab(found[0])
    finally:
        process.kill(signal.SIGTERM)


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


@pytest.fixture(
    scope="session", params=["as tab", pytest.param("fast", marks=pytest.mark.prove), "slow"]
)
def told(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tab]:
    """The story; also in each loader where TensorFlow is installed."""
    if request.param == "as tab":
        yield request.getfixturevalue("tab")
        return
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
