"""Trainings one after the other, each in a process forked from one that has imported Keras."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]


class Trainings:
    """A program such as `tests.fault.training`, that takes an order a line and answers in lines."""

    def __init__(self, program: str, errors: Path) -> None:
        self.errors = errors
        self._stderr = errors.open("wb")
        self._process = subprocess.Popen(
            [sys.executable, "-m", program],
            cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._stderr, text=True,
            env=os.environ | {"PYTHONPATH": str(ROOT)},
        )  # fmt: skip

    def order(self, *order: Any) -> int:
        """Has a training begun; the id of its process."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()
        pid: int = self.answer()["pid"]
        return pid

    def answer(self) -> Any:
        """The next line, which is there."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, self.errors.read_text()[-3000:]
        return json.loads(line)

    def close(self) -> None:
        """Ends the program."""
        self._process.communicate()
        self._stderr.close()
