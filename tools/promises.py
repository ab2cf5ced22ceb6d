"""The table of promises: what the tests of each row showed, from the results in .prove."""

from __future__ import annotations

import json
import os
import re
import textwrap
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from tests.promises import PROMISES, Promise
from tools.columns import COLUMNS
from tools.staleness import VERSIONS, Staleness
from tools.steps import ROOT, Failure, quiet

RESULTS = ROOT / ".prove"
PAGE = ROOT / "docs" / "benchmarks" / "promises.md"
PUBLISHED = ROOT / "benchmarks" / "promises.json"
"""What the table in the page is made of, by promise."""
AGAIN = "again-"
"""How the names of files begin that have the results of some tests of rows."""
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
        commits: that the tests ran at.
        changed: how many files that decide about it differ since; None where nobody can know.
    """

    promise: Promise
    verdict: str
    tests: str
    figures: list[str]
    seconds: float
    commits: list[str]
    changed: int | None = None

    @property
    def state(self) -> str:
        """Whether what was shown holds for the files as they are."""
        if self.verdict == UNSHOWN:
            return "never shown"
        if self.changed is None:
            return "unknown"
        return f"stale: {self.changed} files changed" if self.changed else "fresh"


def forget(names: Collection[str], folder: Path = RESULTS) -> None:
    """Removes the results of some rows.

    Args:
        names: of the rows.
        folder: where the files of results lie.
    """
    for path in folder.glob("*.json"):
        body, at = json.loads(path.read_text("utf-8")), path.stat().st_mtime_ns
        body["results"] = [one for one in body["results"] if one["promise"] not in names]
        path.write_text(json.dumps(body, indent=1, ensure_ascii=False), "utf-8")
        os.utime(path, ns=(at, at))  # the newest result of a test counts
        if not body["results"]:
            path.unlink()


def load(folder: Path = RESULTS) -> list[dict[str, Any]]:
    """Reads all results, each with its commit: of a test that was run several times the newest.

    Tests that alone were run again replace results, and make no row of their own.

    Args:
        folder: where `NAME.json` lie.
    """
    newest: dict[tuple[str, str], dict[str, Any]] = {}
    for path in sorted(folder.glob("*.json"), key=lambda path: path.stat().st_mtime_ns):
        body = json.loads(path.read_text("utf-8"))
        for result in body["results"]:
            which = result["promise"], result["test"]
            if which in newest or not path.name.startswith(AGAIN):
                known = {name: body[name] for name in ("commit", "ended") if name in body}
                newest[which] = result | known
    results = list(newest.values())
    return results + _left_out(results)


def _left_out(results: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """The columns of the matrix that weren't run, where others were."""
    ran = {one["test"].split()[-1] for one in results if one["promise"] == VERSIONS}
    left = [one.name for one in COLUMNS if one.name not in ran] if ran else []
    common = {"promise": VERSIONS, "outcome": "skipped", "seconds": 0.0}
    return [{**common, "test": name, "why": f"column {name} wasn't run"} for name in left]


def choose(names: Sequence[str]) -> list[str]:
    """The rows that the command line names.

    Raises:
        Failure: There is no such row.
    """
    known = [promise.name for promise in PROMISES]
    if unknown := [name for name in names if name not in known]:
        raise Failure(
            f"Could not prove {', '.join(unknown)}: expected rows of {', '.join(known)}. "
            "Name some of these, or none for all."
        )
    return list(names)


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
    figures += _added_up(own)
    figures += [f"SHORT: {text}" for text in short]
    figures += [f"FAILED: {one['test']}" for one in bad]
    figures += sorted({f"skipped: {one['why'].removeprefix('Skipped: ')}" for one in left})
    cut_off = any(not one.get("ended", True) for one in own)
    figures += ["cut off: some tests didn't run"] if cut_off else []
    passed = len(own) - len(bad) - len(left)
    verdict = FAILED if bad else SHORT if short else PARTLY if left or cut_off else PROVEN
    return Row(
        promise,
        verdict if own else UNSHOWN,
        f"{passed} of {len(own)}",
        figures,
        sum(one["seconds"] for one in own),
        sorted({one["commit"] for one in own if "commit" in one}),
    )


def _added_up(results: Iterable[dict[str, Any]]) -> list[str]:
    """The counts of tests, as one figure for each text."""
    totals: dict[str, list[int]] = {}
    for text, *counts in (each for one in results for each in one.get("sums", ())):
        before = totals.get(text, [0] * len(counts))
        totals[text] = [*map(sum, zip(before, counts, strict=True))]
    return [text.format(*counts) for text, counts in totals.items()]


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


