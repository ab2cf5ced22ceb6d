"""Lets the training thread have the interpreter."""

from __future__ import annotations

import time


def breathe() -> None:
    """Gives the interpreter back for a moment: called between pieces of work on our thread."""
    # Else the training thread would wait 5 ms for the interpreter, Python's switch interval, each
    # time it comes back from TensorFlow. A sleep of 0 gives it back and takes it again at once.
    time.sleep(20e-6)
