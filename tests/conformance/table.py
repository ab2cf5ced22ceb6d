"""The table of docs/reference/what_works_where.md: `python -m tests.conformance.table` writes it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from tests.conformance.exceptions import EXCEPTIONS
from tests.conformance.rooms import ADAPTORS

HERE = Path(__file__).parent
PAGE = HERE.parents[1] / "docs" / "reference" / "what_works_where.md"
BEGIN, END = "<!-- Made of the tests: python -m tests.conformance.table -->\n", "<!-- end -->\n"
PARTS = (
    "records",
    "rates",
    "lineages",
    "thinned",
    "endings",
    "masks",
    "enforced",
    "fingerprints",
    "verified",
    "expected",
    "follows",
    "training",
)


def behaviours(part: str) -> Iterator[str]:
    """The tests of a file that are asked of each room, by their names."""
    tree = ast.parse((HERE / f"test_{part}.py").read_text("utf-8"))
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
            yield node.name.removeprefix("test_")


BEHAVIOURS = {part: [*behaviours(part)] for part in PARTS}


def table() -> str:
    reasons = list(dict.fromkeys(EXCEPTIONS.values()))
    rows = [("", *ADAPTORS), ("---",) * (len(ADAPTORS) + 1)]
    for part, names in BEHAVIOURS.items():
        rows.append((f"**{part.capitalize()}**", *[""] * len(ADAPTORS)))
        for name in names:
            missing = [EXCEPTIONS.get((name, room)) for room in ADAPTORS]
            cells = ["✓" if why is None else f"no ({reasons.index(why) + 1})" for why in missing]
            rows.append((name.replace("_", " ").capitalize().replace("numpy", "NumPy"), *cells))
    lines = ["| " + " | ".join(row).replace("  ", " ") + " |" for row in rows]
    notes = [f"{number}. {reason}" for number, reason in enumerate(reasons, 1)]
    return "\n".join([*lines, "", "Why not:", "", *notes, ""])


def page() -> str:
    """The page with its table."""
    text = PAGE.read_text("utf-8")
    before, _, rest = text.partition(BEGIN)
    return f"{before}{BEGIN}\n{table()}\n{END}{rest.partition(END)[2]}"


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
