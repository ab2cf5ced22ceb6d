"""The page's source has nothing that makes HTML or code of text."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "frontend" / "src"
SINKS = (
    r"innerHTML", r"outerHTML", r"insertAdjacentHTML", r"dangerouslySetInnerHTML", r"srcdoc",
    r"document\.write", r"DOMParser", r"createContextualFragment", r"setHTMLUnsafe",
    r"\beval\b", r"\bnew Function\b", r"javascript:",
)  # fmt: skip
SINK = re.compile("|".join(SINKS))


@pytest.mark.promise("hostile_names")
def test_the_page_has_no_sink():
    files = [file for kind in ("*.ts", "*.tsx") for file in SOURCE.rglob(kind)]
    assert len(files) > 50
    found = [
        f"{file.relative_to(SOURCE)}: {sink[0]}"
        for file in files
        for sink in SINK.finditer(file.read_text("utf-8"))
    ]
    assert found == []


@pytest.mark.parametrize("line", ["node.innerHTML = name;", "<b dangerouslySetInnerHTML={x} />"])
def test_a_sink_would_be_seen(line):
    assert SINK.search(line)
