"""Which process this is: what was made before a fork belongs to the parent alone."""

from __future__ import annotations

import os

_pid = os.getpid()


def pid() -> int:
    """The id of this process: asked for at each step, at which a call of the system is slow."""
    return _pid


def _follow() -> None:
    global _pid  # noqa: PLW0603 - there is one process
    _pid = os.getpid()


# Where there is none, nothing forks.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_follow)
