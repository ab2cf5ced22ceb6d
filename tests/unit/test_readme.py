from __future__ import annotations

import re

import pytest

from tests.interpreter import STRICT, Interpreter
from tools.steps import ROOT

README = (ROOT / "README.md").read_text("utf-8")
FENCED = re.compile(r"^```python\n(.*?)^```$", re.M | re.S)


@pytest.mark.parametrize("block", [0, 1])
def test_the_ten_lines_are_ten(block):
    lines = FENCED.findall(README)[block].splitlines()
    assert len([line for line in lines if line.strip()]) == 10


def test_its_python_runs_and_records(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    python = Interpreter(begin=STRICT)
    assert "\n0.5 []\n" in python.run("\n".join(FENCED.findall(README)))
    python.close()
    written = sorted(path.name for path in (tmp_path / "runs").iterdir())
    assert written == ["first", "graph", "masked", "own_loop", "summaries"]
    for name in written:
        assert any((tmp_path / "runs" / name).rglob("events.out.tfevents.*"))


def test_every_file_that_it_links_to_is_there():
    links = re.findall(r"\]\(([^)#:]+)\)|(?:src|srcset)=\"([^\"]+)\"", README)
    missing = [link for pair in links for link in pair if link and not (ROOT / link).is_file()]
    assert missing == []


def test_it_names_every_command():
    for command in ("demo", "test", "lint", "bundle", "prove", "matrix", "bench"):
        assert f"| `python3 dev.py {command}` |" in README
