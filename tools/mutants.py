"""Mutants: small faults put into the code, one at a time, each of which a test should notice.

Cosmic Ray lists possible changes; a mutant lives in a copy of the repository, where the fast tests
that reach its module run, those of the module first. Mutants that none detects are listed, unless
tests/mutants.txt gives the reason why none can.
"""

from __future__ import annotations

import ast
import itertools
import os
import random
import shutil
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from importlib.util import cache_from_source
from pathlib import Path
from queue import SimpleQueue
from typing import Any, NamedTuple

from tools.reach import BLOCKED, Tree
from tools.selection import fast
from tools.steps import ROOT, demand, quiet, say

ROOMS = ("core", "format", "reader", "record/audit")
JUDGED = ROOT / "tests" / "mutants.txt"
COUNT = 300
OWN, OTHERS = 120, 900
"""Seconds after which the tests of its module, or all, hang: the mutant is noticed."""


class Mutant(NamedTuple):
    """One fault.

    Attributes:
        path: the module, below the root.
        source: the module with the fault in it.
        line: the line of the fault, from 1 on.
        was: the line as it is.
        becomes: the line with the fault, or its replacement.
    """

    path: str
    source: str
    line: int
    was: str
    becomes: str

    @property
    def key(self) -> str:
        """Its name, independent of the lines above it."""
        return f"{self.path} | {self.was} | {self.becomes}"


def sample(count: int, seed: int) -> list[Mutant]:
    """Draws mutants of the rooms: each place as likely as another, and each change of a place.

    What changes nothing but annotations is none.
    """
    draw = random.Random(seed)  # noqa: S311 - not for secrets
    modules = sorted(path for room in ROOMS for path in (ROOT / "tb_pastnet" / room).glob("*.py"))
    places = [(path, changes) for path in modules for changes in places_of(path.read_text("utf-8"))]
    draw.shuffle(places)
    mutants = (mutate(path, *draw.choice(changes)) for path, changes in places)
    return list(itertools.islice((mutant for mutant in mutants if mutant), count))


def places_of(source: str) -> list[list[tuple[str, int]]]:
    """Of each place of a module all that it can be changed by: an operator, which of its places."""
    from cosmic_ray.ast import ast_nodes, get_ast
    from cosmic_ray.plugins import get_operator, operator_names

    places: dict[Any, list[tuple[str, int]]] = {}
    nodes = list(ast_nodes(get_ast(source)))
    for name in operator_names():
        operator = get_operator(name)
        if operator.arguments():
            continue
        positions = (where for node in nodes for where in operator().mutation_positions(node))
        for number, where in enumerate(positions):
            places.setdefault(where, []).append((name, number))
    return list(places.values())


def mutate(path: Path, name: str, number: int) -> Mutant | None:
    """Makes a mutant; None where Python sees no other program in it."""
    from cosmic_ray.mutating import mutate_code
    from cosmic_ray.plugins import get_operator

    source = path.read_text("utf-8")
    changed = mutate_code(source, get_operator(name)(), number)
    if changed is None or meaning(changed) in {None, meaning(source)}:
        return None
    pairs = zip(source.splitlines(), changed.splitlines(), strict=False)
    line, was, becomes = next((i, *pair) for i, pair in enumerate(pairs, 1) if pair[0] != pair[1])
    below = path.relative_to(ROOT).as_posix()
    return Mutant(below, changed, line, was.strip(), becomes.strip())


def meaning(source: str) -> str | None:
    """A program without its annotations, which are unused; None if it isn't valid Python."""
    try:
        tree = ast.parse(source)
    except SyntaxError:
        return None
    for node in ast.walk(tree):
        for part in ("annotation", "returns"):
            if getattr(node, part, None):
                setattr(node, part, ast.Constant(None))
    return ast.dump(tree)


def judged() -> set[str]:
    """The keys of mutants that no test can detect; the line after each has the reason."""
    lines = JUDGED.read_text("utf-8").splitlines()
    return {line for line in lines if " | " in line and not line.startswith((" ", "#"))}


@cache
def tests_of(tree: Tree, path: str) -> tuple[list[str], list[str]]:
    """The fast tests that reach a module: the files named after it, and all, nearest first."""
    module, files = tree.root / path, (tree.root / name for name in fast(tree).files)
    reaching = [test for test in files if module in tree.reached(test)]
    reaching.sort(key=lambda test: len(tree.reached(test)))
    names = [test.relative_to(tree.root).as_posix() for test in reaching]
    own = [name for name in names if Path(name).stem.startswith(f"test_{module.stem}")]
    return own or names[:3], names


def lives(mutant: Mutant, copy: Path, tests: Sequence[str], most: int) -> bool:
    """Whether tests pass within some seconds in a copy of the repository with the mutant in it."""
    place = copy / mutant.path
    put(place, mutant.source)
    env = os.environ | BLOCKED | {"PYTHONPATH": str(copy)}
    pytest = [sys.executable, "-m", "pytest", "-x", "-q", "--no-header", "-p", "no:cacheprovider"]
    try:
        return not quiet(["timeout", str(most), *pytest, *tests, mutant.path], env, copy)[0]
    finally:
        put(place, (ROOT / mutant.path).read_text("utf-8"))


def put(place: Path, source: str) -> None:
    """Writes a module and forgets its bytecode, which could pass for that of the same second."""
    place.write_text(source, "utf-8")
    Path(cache_from_source(place)).unlink(missing_ok=True)


def copies(folder: str, count: int) -> SimpleQueue[Path]:
    """Copies of the repository: each core changes another one."""
    free = SimpleQueue[Path]()
    files = demand("list the files", ["git", "-C", ROOT, "ls-files", "-z"]).split("\0")[:-1]
    for number in range(count):
        copy = Path(folder, str(number))
        for name in files:
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, copy / name)
        free.put(copy)
    return free


def run(mutants: Sequence[Mutant]) -> list[Mutant]:
    """Those that live."""
    tree, cores = Tree(), os.cpu_count() or 1
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(cores) as pool:
        free = copies(folder, cores)

        def survives(mutant: Mutant) -> bool:
            copy = free.get()
            own, reaching = tests_of(tree, mutant.path)
            lived = lives(mutant, copy, own, OWN) and lives(mutant, copy, reaching, OTHERS)
            free.put(copy)
            say(f"{'lives' if lived else 'dies '}  {mutant.path}:{mutant.line}  {mutant.becomes}")
            return lived

        return [m for m, lived in zip(mutants, pool.map(survives, mutants), strict=True) if lived]


def main(count: int, seed: int) -> int:
    """Runs a sample and lists what lives; 1 where more than 5 % do."""
    excused = judged()
    mutants = [mutant for mutant in sample(count, seed) if mutant.key not in excused]
    survivors = run(mutants)
    for mutant in survivors:
        say(mutant.key)
    died = len(mutants) - len(survivors)
    say(f"seed {seed}: {died} of {len(mutants)} mutants died, {died / len(mutants):.1%}")
    return int(died < 0.95 * len(mutants))


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
