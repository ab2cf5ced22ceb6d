from __future__ import annotations

import re

import pytest

from tests.interpreter import STRICT, Interpreter
from tools import commands
from tools.steps import ROOT

README = (ROOT / "README.md").read_text("utf-8")
FENCED = re.compile(r"^```python\n(.*?)^```$", re.M | re.S)
LINK = re.compile(r"\]\(([^)#]+)|(?:src|srcset)=\"([^\"]+)\"")


def test_its_prose_is_short():
    left = README
    for part in (r"```.*?```", r"<picture>.*?</picture>", r"^\|.*?$", r"\]\([^)]*\)"):
        left = re.sub(part, "", left, flags=re.M | re.S if part[0] in "`<" else re.M)
    assert len(re.findall(r"[\w'’-]+", left)) <= 350


def test_its_ten_lines_are_ten():
    programs = FENCED.findall(README)
    assert [len([line for line in each.splitlines() if line.strip()]) for each in programs] == [
        10
    ] * 2
    page = (ROOT / "docs" / "start" / "first_picture.md").read_text("utf-8")  # which a test runs
    assert FENCED.findall(page)[0] == programs[1]


def test_its_ten_lines_of_torch_run(tmp_path):
    pytest.importorskip("torch", reason="torch isn't installed: an extra of its own")
    process = Interpreter(begin=STRICT)
    process.run("import os; os.chdir(folder)", folder=str(tmp_path))
    read = "print(pastnet.read('runs').runs['torch'].layers['0'].states()[-1][0])"
    ended = "import tb_pastnet.record.sink as sink\nfor close in [*sink.AT_EXIT]: close()\n"
    said = process.run(f"{FENCED.findall(README)[0]}{ended}{read}")
    process.close()
    assert said.endswith("frozen\n")


def test_every_file_that_it_links_to_is_in_the_tree():
    links = [link or source for link, source in LINK.findall(README)]
    assert len(links) > 20
    assert [link for link in links if not (ROOT / link).is_file()] == []


def test_each_command_of_dev_py_is_explained_to_contributors():
    text = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    for line in commands.TEXT.splitlines():
        assert line[0] == " " or f"| `python3 dev.py {line.split()[0]}` |" in text
