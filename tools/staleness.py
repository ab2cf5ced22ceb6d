"""Which rows of the table of promises are stale: files that their tests reach have changed since.

A change of comments, docstrings or layout doesn't count. Of the page what counts is what the
browser loads, and the programs that drive it. Files that tests only read, such as kept logs, don't.
"""

from __future__ import annotations

import ast
import hashlib
import re
import subprocess
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from functools import cache
from pathlib import Path

from tools.columns import QUICK
from tools.reach import NODE, Tree, bare_text
from tools.selection import changed_since
from tools.steps import ROOT, Failure

VERSIONS = "versions"
"""The promise of `dev.py matrix`, a result a column."""

_MARK = "pytest.mark.promise"
_TOLD = "tests/promises.py"
"""Says what the rows are called: all tests reach it, and none depends on another row's words."""
_DECIDES_ON_VERSIONS = ("pyproject.toml", "tools/columns.py")


def files_of_rows(tree: Tree) -> dict[str, list[Path]]:
    """The files of tests that show a part of each row, and those that `matrix` runs.

    Args:
        tree: the repository.
    """
    files = defaultdict(list)
    for path in tree.tests:
        source = path.read_text("utf-8")
        for name in _promised(source) if _MARK in source else ():
            files[name].append(path)
        if path.relative_to(tree.root).as_posix().startswith(QUICK):
            files[VERSIONS].append(path)
    return files


def _promised(source: str) -> set[str]:
    """The rows that a file of tests has marks of."""
    calls = (node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call))
    marks = [call.args for call in calls if ast.unparse(call.func) == _MARK]
    return {ast.literal_eval(argument) for (argument,) in marks}


def reached_by_rows(tree: Tree) -> dict[str, frozenset[str]]:
    """The files that decide about each row, by their path below the root.

    Args:
        tree: the repository.
    """
    root = tree.root
    page = {*(root / "tb_pastnet/serve/static").rglob("*"), *(root / "tests/e2e").rglob("*.mjs")}
    reached = {}
    for name, tests in files_of_rows(tree).items():
        files = {file for test in tests for file in tree.reached(test)}
        if any(NODE in tree.outside(test) for test in tests):
            files |= page
        if name == VERSIONS:
            files |= {root / other for other in _DECIDES_ON_VERSIONS}
        told = {file.relative_to(root).as_posix() for file in files if not file.is_dir()}
        reached[name] = frozenset(told - {_TOLD})
    return reached


class Staleness:
    """How many files that decide about a row differ from those of a commit.

    Args:
        reached: by row the files that decide about it, see `reached_by_rows`.
        root: the repository; compared are its files as they are.
    """

    def __init__(self, reached: dict[str, frozenset[str]], root: Path = ROOT) -> None:
        self._reached, self._root = reached, root
        self._all = frozenset[str]().union(*reached.values())
        self._since = cache(self._changed_since)

    def changed(self, row: str, commits: Collection[str]) -> int | None:
        """How many changed since any of some commits.

        Args:
            row: its name.
            commits: that its tests ran at.

        Returns:
            None: it can't be known. It wasn't shown, or at no commit of this history.
        """
        changes = [self._since(commit) for commit in commits]
        if not changes or None in changes:
            return None
        changed = frozenset[str]().union(*filter(None, changes))
        return len(changed & self._reached.get(row, frozenset()))

    def _changed_since(self, commit: str) -> frozenset[str] | None:
        try:
            changed = self._all & {*changed_since(_known(commit), self._root)}
        except Failure:
            return None
        before = _contents(self._root, commit, changed)
        return frozenset(name for name, text in before if not self._says_the_same(name, text))

    def _says_the_same(self, name: str, before: bytes) -> bool:
        path = self._root / name
        if path.suffix != ".py" or not path.is_file():
            return False
        return _bare(before) == _bare(path.read_bytes())


def _known(commit: str) -> str:
    # As `git describe` has it; of files that weren't committed nobody knows what was in them.
    if not re.fullmatch(r"\w[\w.-]+(?<!-dirty)", commit):
        raise Failure(f"Could not compare with {commit!r}: expected a commit.")
    return commit


def _contents(root: Path, commit: str, names: Iterable[str]) -> Iterator[tuple[str, bytes]]:
    """What files had in them at a commit, those that weren't there b""."""
    ordered = sorted(names)
    asked = "".join(f"{commit}:{name}\n" for name in ordered)
    told = subprocess.run(
        ["git", "cat-file", "--batch"], cwd=root, input=asked.encode(), stdout=subprocess.PIPE,
        check=True,
    ).stdout  # fmt: skip
    for name in ordered:
        head, _, told = told.partition(b"\n")
        size = 0 if head.endswith(b" missing") else int(head.rpartition(b" ")[2]) + 1
        yield name, told[: max(size - 1, 0)]
        told = told[size:]


@cache
def _bare(source: bytes) -> str:
    """What is carried out of a program: no comments, no layout, no docstrings."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list) and body and bare_text(body[0]):
            del body[0]
    return hashlib.sha256(ast.dump(tree).encode()).hexdigest()
