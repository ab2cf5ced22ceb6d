"""Which tests `dev.py test` runs: the fast ones, or those that what changed can reach."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from tools.reach import NODE, Tree
from tools.steps import ROOT, Failure

MOST = 4
"""Processes: each has to import everything."""
_FOLDERS = ("contract", "e2e", "fault", "oracle", "security", "soak")
SYSTEM = {f"tests/{folder}" for folder in _FOLDERS}
"""Tests of the system as a whole, with servers, processes and damage: they take minutes."""
EVERYTHING = {"pyproject.toml"}
"""Files that decide about all tests."""
PACKAGE = "tb_pastnet/"
NAMESAKES = ("tools/commands.py", "tools/environment.py")
"""Files to which `docs` is a command and an extra, not the folder."""
PAGE = ("frontend/", "tb_pastnet/serve/static/")


class Chosen(NamedTuple):
    """Some tests.

    Attributes:
        files: of pytest, by their path below the root.
        left_out: how many others there are.
        page: whether the page's own checks belong to them.
    """

    files: list[str]
    left_out: int
    page: bool = False


def fast(tree: Tree) -> Chosen:
    """The files of tests of parts, and of answers, that need neither a framework nor a browser."""
    system = system_folders(tree)
    files = [path for path in tree.tests if path.parent not in system and tree.is_fast(path)]
    return Chosen(_below(tree, files), len(tree.tests) - len(files))


def reaching(tree: Tree, changed: Iterable[str]) -> Chosen:
    """The files of tests near one of some files; all where one decides about all of them.

    Args:
        tree: the repository.
        changed: files, by their path below its root.
    """
    files, page, everything = set[Path](), False, False
    for name in changed:
        path = tree.root / name
        page |= name.startswith(PAGE)
        everything |= name in EVERYTHING
        if path.suffix == ".py":
            found = {test for test in tree.tests if path in tree.reached(test)}
            # Nothing reaches a module that is gone.
            files |= _near(tree, path, found) if found and name.startswith(PACKAGE) else found
        else:
            files |= _reading(tree, path)
    if page:
        files |= {test for test in tree.tests if NODE in tree.outside(test)}
    chosen = [test for test in tree.tests if everything or test in files]
    return Chosen(_below(tree, chosen), len(tree.tests) - len(chosen), page)


def _reading(tree: Tree, path: Path) -> set[Path]:
    """The tests of a file that isn't Python: they name it, or use a module that does."""
    naming = tree.naming(path) - {tree.root / other for other in NAMESAKES}
    return {
        test
        for test in tree.tests
        if test in naming or any(tree.uses(test, module) for module in naming)
    }


def _near(tree: Tree, module: Path, reaching: Iterable[Path]) -> set[Path]:
    """The tests that a change of the package's module waits for, of all that reach it.

    Left out are tests in the browser; and of those that use it only through others, and start no
    command of it, tests of the system, and tests of frameworks if it needs none: `dev.py mutants`
    shows that the fast ones notice its faults.
    """
    system, neutral = system_folders(tree), tree.is_fast(module)

    def is_near(test: Path) -> bool:
        if NODE in tree.outside(test):
            return False
        light = test.parent not in system and (tree.is_fast(test) or not neutral)
        return light or tree.uses(test, module) or tree.starts(test, module)

    return set(filter(is_near, reaching))


def system_folders(tree: Tree) -> set[Path]:
    """The folders of the system's tests."""
    return {tree.root / folder for folder in SYSTEM}


def _below(tree: Tree, files: Iterable[Path]) -> list[str]:
    return [path.relative_to(tree.root).as_posix() for path in files]


def changed_since(revision: str | None, root: Path = ROOT) -> list[str]:
    """Files that differ from a commit, new ones among them.

    Args:
        revision: the commit; None: the last one, or the one before where all is committed.
        root: of the repository.

    Raises:
        Failure: git knows no such commit.
    """
    files = _git(root, "diff", "--name-only", "--no-renames", revision or "HEAD")
    files += _git(root, "ls-files", "--others", "--exclude-standard")
    if revision is None and not files:
        return changed_since("HEAD~1", root)
    return sorted(files)


def _git(root: Path, *arguments: str) -> list[str]:
    done = subprocess.run(
        ["git", *arguments], cwd=root, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise Failure(f"Could not see what changed: {done.stderr.strip()}")
    return done.stdout.split("\n")[:-1]


def only_compute(tree: Tree, files: Iterable[str]) -> bool:
    """Whether some files of tests need a framework, and none is of the system, which waits."""
    paths = [tree.root / name for name in files]
    system = system_folders(tree)
    return not all(map(tree.is_fast, paths)) and not any(path.parent in system for path in paths)


def processes(
    files: Sequence[str],
    cores: int | None = None,
    *,
    computing: bool = False,
    spread: bool = False,
) -> list[str]:
    """Pytest's arguments for as many processes as help: a file of tests stays in one.

    It is one more than there are cores: some wait for a browser, a server or a disk.

    Args:
        files: what is to run, as pytest takes it; a folder is many.
        cores: of this machine, if not of the one that it runs on.
        computing: whether none waits, and each process imports a framework: then one a core.
        spread: whether a file's tests are so long that several processes share them.
    """
    many = {name.partition("::")[0] for name in files}
    folders = any(not name.endswith(".py") for name in many)
    most = (cores or os.cpu_count() or 1) + (not computing)
    count = min(MOST, most, MOST if folders else len(many))
    if count == 1:
        return []
    how = ["worksteal"] if spread else ["loadfile", "--no-loadscope-reorder"]
    return ["-n", str(count), "--dist", *how]
