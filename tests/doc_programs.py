"""The programs in the documentation. Tests name a page by its whole path: that tells who reads it."""

from __future__ import annotations

import re

from tools.steps import ROOT


def programs_of(page: str) -> list[str]:
    """The blocks of Python in a page that run as they stand."""
    return re.findall(r"^```python\n(.*?)^```$", (ROOT / page).read_text("utf-8"), re.M | re.S)


def program_of(page: str) -> str:
    """All of them as one program."""
    return "\n".join(programs_of(page))
