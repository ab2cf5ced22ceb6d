"""Answers: JSON, containers of arrays, or CSV; named by their content, and packed."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy.typing as npt

from tb_pastnet.reader.notes import Notes
from tb_pastnet.serve.http.container import pack
from tb_pastnet.serve.http.gzipping import gzipped
from tb_pastnet.serve.http.strict_json import dumps

SCHEMA = 2
"""Version of all answers; it grows when one changes so that an older page can't read it."""

JSON = "application/json"
BINARY = "application/octet-stream"
CSV = "text/csv"

_WORTH_PACKING = 1024
_SAVES = 0.9


@dataclass(frozen=True)
class Answer:
    """What a route answers."""

    body: bytes  # the bytes, gzipped where `packed`
    content_type: str  # set by hand; never guessed from a name
    tag: str  # the entity tag, from the content
    packed: bool = False  # whether the body is gzipped
    headers: tuple[tuple[str, str], ...] = ()  # further headers
    notes: Notes = field(default_factory=Notes)  # what could not be read for it, and why

    @property
    def size(self) -> int:
        """Bytes that it holds."""
        return len(self.body)


@dataclass(frozen=True)
class NotModified:
    """An answer that was given before and may be gone since: a 304 needs its name alone."""

    tag: str  # its entity tag
    make: Callable[[], Answer]  # gives it


def answer(body: bytes, content_type: str, headers: tuple[tuple[str, str], ...] = ()) -> Answer:
    """Makes an answer: names its content and packs it where that pays.

    Text is left to TensorBoard, which packs it for the clients that want it.
    """
    packed = b""
    if content_type == BINARY and len(body) >= _WORTH_PACKING:
        packed = gzipped(body)
    if len(packed) >= _SAVES * len(body):
        packed = b""
    # The name must be weak: one tag stands for the packed and for the plain bytes.
    tag = f'W/"{hashlib.blake2b(packed or body, digest_size=12).hexdigest()}"'
    return Answer(packed or body, content_type, tag, packed=bool(packed), headers=headers)


def json_answer(body: Mapping[str, Any], lost: Notes) -> Answer:
    """An answer of JSON values, and what could not be read for it."""
    return replace(answer(dumps({"schema": SCHEMA, **body}), JSON), notes=lost)


def binary_answer(
    header: Mapping[str, Any], sections: Mapping[str, npt.NDArray[Any]], lost: Notes
) -> Answer:
    """An answer of JSON values and arrays, and what could not be read for it."""
    return replace(answer(pack({"schema": SCHEMA, **header}, sections), BINARY), notes=lost)


def csv_answer(pieces: Iterable[str]) -> Answer:
    """A table, given some lines at a time."""
    # Without a name: one of ours would go before that of the page, which tells runs apart.
    disposition = ("Content-Disposition", "attachment")
    return answer("".join(pieces).encode("utf-8", "replace"), CSV, (disposition,))
