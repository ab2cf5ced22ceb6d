"""The one sentence of an error of Keras or TensorFlow that says what is wrong."""

from __future__ import annotations

import re

_BOLD = re.compile(r"\x1b\[1m(.*?)\x1b\[0m", re.DOTALL)
"""Keras sets what the error says off from the arguments that it lists after it."""

_USER_CODE = re.compile(r"^in user code:.*\n\s*\w+: (.*)", re.DOTALL)
"""AutoGraph puts the stack before what the error says."""

_LONGEST = 300


def reason(error: BaseException) -> str:
    r"""What an error says, in one line, without the stacks and arguments that are added to it."""
    # The text of a KeyError is a repr, where lines don't end.
    text = error.args[0] if error.args and isinstance(error.args[0], str) else str(error)
    for pattern in (_BOLD, _USER_CODE):
        if (match := pattern.search(text)) is not None:
            text = match[1]
    line = " ".join(text.split())
    if len(line) > _LONGEST:  # its first sentences
        line = line[: line.rfind(". ", 0, _LONGEST) + 1] or line[:_LONGEST]
    if isinstance(error, KeyError):
        line = repr(line.strip("'\""))
    plain = isinstance(error, ValueError | TypeError) and line
    return line if plain else f"{type(error).__name__}: {line}"
