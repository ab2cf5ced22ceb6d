"""JSON that every parser reads: no NaN, no Infinity, no lone surrogates."""

from __future__ import annotations

import json
import math
from typing import Any


def dumps(value: Any) -> bytes:
    """Writes JSON in ASCII; what JSON has no number for becomes null.

    Example:
        >>> dumps({"a": [1.5, float("nan"), float("inf")]})
        b'{"a":[1.5,null,null]}'
    """
    try:
        # The usual case, without a copy.
        text = json.dumps(value, separators=(",", ":"), allow_nan=False)
    except ValueError:
        text = json.dumps(_finite(value), separators=(",", ":"), allow_nan=False)
    return text.encode("ascii")


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(item) for item in value]
    return value
