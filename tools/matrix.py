"""Runs the Python tests with other versions of Python and of the packages, a column at a time."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from tools import environment
from tools.columns import COLUMNS, WITHOUT_TENSORFLOW, Column
from tools.promises import RESULTS
from tools.staleness import VERSIONS
from tools.steps import ROOT, Failure, quiet, say

HOME = ROOT / ".venv-matrix"
SHOWN = ("tensorflow", "keras", "tensorboard", "numpy", "werkzeug")
_TELL = """
import platform
from importlib.metadata import PackageNotFoundError, version
print(platform.python_version(), end="")
for names in {names!r}:
    for name in names:
        try:
            print(",", names[0], version(name), end="")
            break
        except PackageNotFoundError:
            pass
"""


class Outcome(NamedTuple):
    """What a column showed.

    Attributes:
        column: Which.
        outcome: "passed", "failed" or "skipped", as pytest says it.
        versions: What was installed.
        counts: How many tests passed, failed, were skipped; or why none ran.
        seconds: How long the tests took.
        output: What pytest or pip printed; empty where all is well.
    """

    column: Column
    outcome: str
    versions: str = ""
    counts: str = ""
    seconds: float = 0.0
    output: str = ""


def choose(names: Sequence[str]) -> list[Column]:
    """The columns that the command line names, all where it names none.

    Raises:
        Failure: There is no such column.
    """
    known = {column.name: column for column in COLUMNS}
    unknown = [name for name in names if name not in known]
    if unknown:
        raise Failure(
            f"Could not run {', '.join(unknown)}: expected columns of {', '.join(known)}. "
            "Name some of these, or none for all."
        )
    return [known[name] for name in names] or list(COLUMNS)


def pythons(given: Sequence[str] = ()) -> dict[str, str]:
    """The Pythons of this machine, by their version.

    Args:
        given: Paths from the command line: they go first.

    Returns:
        Programs that run, those given, then the one that runs this, those on the PATH, and pyenv's.
    """
    wanted = sorted({column.python for column in COLUMNS})
    home = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv") / "versions"
    candidates = [*given, sys.executable]
    candidates += [path for name in wanted if (path := shutil.which(f"python{name}"))]
    candidates += [str(path) for path in sorted(home.glob("*/bin/python"), reverse=True)]
    found: dict[str, str] = {}
    for path in candidates:
        program = 'import sys; print("%d.%d" % sys.version_info[:2], sys.executable)'
        told = quiet([path, "-c", program])[1].strip() if shutil.which(path) else ""
        version, _, real = told.partition(" ")  # on the PATH it may be a stub of pyenv
        if version in wanted:
            found.setdefault(version, real)
    return found


def try_column(column: Column, python: str, pytest: Sequence[str], *, keep: bool) -> Outcome:
    """Installs a column's versions and runs the tests with them.

    Args:
        column: Which.
        python: A Python of its version.
        pytest: Arguments of pytest.
        keep: Whether the environment stays on the disk.
    """
    venv = HOME / column.name
    try:
        tensorflow = column.has_tensorflow
        inside = environment.ensure_pinned(venv, python, column.pins(), tensorflow=tensorflow)
        names = [(name, f"{name}-cpu") if name == "tensorflow" else (name,) for name in SHOWN]
        versions = quiet([inside, "-c", _TELL.format(names=names)])[1].strip()
        say(f"       {column.name}: Python {versions}")
        start = time.monotonic()
        env = environment.variables(inside)
        if not tensorflow:
            env, pytest = env | {"PASTNET_WITHOUT": "keras tensorflow"}, WITHOUT_TENSORFLOW
        command = [str(inside), "-m", "pytest", "--no-header", "-q", *pytest]
        code, output = quiet(command, env)
        took = time.monotonic() - start
    except Failure as failure:
        return Outcome(
            column, "failed", counts="the environment can't be made", output=f"{failure}"
        )
    finally:
        if not keep:
            shutil.rmtree(venv, ignore_errors=True)
    outcome = "failed" if code else "passed"
    return Outcome(column, outcome, versions, counted(output), took, output if code else "")


def counted(output: str) -> str:
    """What pytest says last: "3 failed, 812 passed, 1 skipped".

    Args:
        output: All that it printed.
    """
    kinds = "passed|failed|skipped|errors?|xfailed|deselected"
    found = re.findall(rf"\b\d+ (?:{kinds})\b", (output.strip().splitlines() or [""])[-1])
    return ", ".join(found) or "no test ran"


def run_all(
    columns: Sequence[Column], given: Sequence[str], pytest: Sequence[str], *, keep: bool
) -> list[Outcome]:
    """Tries columns one after the other and keeps what each showed for `prove`.

    Args:
        columns: Which.
        given: Paths of Pythons, see `pythons`.
        pytest: Arguments of pytest.
        keep: Whether environments stay on the disk, 1.5 to 2 GB each.
    """
    there, found = pythons(given), []
    for column in columns:
        if column.python not in there:
            why = f"no Python {column.python} found: name one with --python"
            one = Outcome(column, "skipped", counts=why)
        else:
            one = try_column(column, there[column.python], pytest, keep=keep)
        if one.output:
            say(one.output[-8000:].rstrip())
        say(f"{one.outcome:7} {column.name}: {one.counts} ({one.seconds:.0f} s)")
        save(one)
        found.append(one)
    return found


def save(one: Outcome, folder: Path = RESULTS) -> None:
    """Keeps what a column showed, in the form that tools/promises.py reads.

    Args:
        one: What it showed.
        folder: Where results lie.
    """
    column = one.column
    told = f"Python {one.versions}: {one.counts}"
    result = {
        "promise": VERSIONS,
        "test": f"dev.py matrix {column.name}",
        "outcome": one.outcome,
        "seconds": round(one.seconds, 1),
        "figures": [told] if one.versions else [],
        "why": "" if one.outcome == "passed" else f"{column.name}: {one.counts}",
    }
    commit = quiet(["git", "describe", "--always", "--dirty"])[1].strip()
    folder.mkdir(parents=True, exist_ok=True)
    body = json.dumps({"commit": commit, "results": [result]}, indent=1, ensure_ascii=False)
    (folder / f"matrix-{column.name}.json").write_text(body, "utf-8")


def table(found: Sequence[Outcome]) -> str:
    """All columns, one a line.

    Args:
        found: What they showed.
    """
    lines = [
        f"{one.outcome:7} {one.column.name:8} Python {one.versions or one.column.python}: "
        f"{one.counts}, {one.seconds:.0f} s"
        for one in found
    ]
    return "\n".join(lines)
