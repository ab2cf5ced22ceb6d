"""The table of promises: what the tests of each row showed, from the results in .prove."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from tests.promises import PROMISES, Promise
from tools.steps import ROOT

RESULTS = ROOT / ".prove"
PAGE = ROOT / "docs" / "promises.md"
BEGIN, END = "<!-- begin of the table -->", "<!-- end of the table -->"
PROVEN, SHORT, FAILED, PARTLY, UNSHOWN = "proven", "SHORT", "FAILED", "partly", "not run"


class Row(NamedTuple):
    """What is known of one promise.

    Attributes:
        promise: the row.
        verdict: `proven`, `SHORT` of its bar, `FAILED`, `partly` (some were skipped), `not run`.
        tests: how many passed, and of how many.
        figures: what was measured, and why something is short, failed or was skipped.
        seconds: how long the tests took.
    """

    promise: Promise
    verdict: str
    tests: str
    figures: list[str]
    seconds: float


def load(folder: Path = RESULTS) -> tuple[list[dict[str, Any]], list[str]]:
    """Reads all results.

    Args:
        folder: where `NAME.json` lie.

    Returns:
        The results, and the commits that they are of.
    """
    results: list[dict[str, Any]] = []
    commits: list[str] = []
    for path in sorted(folder.glob("*.json")):
        body = json.loads(path.read_text("utf-8"))
        results += body["results"]
        commits.append(body["commit"])
    return results, sorted(set(commits))


def row(promise: Promise, results: Iterable[dict[str, Any]]) -> Row:
    """Judges one promise.

    Args:
        promise: the row.
        results: of all rows.
    """
    own = [one for one in results if one["promise"] == promise.name]
    bad = [one for one in own if one["outcome"] == "failed"]
    left = [one for one in own if one["outcome"] == "skipped"]
    short = [text for one in own for text in one.get("shorts", ())]
    figures = list(dict.fromkeys(text for one in own for text in one.get("figures", ())))
    figures += [f"SHORT: {text}" for text in short]
    figures += [f"FAILED: {one['test']}" for one in bad]
    figures += sorted({f"skipped: {one['why'].removeprefix('Skipped: ')}" for one in left})
    passed = len(own) - len(bad) - len(left)
    verdict = FAILED if bad else SHORT if short else PARTLY if left else PROVEN
    return Row(
        promise,
        verdict if own else UNSHOWN,
        f"{passed} of {len(own)}",
        figures,
        sum(one["seconds"] for one in own),
    )


def rows(results: Sequence[dict[str, Any]]) -> list[Row]:
    """Judges all promises, in their order."""
    return [row(promise, results) for promise in PROMISES]


def text(table: Iterable[Row], width: int = 100) -> str:
    """The table for a terminal.

    Args:
        table: its rows.
        width: columns of the terminal.
    """
    lines = []
    for one in table:
        head = f"{one.verdict:8} {one.promise.name:20} {one.tests} tests, {one.seconds:.0f} s"
        told = [one.promise.scenario, f"bar: {one.promise.bar}", *one.figures]
        lines.append(head)
        for part in told:
            lines += textwrap.wrap(part, width, initial_indent=" " * 9, subsequent_indent=" " * 11)
    return "\n".join(lines)


def markdown(table: Iterable[Row]) -> str:
    """The table for docs/promises.md."""
    lines = [
        "| what happens | bar | verdict | tests | figures |",
        "| --- | --- | --- | --- | --- |",
    ]
    for one in table:
        cells = (
            f"**{one.promise.name}**: {one.promise.scenario}",
            one.promise.bar,
            one.verdict,
            one.tests,
            "; ".join(one.figures),
        )
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(lines)


def write(table: Iterable[Row], commits: Iterable[str], page: Path = PAGE) -> None:
    """Puts the table into its page, between its two marks.

    Args:
        table: its rows.
        commits: what was tested.
        page: holds both marks.
    """
    before, _, rest = page.read_text("utf-8").partition(BEGIN)
    after = rest.partition(END)[2]
    of = f"Of {', '.join(commits)}."
    page.write_text(f"{before}{BEGIN}\n\n{markdown(table)}\n\n{of}\n\n{END}{after}", "utf-8")
