"""The sentence of a Keras or TensorFlow error that has the reason."""

from __future__ import annotations

import re

_BOLD = re.compile(r"\x1b\[1m(.*?)\x1b\[0m", re.DOTALL)
"""Keras separates the message from the arguments that it lists after it."""

_USER_CODE = re.compile(r"^in user code:.*\n\s*\w+: (.*)", re.DOTALL)
"""AutoGraph puts the stack before the message."""

_LONGEST = 300


def reason(error: BaseException) -> str:
    r"""The message of an error in one line, without added stacks and arguments."""
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
