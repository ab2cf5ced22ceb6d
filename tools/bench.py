"""Runs benchmarks, keeps their rows, and puts tables of them into a page of docs/benchmarks."""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks._rows import INTO, read, tables
from tools.promises import RESULTS
from tools.steps import ROOT, Failure, run, say

FOLDER = ROOT / "benchmarks"
KEPT = RESULTS / "bench" / "here.json"
PAGE = ROOT / "docs" / "benchmarks" / "performance.md"
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
    """Whether a benchmark has programs for Node beside it, in a file or a folder of its name."""
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
    """Keeps what one benchmark found, in the place of what it found before."""
    found = load(into) | {body["benchmark"]: body}
    into.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(found, indent=1, ensure_ascii=False, sort_keys=True)
    into.write_text(f"{text}\n", "utf-8")


def markdown(body: dict[str, Any]) -> str:
    """The tables of one benchmark, and what they were measured on."""
    versions = ", ".join(f"{name} {number}" for name, number in body["versions"].items())
    of = f"Of {body['commit']}, on {body['machine']}; {versions}."
    return "\n".join([*tables(read(body)), "", of])


def write(kept: Path = KEPT, page: Path = PAGE) -> list[str]:
    """Puts tables into a page, each between the two marks of its benchmark.

    Args:
        kept: The file of rows.
        page: Has marks such as `<!-- begin of recording -->`; what no rows are kept of stays.

    Returns:
        The benchmarks whose tables were written.
    """
    found, written = load(kept), []

    def filled(match: re.Match[str]) -> str:
        if match["name"] not in found:
            return match[0]
        written.append(match["name"])
        return f"{match['begin']}\n\n{markdown(found[match['name']])}\n\n{match['end']}"

    marked = r"(?P<begin><!-- begin of (?P<name>\w+) -->).*?(?P<end><!-- end of (?P=name) -->)"
    text = re.sub(marked, filled, page.read_text("utf-8"), flags=re.DOTALL)
    page.write_text(text, "utf-8")
    return written
