"""The pages of the documentation, and the programs in them."""

from __future__ import annotations

import re

from tools.steps import ROOT

PAGES = {
    path.relative_to(ROOT / "docs").as_posix(): path.read_text("utf-8")
    for path in sorted((ROOT / "docs").rglob("*.md"))
}
"""Their texts by their paths below docs."""


def programs_of(name: str) -> list[str]:
    """The blocks of Python in a page that run as they stand."""
    return re.findall(r"^```python\n(.*?)^```$", PAGES[name], re.M | re.S)


def program_of(name: str) -> str:
    """All of them as one program."""
    return "\n".join(programs_of(name))
