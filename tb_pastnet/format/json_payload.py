"""Payloads that are JSON: the number of bytes of the text, then the text, deflated by zlib.

A reader takes the keys that it knows and ignores the others, so that a later version may add some.
"""

from __future__ import annotations

import json
import zlib
from typing import Any

from tb_pastnet.format import limits, planes, varint

WRONG = (KeyError, TypeError, ValueError, AttributeError, OverflowError)
"""What reading a JSON value raises where it isn't of the shape that was expected."""


def pack(data: Any) -> bytes:
    """Writes a value as deflated JSON.

    Args:
        data: what `json.dumps` takes; an object at the top.

    Returns:
        The payload, to be sealed.

    Example:
        >>> unpack(pack({"every": 10}))
        {'every': 10}
    """
    raw = json.dumps(data, separators=(",", ":")).encode()
    return varint.encode([len(raw)]) + zlib.compress(raw, 9)


def unpack(payload: bytes) -> dict[str, Any]:
    """Reads what `pack` wrote.

    Args:
        payload: of an opened envelope, untrusted.

    Returns:
        The object. Its values are unchecked: read them with `text` and `whole`.

    Raises:
        DamagedRecord: it is larger than `limits.MAX_JSON`, doesn't inflate, or isn't an object.
    """
    reader = varint.Reader(payload)
    size = reader.number(limits.MAX_JSON)
    return parse(planes.inflate(reader.take(reader.left), size))


def parse(raw: bytes) -> dict[str, Any]:
    """Reads a JSON object.

    Raises:
        DamagedRecord: it is no JSON, or another value than an object.
    """
    try:
        data = json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise varint.damaged("JSON", str(error)[:200]) from None
    if not isinstance(data, dict):
        raise varint.damaged("a JSON object", type(data).__name__)
    return data


def text(value: Any) -> str:
    """Checks a text.

    Raises:
        ValueError: it is another value, or longer than `limits.MAX_NAME`.
    """
    if not isinstance(value, str) or len(value) > limits.MAX_NAME:
        raise ValueError(f"a text of at most {limits.MAX_NAME} characters is missing")
    return value


def whole(value: Any, most: int = limits.MAX_STEP) -> int:
    """Checks a whole number from 0 on.

    Raises:
        ValueError: it is another value, negative, or larger than `most`.
    """
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= most:
        raise ValueError(f"a whole number from 0 to {most} is missing")
    return value
