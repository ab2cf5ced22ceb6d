"""Mutants: small faults put into the code, one at a time, each of which a test should notice.

Cosmic Ray lists possible changes; a mutant lives in a copy of the repository, where the tests run
that `mutant_tests` chooses. Mutants that none detects are listed, unless tests/mutants.txt gives
the reason why none can.
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
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from importlib.util import cache_from_source
from pathlib import Path
from queue import SimpleQueue
from typing import Any, NamedTuple

from tools.forks import PASSED, Forks
from tools.mutant_tests import Bench
from tools.reach import Tree
from tools.steps import ROOT, demand, say

PACKAGE = ROOT / "tb_pastnet"
JUDGED = ROOT / "tests" / "mutants.txt"
COUNT = 300
SLOWER, STARTING = 3, 30
"""How much longer than without a fault tests may take, and seconds of processors beside it: those
that take more are noticed as tests that fail are."""


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
    def place(self) -> str:
        """The module and the line."""
        return f"{self.path}:{self.line}"

    @property
    def room(self) -> str:
        """The folder of the module, below the package."""
        return Path(self.path).parent.relative_to(PACKAGE.name).as_posix()

    @property
    def key(self) -> str:
        """Its name, independent of the lines above it."""
        return f"{self.path} | {self.was} | {self.becomes}"


def sample(count: int, seed: int, rooms: Sequence[str] = ()) -> list[Mutant]:
    """Draws mutants: each place is as likely as another, and each change of a place.

    What changes nothing but annotations is none.

    Args:
        count: how many.
        seed: of the draw.
        rooms: folders of the package, with those below; without any the whole package.
    """
    draw = random.Random(seed)  # noqa: S311 - not for secrets
    folders = [PACKAGE / room for room in rooms or ("",)]
    modules = sorted({path for folder in folders for path in folder.rglob("*.py")})
    with ProcessPoolExecutor() as pool:
        sources = [path.read_text("utf-8") for path in modules]
        found = pool.map(places_of, sources, chunksize=4)
        places = [(path, at) for path, each in zip(modules, found, strict=True) for at in each]
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


class Judged(NamedTuple):
    """A mutant and what tests made of it.

    Attributes:
        mutant: the fault.
        died: whether a test noticed it.
        tests: how many it was shown to.
    """

    mutant: Mutant
    died: bool
    tests: int


def judge(mutant: Mutant, bench: Bench, forks: Forks) -> Judged:
    """Runs the tests of a mutant, in a copy of the repository with the mutant in it."""
    place, source, count = forks.copy / mutant.path, (ROOT / mutant.path).read_text("utf-8"), 0
    for stage in bench.stages(mutant.path, source, mutant.line, forks):
        put(place, mutant.source)
        limit = SLOWER * stage.seconds + STARTING
        code = forks.run(stage.files, stage.without, limit, None).code
        put(place, source)
        count += stage.tests
        if code not in PASSED:
            return Judged(mutant, True, count)
    return Judged(mutant, False, count)


def put(place: Path, source: str) -> None:
    """Writes a module and forgets its bytecode, which could pass for that of the same second."""
    place.write_text(source, "utf-8")
    Path(cache_from_source(place)).unlink(missing_ok=True)


def copy_repository(folder: Path) -> Path:
    """A copy of all files that git knows."""
    files = demand("list the files", ["git", "-C", ROOT, "ls-files", "-z"]).split("\0")[:-1]
    for name in files:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, folder / name)
    return folder


def run(mutants: Sequence[Mutant]) -> list[Judged]:
    """What becomes of each: a process of its own on each core runs their tests."""
    bench, cores, idle = Bench(Tree()), os.cpu_count() or 1, SimpleQueue[Forks]()
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(cores) as pool:
        for number in range(cores):
            idle.put(Forks(copy_repository(Path(folder, str(number)))))

        def judged_by_next(mutant: Mutant) -> Judged:
            forks = idle.get()
            try:
                found = judge(mutant, bench, forks)
            finally:
                idle.put(forks)
            say(f"{'died ' if found.died else 'lived'} {mutant.place}  {mutant.becomes}")
            return found

        found = [*pool.map(judged_by_next, mutants)]
        for _ in range(cores):
            idle.get().close()
    for file in bench.unusable:
        say(f"Left out: {file}, of which no test passes without a fault.")
    return found


def table(found: Sequence[Judged]) -> str:
    """A line for each room: how many were drawn, died and lived; below it those that lived."""
    rooms: dict[str, list[Judged]] = {}
    for one in found:
        rooms.setdefault(one.mutant.room, []).append(one)
    lines = [f"{'room':16} {'drawn':>5} {'died':>5} {'lived':>5}"]
    for room, members in [*sorted(rooms.items()), ("all", [*found])]:
        died = sum(one.died for one in members)
        lines.append(f"{room:16} {len(members):5} {died:5} {len(members) - died:5}")
        if room != "all":
            for one in members:
                if not one.died:
                    lines.append(f"    {one.mutant.place}, shown to {one.tests} tests")
                    lines.append(f"        {one.mutant.key}")
    return "\n".join(lines)


def main(count: int, seed: int, *rooms: str) -> int:
    """Runs a sample and prints what became of it; 1 where more than 5 % live."""
    excused = judged()
    mutants = [mutant for mutant in sample(count, seed, rooms) if mutant.key not in excused]
    found = run(mutants)
    say(table(found))
    died = sum(one.died for one in found)
    say(f"seed {seed}: {died} of {len(found)} mutants died, {died / len(found):.1%}")
    return int(died < 0.95 * len(found))


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), int(sys.argv[2]), *sys.argv[3:]))
