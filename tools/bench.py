"""Runs benchmarks, keeps their rows, and puts tables of them into a page of docs/benchmarks."""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks._rows import INTO, read, tables
from tools.promises import RESULTS
from tools.steps import ROOT, Failure, run, say

FOLDER = ROOT / "benchmarks"
KEPT = RESULTS / "bench" / "here.json"
"""What was measured on this machine."""
PUBLISHED = FOLDER / "results.json"
"""What the tables in the docs are made of."""
EXCERPTS = {
    "recording_in_short": (
        "recording",
        "A logged step, as a share of a training step",
        (
            "ours, [fast], every=1",
            "ours, every=1",
            "by hand: NumPy, tf.summary.write",
            "tf.summary.histogram of all variables",
        ),
    )
}
"""Of some rows of a table: by mark the benchmark, the table and the rows."""
OF_FRAMEWORKS = {"accelerator", "frameworks", "frozen_base", "small", "torch_masks"}
"""Benchmarks that train with PyTorch and JAX, too."""
MARKED = r"(?P<begin><!-- begin of (?P<name>\w+) -->).*?(?P<end><!-- end of (?P=name) -->)"
Results = dict[str, dict[str, Any]]


def choose(names: Sequence[str]) -> list[Path]:
    """The benchmarks that the command line names, all where it names none.

    Raises:
        Failure: There is no such benchmark.
    """
    found = {path.stem: path for path in sorted(FOLDER.glob("*.py")) if path.stem[0] != "_"}
    unknown = [name for name in names if name not in found]
    if unknown:
        raise Failure(f"Could not run {', '.join(unknown)}: expected one of {', '.join(found)}.")
    return [found[name] for name in names] or list(found.values())


def in_browser(path: Path) -> bool:
    """Whether a benchmark has programs for Node too, in a file or folder of the same name."""
    return path.with_suffix(".mjs").is_file() or path.with_name(f"_{path.stem}").is_dir()


def run_all(
    chosen: Sequence[Path],
    python: Path,
    env: Mapping[str, str],
    options: Sequence[str],
    into: Path = KEPT,
) -> int:
    """Runs benchmarks one after the other and keeps what each found.

    Args:
        chosen: Which.
        python: That runs them.
        env: Their environment.
        options: Of each.
        into: The file of rows; those of other benchmarks in it stay.

    Returns:
        The exit code: 0 only if no bar was missed.
    """
    codes = []
    for path in chosen:
        say(f"\n{path.stem}")
        with tempfile.TemporaryDirectory() as folder:
            rows = Path(folder) / "rows.json"
            codes.append(run([python, path, *options], {**env, INTO: str(rows)}))
            if rows.is_file():
                keep(json.loads(rows.read_text("utf-8")), into)
    return max(codes, default=0)


def load(kept: Path = KEPT) -> Results:
    """What was kept, by benchmark."""
    if not kept.is_file():
        return {}
    found: Results = json.loads(kept.read_text("utf-8"))
    return found


def keep(body: dict[str, Any], into: Path = KEPT) -> None:
    """Stores the results of one benchmark, and replaces earlier ones."""
    found = load(into) | {body["benchmark"]: body}
    into.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(found, indent=1, ensure_ascii=False, sort_keys=True)
    into.write_text(f"{text}\n", "utf-8")


def pages() -> list[Path]:
    """The pages that may have tables."""
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def publish(kept: Path = KEPT, into: Path = PUBLISHED) -> list[str]:
    """Moves what was measured here to what the docs' tables are made of.

    Returns:
        The benchmarks that were moved.

    Raises:
        Failure: Something was measured of a state that no commit has.
    """
    found = load(kept)
    for name, body in found.items():
        if body["commit"] == "unknown" or body["commit"].endswith("-dirty"):
            raise Failure(
                f"Could not write the tables: expected figures of a commit, got those of {name} "
                f"of {body['commit']}. Commit, then call `python3 dev.py bench {name}` again."
            )
    for body in found.values():
        keep(body, into)
    kept.unlink(missing_ok=True)
    return list(found)


def write(paths: Iterable[Path], published: Path = PUBLISHED) -> None:
    """Fills the tables of pages.

    Args:
        paths: Of pages, see `filled`.
        published: The file of rows.
    """
    results = load(published)
    for path in paths:
        text = path.read_text("utf-8")
        if (after := filled(text, results)) != text:
            path.write_text(after, "utf-8")


def filled(text: str, results: Results) -> str:
    """A page with its tables, each between two marks such as `<!-- begin of recording -->`.

    Args:
        text: The page. What is marked with another name than that of a benchmark stays.
        results: By benchmark.
    """
    tables_of = {path.stem: "" for path in choose(())} | {"missed": missed(results)}
    tables_of |= {name: markdown(body) for name, body in results.items()}
    for mark, (name, title, rows) in EXCERPTS.items():
        tables_of[mark] = markdown(excerpt(results[name], title, rows)) if name in results else ""

    def table(match: re.Match[str]) -> str:
        name = match["name"]
        if name not in tables_of:
            return match[0]
        body = tables_of[name] or f"Not measured yet: `python3 dev.py bench {name}`."
        return f"{match['begin']}\n\n{body}\n\n{match['end']}"

    return re.sub(MARKED, table, text, flags=re.DOTALL)


def markdown(body: dict[str, Any]) -> str:
    """The tables of one benchmark, and what they were measured on."""
    versions = ", ".join(f"{name} {number}" for name, number in body["versions"].items())
    of = "; ".join(filter(None, (f"Of {body['commit']}, on {body['machine']}", versions)))
    return "\n".join([*tables(read(body)), "", f"{of}."])


def excerpt(body: dict[str, Any], title: str, names: Sequence[str]) -> dict[str, Any]:
    """Some rows of one table of a benchmark."""
    rows = [row for row in body["rows"] if row["table"] == title and row["name"] in names]
    return body | {"rows": rows}


def missed(results: Results) -> str:
    """The figures that miss their bars, as a list."""
    rows = [(name, row) for name in results for row in read(results[name]) if row.met is False]
    lines = [
        f"- {name}, {', '.join(filter(None, (row.table, row.name, row.column)))}: {row.cell}"
        for name, row in rows
    ]
    return "\n".join(lines) or "None."
