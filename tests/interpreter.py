"""A process of Python for many programs: TensorFlow takes long to import."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

from tools.steps import ROOT

LOOP = """
import contextlib, io, json, sys, traceback
import keras
for line in sys.stdin:
    program, given = json.loads(line)
    keras.utils.clear_session()
    said, error = io.StringIO(), ""
    try:
        with contextlib.redirect_stdout(said):
            exec(program, {"__name__": "__main__", **shared, **given})
    except BaseException:
        error = traceback.format_exc()
    print(json.dumps([said.getvalue(), error]), flush=True)
"""


class Interpreter:
    """Runs programs one after the other, each with names and a session of Keras of its own.

    It starts with the first. What `begin` puts into `shared` all of them have.
    """

    def __init__(self, *flags: str, begin: str = "") -> None:
        # A crash shows where.
        flags = ("-X", "faulthandler", *flags)
        self._command = [sys.executable, *flags, "-c", f"shared = {{}}\n{begin}\n{LOOP}"]
        self._process: subprocess.Popen[str] | None = None

    def run(self, program: str, **given: Any) -> str:
        """What a program prints; it fails if the program does."""
        if self._process is None:
            self._process = subprocess.Popen(
                self._command,
                env=os.environ | {"PYTHONPATH": str(ROOT)},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
        to, back = self._process.stdin, self._process.stdout
        assert to is not None
        assert back is not None
        to.write(json.dumps([program, given]) + "\n")
        to.flush()
        line = back.readline()
        assert line, f"the process ended with {self._process.wait()}"
        said, error = json.loads(line)
        assert not error, error
        return str(said)

    def kill(self) -> None:
        """Ends it wherever it is."""
        if self._process is not None:
            self._process.kill()
            self._process.communicate()

    def close(self) -> None:
        if self._process is not None:
            self._process.communicate()
