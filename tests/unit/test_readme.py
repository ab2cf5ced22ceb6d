from __future__ import annotations

import re
import subprocess
import sys

from tools.steps import ROOT

README = (ROOT / "README.md").read_text("utf-8")
FENCED = re.compile(r"^```python\n(.*?)^```$", re.M | re.S)


def test_the_ten_lines_are_ten():
    first = FENCED.findall(README)[0]
    assert len([line for line in first.splitlines() if line.strip()]) == 10


def test_its_python_runs_and_records(tmp_path):
    program = "\n".join(FENCED.findall(README))
    done = subprocess.run(
        [sys.executable, "-W", "error::DeprecationWarning:__main__", "-c", program],
        cwd=tmp_path,
        text=True,
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    written = sorted(path.name for path in (tmp_path / "runs").iterdir())
    assert written == ["first", "own_loop", "summaries"]
    for name in written:
        assert any((tmp_path / "runs" / name).rglob("events.out.tfevents.*"))


def test_every_file_that_it_links_to_is_there():
    links = re.findall(r"\]\(([^)#:]+)\)|(?:src|srcset)=\"([^\"]+)\"", README)
    missing = [link for pair in links for link in pair if link and not (ROOT / link).is_file()]
    assert missing == []


def test_it_names_every_command():
    for command in ("demo", "test", "lint", "bundle", "prove", "bench"):
        assert f"| `python3 dev.py {command}` |" in README
