"""Payloads that are JSON: the number of bytes of the text, then the text, deflated by zlib.

A reader ignores unknown keys: a later version may add some.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt

from tb_pastnet.errors import DamagedRecord, InvalidArgument
from tb_pastnet.format import limits, planes, varint
from tb_pastnet.format.budget import JSON_VALUES

_STRING = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)


def pack(data: Any) -> bytes:
    """Writes an object as deflated JSON; raises InvalidArgument if it is too large for `unpack`."""
    raw = json.dumps(data, separators=(",", ":")).encode()
    if len(raw) > limits.MAX_JSON:
        raise InvalidArgument(
            f"Could not encode JSON: expected at most {limits.MAX_JSON} bytes, got {len(raw)}. "
            f"Store it in several messages."
        )
    return varint.encode([len(raw)]) + planes.deflate(raw, 9)


def unpack(payload: bytes) -> dict[str, Any]:
    """Reads what `pack` wrote; its values are unchecked: read them with `text` and `natural`.

    Raises DamagedRecord if it is larger than `limits.MAX_JSON`, has more values than its bytes
    allow, or isn't a deflated object.
    """
    reader = varint.Reader(payload)
    size, stored = reader.number(limits.MAX_JSON), len(payload)
    raw = planes.inflate(reader.take(reader.left), size)
    most = min(limits.MAX_JSON_VALUES, JSON_VALUES.most(stored))
    count = _separators(raw)
    if count > most:
        # Those in strings separate nothing.
        count -= sum(_separators(text[0]) for text in _STRING.finditer(raw))
        if count > most:
            raise varint.damaged(f"JSON of at most {most} values", str(count))
    return parse(raw)


def _separators(raw: bytes) -> int:
    """How many values JSON has, at least: counted before any is made, as each takes 100 bytes."""
    return len(raw) - len(raw.translate(None, b",[{"))


def parse(raw: bytes) -> dict[str, Any]:
    """Reads a JSON object; raises DamagedRecord if it isn't one."""
    try:
        data = json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise varint.damaged("JSON", str(error)[:200]) from None
    if not isinstance(data, dict):
        raise varint.damaged("a JSON object", type(data).__name__)
    return data


@contextmanager
def expecting(content: str) -> Iterator[None]:
    """Raises DamagedRecord if a value that is read inside doesn't have the expected form."""
    try:
        yield
    except (LookupError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise varint.damaged(content, repr(error)[:200]) from None


@contextmanager
def encoding(content: str) -> Iterator[None]:
    """For an encoder that reads inside what it is about to pack, by the checks of its decoder.

    Raises InvalidArgument if a reader would refuse it.
    """
    try:
        with expecting(content):
            yield
    except DamagedRecord as error:
        raise InvalidArgument(
            f"Could not encode {content}: a reader would say '{error}' Leave out what doesn't fit."
        ) from None


def text(value: Any) -> str:
    """Checks a text; raises ValueError if it isn't one, or is longer than `limits.MAX_NAME`."""
    if not isinstance(value, str) or len(value) > limits.MAX_NAME:
        raise ValueError(f"a text of at most {limits.MAX_NAME} characters is missing")
    return value


def natural(value: Any, most: int = limits.MAX_STEP) -> int:
    """Checks a whole number from 0 to `most`; raises ValueError for anything else."""
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= most:
        raise ValueError(f"a whole number from 0 to {most} is missing")
    return value


def shape(value: Any) -> tuple[int, ...]:
    """Checks the shape of a variable by `limits`; raises ValueError if it isn't one."""
    if not isinstance(value, list | tuple) or len(value) > limits.MAX_DIMENSIONS:
        raise ValueError(f"a list of at most {limits.MAX_DIMENSIONS} dimensions is missing")
    dimensions = tuple(natural(size, limits.MAX_WEIGHTS) for size in value)
    natural(math.prod(dimensions), limits.MAX_WEIGHTS)
    return dimensions


def items(value: Any, most: int) -> list[Any]:
    """Checks a list; raises ValueError if it isn't one, or has more than `most` elements."""
    if not isinstance(value, list) or len(value) > most:
        raise ValueError(f"a list of at most {most} is missing")
    return value


def numbers(value: Any, read: Callable[[Any], int]) -> npt.NDArray[np.int64]:
    """Checks a list of one number for each record, each by a function that raises ValueError."""
    return np.array([read(number) for number in items(value, limits.MAX_RECORDS)], np.int64)
