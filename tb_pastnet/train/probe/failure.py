"""What TensorFlow says of a failed evaluation, without the stack that stands before it."""

from __future__ import annotations

_BEFORE = ("Graph execution error", "Detected at node", "Exception encountered", " ", "\t")
_LONGEST = 300


def said(error: BaseException) -> str:
    r"""Class and reason of an error in one line.

    Example:
        >>> said(ValueError("Graph execution error:\n\nDetected at node x\n  File a\nno such w"))
        'ValueError: no such w'
    """
    lines = [line for line in str(error).splitlines() if line and not line.startswith(_BEFORE)]
    reason = " ".join(lines[0].split())[:_LONGEST] if lines else "no reason given"
    return f"{type(error).__name__}: {reason}"
