"""Keeps what tests show of the promises, where PASTNET_RESULTS names a file for it."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.promises import NAMES

ROOT = Path(__file__).parents[1]


@pytest.fixture
def figure(record_property: Callable[[str, object], None]) -> Callable[..., None]:
    """Records a measured figure: `figure("200 kills: 0 of 3,141 lost")`.

    With `met=False` the row is shown as short of its bar: for what mustn't fail a test, such as time.
    Counts for the places of a text, as in `figure("{:,} kills", 200)`, are added up over all tests
    that record the same text: the row has one line of them.
    """

    def record(text: str, *counts: int, met: bool = True) -> None:
        if counts:
            record_property("sum", (text, *counts))
        else:
            record_property("figure" if met else "short", text)

    return record


def name_promises(item: pytest.Item) -> None:
    """Puts the rows that a test belongs to into its reports, also those of other processes."""
    for mark in item.iter_markers("promise"):
        (name,) = mark.args
        if name not in NAMES:
            raise pytest.UsageError(f"{item.nodeid}: no promise {name!r} in tests/promises.py")
        item.user_properties.append(("promise", name))


CHOSEN = os.environ.get("PASTNET_PROMISES", "").split()
"""The rows to show, all where it is empty."""


def leave_out_others(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselects the tests of other rows than those that are to be shown."""
    if CHOSEN:
        left = [item for item in items if not {*_promised(item)} & {*CHOSEN}]
        config.hook.pytest_deselected(items=left)
        items[:] = [item for item in items if item not in {*left}]


def _promised(item: pytest.Item) -> list[str]:
    return [value for key, value in item.user_properties if key == "promise"]


class Results:
    """Collects reports for tools/promises.py; what a run has shown stays if it is cut off."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._found: dict[tuple[str, str], dict[str, Any]] = {}
        self._ended = False
        self._commit = subprocess.run(
            ["git", "describe", "--always", "--dirty"],
            cwd=ROOT, capture_output=True, text=True, check=False,
        ).stdout.strip()  # fmt: skip

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        told = report.user_properties
        for promise in {value for key, value in told if key == "promise"} & {*(CHOSEN or NAMES)}:
            result = self._found.setdefault(
                (promise, report.nodeid),
                {"promise": promise, "test": report.nodeid, "outcome": "passed", "seconds": 0.0},
            )
            result["seconds"] = round(result["seconds"] + report.duration, 2)
            if report.failed or (report.skipped and result["outcome"] == "passed"):
                result["outcome"] = report.outcome
                result["why"] = str(report.longrepr[-1]) if report.skipped else ""
            for kind in ("figure", "short", "sum"):
                result[f"{kind}s"] = list(dict.fromkeys(v for key, v in told if key == kind))

        if report.when == "teardown":
            self._save()

    def pytest_sessionfinish(self, exitstatus: int) -> None:
        self._ended = exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED)
        self._save()

    def _save(self) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        results = list(self._found.values())
        body = {"commit": self._commit, "ended": self._ended, "results": results}
        whole = self._path.with_suffix(".tmp")
        whole.write_text(json.dumps(body, indent=1, ensure_ascii=False), "utf-8")
        whole.replace(self._path)


def keep_results(config: pytest.Config) -> None:
    """Registers `Results` in the process that all reports come to."""
    path = os.environ.get("PASTNET_RESULTS")
    if path and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Results(Path(path)), "pastnet-results")
