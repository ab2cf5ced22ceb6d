"""Which tests judge a mutant, in which order.

First those that call the function with the fault, of the files that are named after its module and
of those that use it; then all others of the first. Each file runs once without a fault, which tells
what its tests call and how long they take.
"""

from __future__ import annotations

import ast
import json
import math
import tempfile
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from threading import Lock
from typing import NamedTuple

from tools.forks import Forks
from tools.reach import NODE, Tree
from tools.selection import system_folders

CONFORMANCE = "tests/conformance"
"""Judges every recorder."""
NEAREST, USING = 3, 8
"""Files that judge a module without a namesake, and that judge it because they use it."""
MAPPED = 600.0
"""Seconds of processors that a file may take without a fault."""
BUDGET = 60.0
"""Seconds of processors for the tests of a stage: beyond it, those that take long don't run."""

Function = tuple[str, int]
"""Path and first line."""


class Judges(NamedTuple):
    """Tests of one stage: files, and what is left out of them; how long they take, in seconds."""

    files: list[str]
    without: list[str]
    seconds: float
    tests: int


class Measured(NamedTuple):
    """What a run of a file without a fault told.

    Attributes:
        seconds: of processors, by test that passed.
        calls: functions by test; of "" those that run before tests, such as in fixtures.
        start: seconds before the first test.
    """

    seconds: dict[str, float]
    calls: dict[str, set[Function]]
    start: float


@cache
def files_of(tree: Tree, path: str) -> tuple[list[str], list[str]]:
    """The files of tests of a module: its own, and others that use it; nearest first."""
    module, system = tree.root / path, system_folders(tree)
    room = Path(path).parent.relative_to("tb_pastnet")
    names = (f"test_{module.stem}", f"test_command_{module.stem}")

    def is_own(test: Path) -> bool:
        return test == module or test.stem.startswith(names)

    def distance(test: Path) -> tuple[bool, int]:
        mirrored = test == module or test.parent == tree.root / "tests/unit" / room
        return not mirrored, len(tree.reached(test))

    reaching = [
        test
        for test in tree.tests
        if module in tree.reached(test) and NODE not in tree.outside(test)
        if is_own(test) or test.parent not in system
    ]
    reaching.sort(key=distance)
    own = [test for test in reaching if is_own(test)]
    if any(not distance(test)[0] for test in own if test != module):
        own = [test for test in own if not distance(test)[0]]  # not namesakes of another room
    own = own or reaching[:NEAREST]
    using = [test for test in reaching if test not in own and tree.uses(test, module)][:USING]
    alike = [test for test in reaching if test.parent == tree.root / CONFORMANCE]
    return _below(tree, own), _below(tree, dict.fromkeys([*using, *alike]))


def _below(tree: Tree, files: Iterable[Path]) -> list[str]:
    return [path.relative_to(tree.root).as_posix() for path in files]


def function_at(source: str, line: int) -> int | None:
    """The first line of the innermost function that carries out a line; None outside of all."""
    innermost = None
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            first, last = node.body[0].lineno, node.end_lineno or node.body[-1].lineno
            if first <= line <= last and (innermost is None or first > innermost[0]):
                marks = (mark.lineno for mark in node.decorator_list)
                innermost = first, min([node.lineno, *marks])
    return innermost and innermost[1]


class Bench:
    """Knows what tests call; a file is run without a fault when it is first asked for.

    Attributes:
        unusable: files of which no test passes.
    """

    def __init__(self, tree: Tree) -> None:
        self.unusable: list[str] = []
        self._tree = tree
        self._measured: dict[str, Measured] = {}
        self._locks: dict[str, Lock] = {}

    def stages(self, path: str, source: str, line: int, forks: Forks) -> Iterator[Judges]:
        """The tests of a fault, one stage after the other.

        Args:
            path: of the module.
            source: of the module, without the fault.
            line: of the fault.
            forks: what runs files that aren't known yet.
        """
        own, using = files_of(self._tree, path)
        first = function_at(source, line)
        done: set[str] = set()
        for files, all_of_them in ((own, False), (using, False), (own, True)):
            for file in files:
                self._measure(file, forks)
            function = None if all_of_them or first is None else (path, first)
            judges = self._judges(files, function, done)
            done |= {test for file in judges.files for test in self._measured[file].seconds}
            done -= {*judges.without}
            if judges.tests:
                yield judges

    def _judges(self, files: list[str], function: Function | None, done: set[str]) -> Judges:
        """Those that call a function, all if it is None, but none that is done."""
        seconds, chosen = 0.0, dict[str, set[str]]()
        for file in files:
            known = self._measured[file]
            shared = function is None or function in known.calls[""]
            calling = {test for test in known.seconds if shared or function in known.calls[test]}
            for test in sorted(calling - done, key=known.seconds.__getitem__):
                if seconds + known.seconds[test] <= BUDGET:
                    seconds += known.seconds[test]
                    chosen.setdefault(file, set()).add(test)
        without = [
            test
            for file, tests in chosen.items()
            for test in {*self._measured[file].calls} - {"", *tests}
        ]
        seconds += sum(self._measured[file].start for file in chosen)
        return Judges([*chosen], without, seconds, sum(map(len, chosen.values())))

    def _measure(self, file: str, forks: Forks) -> None:
        with self._locks.setdefault(file, Lock()):
            if file in self._measured:
                return
            with tempfile.NamedTemporaryFile("r", suffix=".json") as told:
                outcome = forks.run([file], [], MAPPED, Path(told.name))
                tests = json.loads(told.read() or '{"": [0, []]}')
            if len(tests) == 1:
                self.unusable.append(file)
            calls = {
                test: {(path, line) for path, line in found} for test, (_, found) in tests.items()
            }
            passed = {test: taken for test, (taken, _) in tests.items() if test and taken >= 0}
            start = max(0.0, outcome.seconds - math.fsum(passed.values()))
            self._measured[file] = Measured(passed, calls, start)
