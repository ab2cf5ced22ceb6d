"""The table of promises: what the tests of each row showed, from the results in .prove."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from tests.promises import PROMISES, Promise
from tools.columns import COLUMNS
from tools.steps import ROOT, Failure

RESULTS = ROOT / ".prove"
PAGE = ROOT / "docs" / "benchmarks" / "promises.md"
PUBLISHED = ROOT / "benchmarks" / "promises.json"
"""What the table in the page is made of, by promise."""
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
        commits: that the tests ran at.
    """

    promise: Promise
    verdict: str
    tests: str
    figures: list[str]
    seconds: float
    commits: list[str]


def forget(folder: Path = RESULTS) -> None:
    """Removes results but those of other versions, which `matrix` makes.

    Args:
        folder: where `NAME.json` lie.
    """
    for path in folder.glob("*.json"):
        if not path.name.startswith("matrix-"):
            path.unlink()


def load(folder: Path = RESULTS) -> list[dict[str, Any]]:
    """Reads all results, each with its commit: of a test that was run several times the newest.

    Args:
        folder: where `NAME.json` lie.
    """
    newest: dict[tuple[str, str], dict[str, Any]] = {}
    for path in sorted(folder.glob("*.json"), key=lambda path: path.stat().st_mtime_ns):
        body = json.loads(path.read_text("utf-8"))
        for result in body["results"]:
            newest[result["promise"], result["test"]] = result | {"commit": body["commit"]}
    results = list(newest.values())
    return results + _left_out(results)


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
        sorted({one["commit"] for one in own if "commit" in one}),
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


def publish(table: Iterable[Row], into: Path = PUBLISHED) -> None:
    """Keeps what was shown; rows whose tests weren't run stay as they are.

    Args:
        table: its rows.
        into: the file of what was shown before.

    Raises:
        Failure: Something was shown of a state that no commit has.
    """
    published = json.loads(into.read_text("utf-8"))
    for one in table:
        if dirty := [name for name in one.commits if name.endswith("-dirty")]:
            raise Failure(
                f"Could not write the table: expected results of a commit, got those of "
                f"{one.promise.name} of {dirty[0]}. Commit, then call `python3 dev.py prove` again."
            )
        if one.verdict != UNSHOWN:
            shown = {"verdict": one.verdict, "tests": one.tests}
            published[one.promise.name] = shown | {"figures": one.figures, "of": one.commits}
    into.write_text(f"{json.dumps(published, indent=1, ensure_ascii=False)}\n", "utf-8")


def write(page: Path = PAGE, published: Path = PUBLISHED) -> None:
    """Puts the table into its page."""
    page.write_text(filled(page.read_text("utf-8"), published), "utf-8")


def filled(text: str, published: Path = PUBLISHED) -> str:
    """The page with its table, between its two marks.

    Args:
        text: the page.
        published: what the table is made of.
    """
    before, _, rest = text.partition(BEGIN)
    after = rest.partition(END)[2]
    table = markdown(json.loads(published.read_text("utf-8")))
    return f"{before}{BEGIN}\n\n{table}\n\n{END}{after}"


def markdown(published: dict[str, Any]) -> str:
    """The table for docs/benchmarks/promises.md."""
    lines = [
        "| what happens | bar | verdict | tests | figures | of |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    unshown = {"verdict": UNSHOWN, "tests": "", "figures": [], "of": []}
    for promise in PROMISES:
        one = published.get(promise.name, unshown)
        cells = (
            f"**{promise.name}**: {promise.scenario}",
            promise.bar,
            one["verdict"],
            one["tests"],
            "; ".join(one["figures"]),
            ", ".join(one["of"]),
        )
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(lines)
