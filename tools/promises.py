"""The table of promises: what the tests of each row showed, from the results in .prove."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from tests.promises import PROMISES, Promise
from tools.columns import COLUMNS
from tools.steps import ROOT

RESULTS = ROOT / ".prove"
PAGE = ROOT / "docs" / "benchmarks" / "promises.md"
BEGIN, END = "<!-- begin of the table -->", "<!-- end of the table -->"
VERSIONS = "versions"
"""The promise of `dev.py matrix`, a result a column."""

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


def forget(folder: Path = RESULTS) -> None:
    """Removes results but those of other versions, which `matrix` makes.

    Args:
        folder: where `NAME.json` lie.
    """
    for path in folder.glob("*.json"):
        if not path.name.startswith("matrix-"):
            path.unlink()


def load(folder: Path = RESULTS) -> tuple[list[dict[str, Any]], list[str]]:
    """Reads all results: of a test that was run several times the newest.

    Args:
        folder: where `NAME.json` lie.

    Returns:
        The results, and the commits that they are of.
    """
    newest: dict[tuple[str, str], tuple[dict[str, Any], str]] = {}
    for path in sorted(folder.glob("*.json"), key=lambda path: path.stat().st_mtime_ns):
        body = json.loads(path.read_text("utf-8"))
        for result in body["results"]:
            newest[result["promise"], result["test"]] = result, body["commit"]
    found = list(newest.values())
    results = [result for result, _ in found]
    return results + _left_out(results), sorted({commit for _, commit in found})


def _left_out(results: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """The columns of the matrix that weren't run, where others were."""
    ran = {one["test"].split()[-1] for one in results if one["promise"] == VERSIONS}
    left = [one.name for one in COLUMNS if one.name not in ran] if ran else []
    common = {"promise": VERSIONS, "outcome": "skipped", "seconds": 0.0}
    return [{**common, "test": name, "why": f"column {name} wasn't run"} for name in left]


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
    """The table for docs/benchmarks/promises.md."""
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
