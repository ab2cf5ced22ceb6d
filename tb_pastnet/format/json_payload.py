"""Payloads that are JSON: the number of bytes of the text, then the text, deflated by zlib.

A reader takes the keys that it knows and ignores the others, so that a later version may add some.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tb_pastnet.format import limits, planes, varint


def pack(data: Any) -> bytes:
    """Writes an object as deflated JSON."""
    raw = json.dumps(data, separators=(",", ":")).encode()
    return varint.encode([len(raw)]) + zlib.compress(raw, 9)


def unpack(payload: bytes) -> dict[str, Any]:
    """Reads what `pack` wrote; its values are unchecked: read them with `text` and `natural`.

    Raises DamagedRecord where it is larger than `limits.MAX_JSON`, or no deflated object.
    """
    reader = varint.Reader(payload)
    size = reader.number(limits.MAX_JSON)
    return parse(planes.inflate(reader.take(reader.left), size))


def parse(raw: bytes) -> dict[str, Any]:
    """Reads a JSON object; raises DamagedRecord where it is something else."""
    try:
        data = json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise varint.damaged("JSON", str(error)[:200]) from None
    if not isinstance(data, dict):
        raise varint.damaged("a JSON object", type(data).__name__)
    return data


@contextmanager
def expecting(content: str) -> Iterator[None]:
    """Raises DamagedRecord where what is read inside isn't of the shape that was expected."""
    try:
        yield
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise varint.damaged(content, repr(error)[:200]) from None


def text(value: Any) -> str:
    """Checks a text; raises ValueError where it is none, or longer than `limits.MAX_NAME`."""
    if not isinstance(value, str) or len(value) > limits.MAX_NAME:
        raise ValueError(f"a text of at most {limits.MAX_NAME} characters is missing")
    return value


def natural(value: Any, most: int = limits.MAX_STEP) -> int:
    """Checks a number from 0 on; raises ValueError where it is no such, or larger than `most`."""
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= most:
        raise ValueError(f"a whole number from 0 to {most} is missing")
    return value
