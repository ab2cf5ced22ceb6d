"""Kinds of findings and causes of violations, wherever they are listed: none is missing or left over."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tb_pastnet.core import standing
from tb_pastnet.core.finding_kinds import CHANGE, FACT, HARM, KINDS
from tb_pastnet.core.violation import CAUSES

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "frontend" / "src"


def section(path: str, begin: str, end: str) -> str:
    """The text of a file from its first `begin` up to the next `end`."""
    _, _, rest = (ROOT / path).read_text("utf-8").partition(begin)
    assert rest, f"{path} has no {begin!r}"
    return rest.partition(end)[0]


@pytest.mark.parametrize(
    ("path", "begin", "end"),
    [
        ("tb_pastnet/serve/http_api.md", "## `/findings?", "Sample:"),
        ("docs/tab/tab.md", "## Findings", "*Download*"),
    ],
)
def test_tables_of_kinds_are_those_of_the_code(path: str, begin: str, end: str) -> None:
    rows = re.findall(r"^\| (`\w+`) \| (\w+) \| (.+) \|$", section(path, begin, end), re.M)
    assert rows == [(f"`{name}`", *kind) for name, kind in KINDS.items()]


def test_the_route_answers_with_these_kinds() -> None:
    document = json.loads((ROOT / "tb_pastnet/serve/openapi.json").read_text("utf-8"))
    findings = document["components"]["schemas"]["Findings"]["properties"]["findings"]
    properties = findings["items"]["properties"]
    assert properties["kind"]["enum"] == list(KINDS)
    severities = [HARM, CHANGE, FACT]
    assert properties["severity"]["enum"] == severities
    assert {kind.severity for kind in KINDS.values()} == set(severities)
    types = (PAGE / "server" / "types.ts").read_text("utf-8")
    assert f"severity: {' | '.join(map(json.dumps, severities))};" in types


def test_the_page_has_styles_of_no_other_kind() -> None:
    styled = re.findall(r"\.finding\.(\w+)", (PAGE / "style" / "findings.css").read_text("utf-8"))
    assert set(styled) - {"on"} <= {*KINDS, HARM, CHANGE, FACT}


def test_severities_fall() -> None:
    order = [(HARM, CHANGE, FACT).index(kind.severity) for kind in KINDS.values()]
    assert order == sorted(order)


@pytest.mark.parametrize(
    ("path", "begin", "end"),
    [
        ("tb_pastnet/serve/http_api.md", "`cause` is one of the following", "\nIf no audit"),
        ("docs/how_to/masks.md", "| cause | meaning |", "\n\n"),
        ("docs/reference/record_format.md", "| cause | ", "|\n"),
    ],
)
def test_lists_of_causes_are_complete(path: str, begin: str, end: str) -> None:
    lines = [
        re.split(r" \| |: ", line.removeprefix("- ").removeprefix("| "))[0]
        for line in section(path, begin, end).splitlines()
    ]
    assert {name for line in lines for name in re.findall(r"`([a-z_]+)`", line)} == CAUSES.keys()


@pytest.mark.parametrize(
    ("path", "begin", "end"),
    [
        ("tb_pastnet/serve/http_api.md", "if it isn't known.", "\n`runs`"),
        ("docs/tab/tab.md", "The first that applies:", "\nPyTorch"),
    ],
)
def test_tables_of_causes_of_standing_still_are_those_of_the_code(
    path: str, begin: str, end: str
) -> None:
    rows = re.findall(r"^\| `(\w+)` \| (.+) \| (yes|no) \|$", section(path, begin, end), re.M)
    words = {True: "yes", False: "no"}
    assert rows == [(name, c.text, words[c.proven]) for name, c in standing.CAUSES.items()]


def test_the_record_format_lists_causes_of_standing_still() -> None:
    text = section("docs/reference/record_format.md", "| cause | `no_optimizer`", "; empty")
    assert ["no_optimizer", *re.findall(r"`(\w+)`", text)] == list(standing.CAUSES)


def test_the_page_words_causes_as_the_package_does() -> None:
    text = section("frontend/src/data/violations.ts", "CAUSES: Record<string, string> = {", "};")
    assert dict(re.findall(r'(\w+): "([^"]+)"', text)) == dict(CAUSES)
