"""The command line, called as a function."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any, NamedTuple

from tb_pastnet.cli.main import main


class Done(NamedTuple):
    """What a command said."""

    code: int
    out: str
    error: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


def command(*arguments: str | Path) -> Done:
    """Carries out a command."""
    out, error = io.StringIO(), io.StringIO()
    code = main([str(one) for one in arguments], out, error)
    return Done(code, out.getvalue(), error.getvalue())
