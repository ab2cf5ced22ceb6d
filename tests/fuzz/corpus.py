"""The inputs that a fuzzer begins with: golden files, and what it found worth keeping.

`corpus.txt` holds one input a line, in hexadecimal. What once failed stays in it for ever.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path

from tb_pastnet.format import planes, varint
from tb_pastnet.format.block import ROWS, Block, encode_block
from tb_pastnet.format.envelope import Kind
from tests import event_files
from tests.fuzz.decoders import OTHERS, WAYS, read_event, read_file
from tests.golden import contents

KEPT = Path(__file__).with_name("corpus.txt")
_HEAD = 12  # bytes of an envelope
_AT = {way.name: bytes([at]) for at, way in enumerate(WAYS)}


def golden() -> Iterator[bytes]:
    """What golden files hold, for each way into the decoders."""
    for path in sorted(contents.folder().iterdir()):
        message = path.read_bytes()
        payload, name = message[_HEAD:], Kind(message[5]).name.lower()
        yield _AT[f"{name}, as it is"] + message
        yield _AT[f"{name}, sealed"] + payload
        if f"{name}, sealed JSON" in _AT:
            yield _AT[f"{name}, sealed JSON"] + _text(payload)
        elif name == "function":
            reader = varint.Reader(payload)
            head, values = reader.take(reader.number()), reader.take(reader.left)
            yield _AT["function, sealed head and values"] + b"\0".join(
                [_text(head), zlib.decompress(values)]
            )
        elif path.stem == "mask_deflated":
            head, data = payload[:5], zlib.decompress(payload[5:])
            yield _AT["mask, sealed bits"] + bytes([len(head)]) + head + data
    yield _AT["channels, sealed planes"] + _block()
    for path in sorted(contents.folder().iterdir())[:3]:
        event = event_files.event("t", 1000, path.read_bytes())
        yield bytes([len(WAYS) + OTHERS.index(read_event)]) + event
        yield bytes([len(WAYS) + OTHERS.index(read_file)]) + 2 * event_files.frame(event)


def _text(payload: bytes) -> bytes:
    """The JSON of a payload, without its length."""
    reader = varint.Reader(payload)
    reader.number()
    return zlib.decompress(reader.take(reader.left))


def _block() -> bytes:
    """A small block with its planes as they are once inflated."""
    whole = contents.block()
    some = slice(0, 2)
    block = Block(
        whole.sequence[some], whole.steps[some], whole.past_steps[some], whole.codes[:, some, :4]
    )
    message = encode_block(block, tag=contents.CHANNELS, lineage=contents.LINEAGE)
    reader = varint.Reader(message[_HEAD:])
    channels, records = reader.number(), reader.number()
    reader.signed_array(3 * records)
    head = message[_HEAD : len(message) - reader.left]
    opened = planes.open_planes(reader, [True] * len(ROWS), records, channels)
    raw = [one if isinstance(one, bytes) else bytes(2 * records * channels) for one in opened]
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
