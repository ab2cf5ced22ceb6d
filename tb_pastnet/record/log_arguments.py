"""The log directory that a user gives, and how long the program waits for it."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import Any

from tb_pastnet.core.subject import kind_of
from tb_pastnet.errors import InvalidArgument
from tb_pastnet.format.files import base_name
from tb_pastnet.format.tags import parse_run

EXIT_TIMEOUT = 60.0
"""Seconds that the program waits at its end for a store."""


def check_logdir(logdir: Any) -> str:
    """The path of a run's directory; raises InvalidArgument where it can't be one."""
    with suppress(TypeError):
        path = os.fspath(logdir)
        if isinstance(path, str) and _usable(path):
            return path
    kind = kind_of(logdir)
    got = f"{logdir!r:.100}" if kind is None else kind
    mend = "" if kind is None else " before the network, as in Recorder(logdir, model)"
    raise InvalidArgument(
        f"Could not record: expected logdir= the path of the run's own directory, got {got}. "
        f"Write logdir='runs/a'{mend}."
    )


def _usable(path: str) -> bool:
    """Whether a run may have this directory."""
    return path != "" and "\0" not in path and parse_run(base_name(path)) is None


def check_exit_timeout(exit_timeout: float) -> float:
    """Seconds as a float; raises InvalidArgument for anything else."""
    if not isinstance(exit_timeout, int | float) or not 0 <= exit_timeout < float("inf"):
        raise InvalidArgument(
            f"Could not set exit_timeout: expected seconds, 0 or more, got {exit_timeout!r}. Leave "
            f"it out for {EXIT_TIMEOUT:g}."
        )
    return float(exit_timeout)
