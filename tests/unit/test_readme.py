from __future__ import annotations

import re

from tools import commands
from tools.steps import ROOT

README = (ROOT / "README.md").read_text("utf-8")
FENCED = re.compile(r"^```python\n(.*?)^```$", re.M | re.S)
BLOB = "https://github.com/tb-pastnet/tb_pastnet/blob/main/"
RAW = "https://raw.githubusercontent.com/tb-pastnet/tb_pastnet/main/"


def test_it_is_short():
    assert len(README.splitlines()) <= 130


def test_its_ten_lines_are_ten_and_those_of_the_first_picture():
    [program] = FENCED.findall(README)
    assert len([line for line in program.splitlines() if line.strip()]) == 10
    page = (ROOT / "docs" / "start" / "first_picture.md").read_text("utf-8")  # which a test runs
    assert FENCED.findall(page)[0] == program


def test_every_file_that_it_links_to_is_there():
    links = re.findall(r"\]\(([^)#]+)|(?:src|srcset)=\"([^\"]+)\"", README)
    files = [link or source for link, source in links]
    ours = [link.removeprefix(BLOB).removeprefix(RAW) for link in files]
    assert len(ours) > 20
    missing = [link for link in ours if not (ROOT / link).is_file()]
    assert missing == ["https://tb-pastnet.github.io/tb_pastnet"]  # the site itself


def test_each_command_of_dev_py_is_explained_to_contributors():
    text = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    for line in commands.TEXT.splitlines():
        assert line[0] == " " or f"| `python3 dev.py {line.split()[0]}` |" in text
