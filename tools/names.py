"""Names that name nothing, and names of files and classes that mean several things.

`python -m tools.names` lists where they are.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

from tools.steps import ROOT, say

_LIST = """
    one ones found told known at before after some made other others these those there what which
    whole both either now then here such mine
"""
WORDS = frozenset(_LIST.split())
"""What no value, argument or function is called: say what it is."""


@dataclass(frozen=True)
class Counts:
    """How many there are.

    Attributes:
        empty: names that name nothing, of a thousand names that code binds.
        files: names of modules that several have.
        classes: names of classes that several have.
        untyped: parameters of type Any, of a thousand parameters.
    """

    empty: int
    files: int
    classes: int
    untyped: int


MOST = Counts(empty=10, files=8, classes=4, untyped=150)
"""What there may be."""

Places = dict[str, list[str]]


@dataclass
class Survey:
    """The places of a package's names, "file:line" by name."""

    bound: int = 0
    parameters: int = 0
    empty: Places = field(default_factory=lambda: defaultdict(list))
    files: Places = field(default_factory=lambda: defaultdict(list))
    classes: Places = field(default_factory=lambda: defaultdict(list))
    untyped: Places = field(default_factory=lambda: defaultdict(list))

    def read(self, source: str, file: str) -> None:
        """Adds a module."""
        name = Path(file).name
        if name not in ("__init__.py", "__main__.py"):
            self.files[name].append(file)
        for node in ast.walk(ast.parse(source)):
            place = f"{file}:{getattr(node, 'lineno', 0)}"
            if isinstance(node, ast.ClassDef):
                self.classes[node.name].append(place)
            if isinstance(node, ast.arg):
                self.parameters += node.arg not in ("self", "cls")
                if isinstance(node.annotation, ast.Name) and node.annotation.id == "Any":
                    self.untyped[node.arg].append(place)
            for bound in _bound(node):
                self.bound += 1
                if bound.strip("_") in WORDS:
                    self.empty[bound].append(place)

    @property
    def counts(self) -> Counts:
        """How many of each."""
        return Counts(
            _thousandths(self.empty, self.bound),
            len(_several(self.files)),
            len(_several(self.classes)),
            _thousandths(self.untyped, self.parameters),
        )


def _bound(node: ast.AST) -> Iterator[str]:
    """The names that a piece of code binds."""
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
        yield node.id
    elif isinstance(node, ast.arg):
        yield node.arg
    elif isinstance(node, (ast.FunctionDef, ast.ClassDef)):
        yield node.name


def _thousandths(places: Mapping[str, list[str]], total: int) -> int:
    """Rounded up: a share of 10 is at most a hundredth."""
    return -(-1000 * sum(map(len, places.values())) // max(total, 1))


def _several(places: Mapping[str, list[str]]) -> Places:
    """Names with several places."""
    return {name: where for name, where in places.items() if len(where) > 1}


def survey(root: Path = ROOT) -> Survey:
    """Reads all modules of the package."""
    result = Survey()
    for path in sorted((root / "tb_pastnet").rglob("*.py")):
        result.read(path.read_text("utf-8"), path.relative_to(root).as_posix())
    return result


def check(root: Path = ROOT, most: Counts = MOST) -> tuple[int, str]:
    """Compares what there is with what there may be.

    Returns:
        0 and no text where it is no more, else 1 and what is too much.
    """
    counts = asdict(survey(root).counts)
    wrong = [
        f"Could not accept the names: expected {kind} <= {limit}, got {counts[kind]}."
        for kind, limit in asdict(most).items()
        if counts[kind] > limit
    ]
    if wrong:
        wrong.append("Call `python -m tools.names` to see where they stand; say what each is.")
    return (1 if wrong else 0), "\n".join(wrong)


def main() -> None:
    """Prints where they are."""
    result = survey()
    tables = (result.empty, _several(result.files), _several(result.classes))
    for places in tables:
        for name, where in sorted(places.items(), key=lambda entry: -len(entry[1])):
            say(f"{name}: {len(where)} ({', '.join(where[:6])}{', …' if len(where) > 6 else ''})")
        say("")
    say(str(result.counts))


if __name__ == "__main__":
    main()
