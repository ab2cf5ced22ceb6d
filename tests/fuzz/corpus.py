"""The inputs that a fuzzer begins with: golden files, and what it found worth keeping.

`corpus.txt` holds one input a line, in hexadecimal. What once failed stays in it for ever.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path

from tb_pastnet.format import planes, varint
from tb_pastnet.format.envelope import NEWEST, Kind, version_of
from tests import event_files
from tests.fuzz.decoders import OTHERS, WAYS, read_event, read_file
from tests.golden import contents
from tests.sealed import EIGHT, block_payload

KEPT = Path(__file__).with_name("corpus.txt")
_HEAD = 12  # bytes of an envelope
_AT = {way.name: bytes([at]) for at, way in enumerate(WAYS)}


def golden() -> Iterator[bytes]:
    """What golden files hold, for each way into the decoders."""
    for path in contents.files():
        message = path.read_bytes()
        payload, name = message[_HEAD:], Kind(message[5]).name.lower()
        yield _AT[f"{name}, as it is"] + message
        if version_of(message) < NEWEST[Kind(message[5])]:
            yield _AT[f"{name} of version {version_of(message)}, sealed"] + payload
        else:
            yield _AT[f"{name}, sealed"] + payload
        if f"{name}, sealed JSON" in _AT:
            yield _AT[f"{name}, sealed JSON"] + _text(payload)
        elif name in ("function", "follows"):
            reader = varint.Reader(payload)
            head, values = reader.take(reader.number()), reader.take(reader.left)
            yield _AT[f"{name}, sealed head and values"] + b"\0".join(
                [_text(head), zlib.decompress(values)]
            )
        elif path.stem == "mask_deflated":
            head, data = payload[:5], zlib.decompress(payload[5:])
            yield _AT["mask, sealed bits"] + bytes([len(head)]) + head + data
    for version, way in ((1, "channels of version 1"), (2, "channels")):
        yield _AT[f"{way}, sealed planes"] + _block(version)
    for path in contents.files()[:3]:
        event = event_files.event("t", 1000, path.read_bytes())
        yield bytes([len(WAYS) + OTHERS.index(read_event)]) + event
        yield bytes([len(WAYS) + OTHERS.index(read_file)]) + 2 * event_files.frame(event)


def _text(payload: bytes) -> bytes:
    """The JSON of a payload, without its length."""
    reader = varint.Reader(payload)
    reader.number()
    return zlib.decompress(reader.take(reader.left))


def _block(version: int) -> bytes:
    """A small block with its planes as they are once inflated."""
    codes = dict(zip(EIGHT, contents.block().codes[:, :2, :4], strict=False))
    payload = block_payload(codes, version)
    reader = varint.Reader(payload)
    channels, records = reader.number(), reader.number()
    reader.signed_array(3 * records)
    if version > 1:
        reader.take(reader.number())
    head = payload[: len(payload) - reader.left]
    opened = planes.open_planes(reader, [True] * len(EIGHT), records, channels)
    raw = [plane if isinstance(plane, bytes) else bytes(4 * channels) for plane in opened]
    return bytes([len(head)]) + head + b"".join(raw)


def kept() -> list[bytes]:
    """What was found before."""
    lines = KEPT.read_text("ascii").splitlines() if KEPT.exists() else []
    return [bytes.fromhex(line) for line in lines]


def keep(inputs: Iterable[bytes]) -> None:
    """Adds to what is kept, the shortest first.

    Args:
        inputs: what is worth it.
    """
    lines = sorted({one.hex() for one in [*kept(), *inputs]}, key=lambda line: (len(line), line))
    KEPT.write_text("".join(f"{line}\n" for line in lines), "ascii")
