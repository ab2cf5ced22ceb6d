"""What the documentation links to is there, and shown as it is meant."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from tests.doc_programs import programs_of
from tools.steps import ROOT

PAGES = {
    path.relative_to(ROOT).as_posix(): path.read_text("utf-8")
    for path in sorted((ROOT / "docs").rglob("*.md"))
}


@pytest.mark.parametrize("path", sorted((ROOT / "docs").rglob("*.md")), ids=lambda path: path.name)
def test_every_file_that_it_links_to_is_there(path):
    links = re.findall(r"\]\(([^)#:]+)\)|(?:src|srcset)=\"([^\"]+)\"", path.read_text("utf-8"))
    missing = [
        link for pair in links for link in pair if link and not (path.parent / link).is_file()
    ]
    assert missing == []


LIKE_AN_ITEM = re.compile(r"^ *(?:\w+(?: \([^)]*\))?: )?(\d+|[A-Z])\. ")


def items_by_accident(text):
    """Lines that begin like an item of a list, and neither begin nor continue one."""
    blank, last = True, 0
    for line in text.splitlines():
        if match := LIKE_AN_ITEM.match(line):
            number = int(match[1]) if match[1].isdigit() else 0
            if ": " in match[0] or not number or not (blank or number == last + 1):
                yield line
            last = number
        blank = not line.strip()


def test_an_item_by_accident_is_found():
    text = "1. One\n2. Two\n\nThe code is\n1. It is\nof every\nM. It\n    tau: 1. Soft"
    assert list(items_by_accident(text)) == ["1. It is", "M. It", "    tau: 1. Soft"]


def test_no_line_of_prose_is_an_item_of_a_list_by_accident():
    texts = PAGES | {"README.md": (ROOT / "README.md").read_text("utf-8")}
    for path in (ROOT / "tb_pastnet").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
                texts[f"{path}:{node.lineno}"] = str(node.value.value)
    lines = {name: list(items_by_accident(text)) for name, text in texts.items()}
    assert {name: accidents for name, accidents in lines.items() if accidents} == {}


def test_every_heading_that_it_links_to_is_there():
    for path in (ROOT / "docs").rglob("*.md"):
        for file, mark in re.findall(r"\]\(([^)#:]*)#([^)]+)\)", path.read_text("utf-8")):
            titles = re.findall(
                r"^#+ (.+)$", (path.parent / (file or path.name)).read_text("utf-8"), re.M
            )
            marks = [re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles]
            assert mark in marks, f"{path.name}: {file}#{mark}"


def test_the_python_of_every_page_runs_in_a_test():
    others = {*(ROOT / "tests").rglob("test_*.py")} - {Path(__file__)}
    tests = "".join(path.read_text("utf-8") for path in others)
    assert [page for page in PAGES if programs_of(page) and f'"{page}"' not in tests] == []


def test_what_cannot_run_is_little():
    fences = [page for page, text in PAGES.items() for _ in re.findall(r"^```py$", text, re.M)]
    assert fences == [
        "docs/how_to/torch.md",  # a program that torchrun starts
        "docs/migrate/graph_editor.md",  # TensorFlow 1
        "docs/migrate/histograms.md",  # lines out of a program
        "docs/migrate/tfmot.md",  # Keras 2
    ]


def test_every_page_is_listed_in_the_index_of_its_section():
    for name in PAGES.keys() - {"docs/index.md"}:
        folder, _, page = name.rpartition("/")
        index, link = f"{folder}/index.md", page
        if page == "index.md":
            index, link = "docs/index.md", name.removeprefix("docs/")
        if name == "docs/benchmarks/index.md":  # apart from what users read
            index, link = "docs/contributing/index.md", "../benchmarks/index.md"
        assert f"]({link})" in PAGES[index], name


def test_each_picture_is_shown_somewhere_and_small():
    texts = [
        path.read_text("utf-8") for path in (*(ROOT / "docs").rglob("*.md"), ROOT / "README.md")
    ]
    pictures = sorted((ROOT / "docs" / "images").glob("*.png"))
    assert pictures
    for picture in pictures:
        assert any(f"images/{picture.name}" in text for text in texts), picture.name
        assert picture.stat().st_size <= 150_000, picture.name


@pytest.mark.parametrize("tab", ["theirs", "ours"])
def test_each_tab_is_asked_all_of_the_twenty_questions(tab):
    page = ROOT / "docs" / "benchmarks" / "histograms.md"
    guide = page.read_text("utf-8").split("## The questions")[1]
    asked = (ROOT / "benchmarks" / "_histograms" / f"{tab}.mjs").read_text("utf-8")
    numbers = re.findall(r"^(\d+)\. ", guide, re.M)
    assert numbers == [str(number) for number in range(1, 21)]
    assert re.findall(r"^  (?:async )?(\d+)[(:]", asked, re.M) == numbers


def test_the_page_has_what_the_questions_are_read_from():
    scripts = [
        ROOT / "benchmarks" / "_histograms" / name for name in ("ours.mjs", "everything.mjs")
    ]
    page = "".join(path.read_text("utf-8") for path in (ROOT / "frontend" / "src").rglob("*.ts*"))
    selectors = set()
    for script in scripts:
        for text in re.findall(
            r"[\"`](\.[a-z][^\"`]*|main [^\"`]*|dialog[^\"`]*)[\"`]", script.read_text("utf-8")
        ):
            selectors |= set(re.findall(r"\.([a-z][a-z-]+)", text))
    assert len(selectors) > 10
    assert {name for name in selectors if not re.search(rf"\b{name}\b", page)} <= {"mjs"}
