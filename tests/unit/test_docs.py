"""The programs in the documentation run as they stand."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest

from tools.steps import ROOT

FENCED = re.compile(r"^```python\n(.*?)^```$", re.M | re.S)
SAID = {
    "masks.md": "only/kernel, channel 2: 16 of 16 held weights moved at step 8",
    "lottery_tickets.md": "36.0%",
    "past_networks.md": "after sync: 0.0",
    "cloning.md": "out of sync: False\nin sync again: True",
}


@pytest.mark.parametrize("name", SAID)
def test_a_guides_python_runs(name, tmp_path):
    program = "\n".join(FENCED.findall((ROOT / "docs" / name).read_text("utf-8")))
    program = program.replace(", 20)", ", 2)")  # twenty epochs of a lottery show the same
    done = subprocess.run(
        [sys.executable, "-W", "error::DeprecationWarning:__main__", "-c", program],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        text=True,
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert SAID[name] in done.stdout


@pytest.mark.parametrize("path", sorted((ROOT / "docs").glob("*.md")), ids=lambda path: path.name)
def test_every_file_that_it_links_to_is_there(path):
    links = re.findall(r"\]\(([^)#:]+)\)", path.read_text("utf-8"))
    assert [link for link in links if not (path.parent / link).is_file()] == []
