"""The suite of Keras's other backends: one is chosen once in a process."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conformance.rooms import BACKENDS
from tests.sampled import sampled
from tools.steps import ROOT


@pytest.mark.parametrize("room", sampled(BACKENDS, every=2))
def test_a_room_of_another_backend_passes_the_suite(room: str) -> None:
    pytest.importorskip(BACKENDS[room], reason=f"needs {BACKENDS[room]}")
    command = [sys.executable, "-m", "pytest", "-q", "--no-header", "tests/conformance"]
    done = subprocess.run(
        [*command, "-k", "Keras", f"--ignore={Path(__file__).relative_to(ROOT)}"],
        cwd=ROOT,
        env={**os.environ, "KERAS_BACKEND": BACKENDS[room]},
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert done.returncode == 0, done.stdout
    passed = re.search(r"^(\d+) passed, \d+ deselected", done.stdout, re.M)
    assert passed, done.stdout
    assert int(passed[1]) > 40
