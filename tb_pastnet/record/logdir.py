"""The log directory that a user gives."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import Any

from tb_pastnet.errors import InvalidArgument
from tb_pastnet.format.files import base_name
from tb_pastnet.format.tags import parse_run


def check_logdir(logdir: Any) -> str:
    """The path of a run's directory; raises InvalidArgument where it can't be one."""
    with suppress(TypeError):
        path = os.fspath(logdir)
        if isinstance(path, str) and _usable(path):
            return path
    raise InvalidArgument(
        f"Could not record: expected logdir= the path of the run's own directory, got "
        f"{logdir!r:.100}. Write logdir='runs/a'."
    )


def _usable(path: str) -> bool:
    """Whether a run may have this directory."""
    return path != "" and "\0" not in path and parse_run(base_name(path)) is None