def published(file: Path = PUBLISHED) -> list[Row]:
    """What is in the table, in the order of the promises.

    Args:
        file: what the table is made of.
    """
    kept = json.loads(file.read_text("utf-8"))["rows"]
    none = {"verdict": UNSHOWN, "tests": "", "figures": [], "seconds": 0.0, "commits": []}
    return [Row(promise, **kept.get(promise.name, none)) for promise in PROMISES]


def fresher(ran: Sequence[Row], kept: Sequence[Row], staleness: Staleness) -> list[Row]:
    """Of each row what was shown for files that are nearer to those of now, and how near.

    Args:
        ran: what the results in .prove show.
        kept: what the table shows.
        staleness: tells how much has changed.
    """

    def judged(one: Row) -> Row:
        changed = staleness.changed(one.promise.name, one.commits)
        return one._replace(changed=changed)

    def distance(one: Row) -> tuple[bool, bool, int]:
        return one.verdict == UNSHOWN, one.changed is None, one.changed or 0

    return [min(map(judged, both), key=distance) for both in zip(ran, kept, strict=True)]


def demand_commit() -> str:
    """The commit that the files are of.

    Raises:
        Failure: They are of none.
    """
    commit = quiet(["git", "describe", "--always", "--dirty"])[1].strip()
    if commit.endswith("-dirty"):
        raise Failure(
            f"Could not write the table: expected the files of a commit, got {commit}. "
            "Commit, then call it again."
        )
    return commit


def publish(table: Iterable[Row], commit: str, into: Path = PUBLISHED) -> None:
    """Keeps what was shown.

    Args:
        table: its rows, as `fresher` judges them.
        commit: that they are judged at.
        into: the file that the table is made of.

    Raises:
        Failure: Something was shown of a state that no commit has.
    """
    rows: dict[str, dict[str, Any]] = {}
    for one in table:
        if dirty := [name for name in one.commits if name.endswith("-dirty")]:
            raise Failure(
                f"Could not write the table: expected results of a commit, got those of "
                f"{one.promise.name} of {dirty[0]}. Commit, then call `python3 dev.py prove` again."
            )
        if one.verdict != UNSHOWN:
            kept = one._asdict()
            rows[kept.pop("promise").name] = kept
    text = json.dumps({"commit": commit, "rows": rows}, indent=1, ensure_ascii=False)
    into.write_text(f"{text}\n", "utf-8")


def write(page: Path = PAGE, file: Path = PUBLISHED) -> None:
    """Puts the table into its page."""
    page.write_text(filled(page.read_text("utf-8"), file), "utf-8")


def filled(text: str, file: Path = PUBLISHED) -> str:
    """The page with its table, between its two marks.

    Args:
        text: the page.
        file: what the table is made of.
    """
    before, _, rest = text.partition(BEGIN)
    after = rest.partition(END)[2]
    commit = json.loads(file.read_text("utf-8"))["commit"]
    return f"{before}{BEGIN}\n\n{markdown(published(file), commit)}\n\n{END}{after}"


def markdown(table: Sequence[Row], commit: str) -> str:
    """The table for docs/benchmarks/promises.md, and below it each row in full.

    Args:
        table: its rows.
        commit: that they were judged at.
    """
    fresh = sum(one.state == "fresh" for one in table)
    lines = [
        f"At commit {commit}, {fresh} of {len(table)} rows are fresh.\n",
        "| row | verdict | tests | time | shown at | since then |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for one in table:
        name, commits = one.promise.name, ", ".join(one.commits)
        cells = (f"[{name}](#{name})", one.verdict, one.tests, lasted(one), commits, one.state)
        lines.append(f"| {' | '.join(cells)} |")
    for one in table:
        told = [
            f"\n### {one.promise.name}\n",
            *map(_plain, (one.promise.scenario, one.promise.bar)),
        ]
        lines += [told[0], f"{told[1]}.\n", f"Bar: {told[2]}."]
        lines += ["", *(f"- {_plain(figure)}" for figure in one.figures)] if one.figures else []
    return "\n".join(lines)


def lasted(one: Row) -> str:
    """How long the tests of a row took, one after the other; "" where nobody measured it."""
    if not one.seconds:
        return ""
    return f"{one.seconds:.0f} s" if one.seconds < 120 else f"{one.seconds / 60:.0f} min"


def _plain(text: str) -> str:
    """What Markdown shows as it is."""
    return re.sub(r"([_*<`\\])", r"\\\1", text)


def brief(table: Iterable[Row]) -> str:
    """A line a row, for a terminal.

    Args:
        table: its rows.
    """
    lines = [
        f"{one.promise.name:20} {one.verdict:8} {one.tests:12} {lasted(one):8} "
        f"{','.join(one.commits):24} {one.state}"
        for one in table
    ]
    return "\n".join(line.rstrip() for line in lines)
