"""Counts calls of Python functions: a timing would depend on the machine."""

from __future__ import annotations

import sys
from pathlib import Path

import tb_pastnet as pastnet

PACKAGE = str(Path(pastnet.__file__).parent)


class PackageCalls:
    """Calls of functions of the package, on this thread, within a `with`."""

    def __init__(self):
        self.count = 0

    def __enter__(self):
        self.count = 0
        sys.setprofile(self._see)

    def __exit__(self, *error):
        sys.setprofile(None)

    def _see(self, frame, event, _):
        self.count += event == "call" and frame.f_code.co_filename.startswith(PACKAGE)
