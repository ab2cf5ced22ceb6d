"""What of a log a command is about."""

from __future__ import annotations

from collections.abc import Sequence

from tb_pastnet.reader.log import Log
from tb_pastnet.reader.run import Run


def chosen_runs(log: Log, names: Sequence[str] | None) -> list[Run]:
    """The runs that are named, or all.

    Args:
        log: the log.
        names: names, or ends of names that fit one run only; None: all.

    Raises:
        UnknownName: one fits no run, or several.
    """
    if names is None:
        return list(log.runs.values())
    return [log.runs[name] for name in dict.fromkeys(names)]
