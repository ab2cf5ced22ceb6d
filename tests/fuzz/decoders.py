"""What a fuzzer drives: any bytes through every decoder, and what has to hold of what they give.

The first byte chooses the decoder and how the rest becomes a message. Few random bytes carry a
checksum that holds or inflate, so most ways seal and deflate what is given: what is tested is all
that lies behind.
"""

from __future__ import annotations

import contextlib
import io
import zlib
from collections.abc import Callable
from dataclasses import asdict
from typing import Any, NamedTuple

import numpy as np

from tb_pastnet.errors import UnreadableRecord
from tb_pastnet.format import limits, tags, varint
from tb_pastnet.format.block import decode_block, open_block, restore
from tb_pastnet.format.codecs import CODECS, codec_of
from tb_pastnet.format.description import decode_series
from tb_pastnet.format.envelope import Kind, seal
from tb_pastnet.format.events import read_events
from tb_pastnet.format.frames import Rest, frame
from tb_pastnet.format.function_change import MEASURES
from tb_pastnet.format.layout import ROWS
from tb_pastnet.format.together import stored_channels
from tests.sealed import EIGHT, sealed

PLACE: dict[str, Any] = {"tag": "t", "step": 1000, "lineage": 1}

DECODERS = {kind: codec.decode for kind, codec in CODECS.items()}


class Way(NamedTuple):
    """How bytes become a message.

    Attributes:
        name: for people.
        kind: whose decoder gets it.
        message: makes it.
    """

    name: str
    kind: Kind
    message: Callable[[bytes], bytes]


def check(data: bytes) -> None:
    """Decodes what the bytes say, and proves what comes of it.

    Args:
        data: anything.
    """
    if not data:
        return
    at, rest = data[0] % (len(WAYS) + len(OTHERS)), data[1:]
    with contextlib.suppress(UnreadableRecord):
        if at >= len(WAYS):
            OTHERS[at - len(WAYS)](rest)
            return
        way = WAYS[at]
        message = way.message(rest)
        PROOFS[way.kind](DECODERS[way.kind](message, **PLACE))
        if way.kind == Kind.CHANNELS:
            _the_same_in_part(message)


def _sealed(kind: Kind) -> Callable[[bytes], bytes]:
    return lambda payload: seal(payload, kind, **PLACE)


def _deflated_json(kind: Kind) -> Callable[[bytes], bytes]:
    def message(text: bytes) -> bytes:
        return seal(varint.encode([len(text)]) + zlib.compress(text, 1), kind, **PLACE)

    return message


def _sealed_as_1(kind: Kind) -> Callable[[bytes], bytes]:
    return lambda payload: sealed(payload, version=1, kind=kind, **PLACE)


def _planes(data: bytes) -> bytes:
    """The payload of a block: the numbers before its planes, and eight planes of what remains."""
    size, rest = (data[0], data[1:]) if data else (0, b"")
    payload, rest = rest[:size], rest[size:]
    part = -(-len(rest) // len(EIGHT))
    for plane in range(len(EIGHT)):
        deflated = zlib.compress(rest[plane * part : (plane + 1) * part], 1)
        payload += b"\1" + varint.encode([len(deflated)]) + deflated
    return payload


def _deflated_planes(data: bytes) -> bytes:
    return seal(_planes(data), Kind.CHANNELS, **PLACE)


def _deflated_planes_of_1(data: bytes) -> bytes:
    return _sealed_as_1(Kind.CHANNELS)(_planes(data))


def _deflated_mask(data: bytes) -> bytes:
    size, rest = (data[0] % 32, data[1:]) if data else (0, b"")
    return seal(rest[:size] + zlib.compress(rest[size:], 1), Kind.MASK, **PLACE)


def _deflated_numbers(data: bytes) -> bytes:
    payload = varint.encode([len(data)]) + zlib.compress(data, 1)
    return seal(payload, Kind.COMPARED, **PLACE)


def _deflated_probe(data: bytes, kind: Kind = Kind.FUNCTION) -> bytes:
    """The head's text, a zero byte, and the values."""
    text, _, values = data.partition(b"\0")
    head = varint.encode([len(text)]) + zlib.compress(text, 1)
    payload = varint.encode([len(head)]) + head + zlib.compress(values, 1)
    return seal(payload, kind, **PLACE)


WAYS = (
    *(Way(f"{kind.name.lower()}, as it is", kind, bytes) for kind in Kind),
    *(Way(f"{kind.name.lower()}, sealed", kind, _sealed(kind)) for kind in Kind),
    *(
        Way(f"{kind.name.lower()}, sealed JSON", kind, _deflated_json(kind))
        for kind in (Kind.DESCRIPTION, Kind.MASKS, Kind.VIOLATIONS, Kind.STANDING)
    ),
    Way("compared, sealed numbers", Kind.COMPARED, _deflated_numbers),
    Way("channels, sealed planes", Kind.CHANNELS, _deflated_planes),
    Way("mask, sealed bits", Kind.MASK, _deflated_mask),
    Way("function, sealed head and values", Kind.FUNCTION, _deflated_probe),
    Way(
        "follows, sealed head and values",
        Kind.FOLLOWS,
        lambda data: _deflated_probe(data, Kind.FOLLOWS),
    ),
    Way("channels of version 1, sealed", Kind.CHANNELS, _sealed_as_1(Kind.CHANNELS)),
    Way("channels of version 1, sealed planes", Kind.CHANNELS, _deflated_planes_of_1),
    Way("timeline of version 1, sealed", Kind.TIMELINE, _sealed_as_1(Kind.TIMELINE)),
)


def _increase(numbers: np.ndarray[Any, Any]) -> bool:
    return bool((np.diff(numbers) > 0).all())


def _block(block: Any) -> None:
    records = len(block.steps)
    assert block.codes.shape == (len(ROWS), records, block.channels)
    assert 0 < records * block.channels <= limits.MAX_CELLS
    assert records == len(block.sequence) == len(block.past_steps)
    assert _increase(block.sequence)
    assert _increase(block.steps)


def _the_same_in_part(message: bytes) -> None:
    """A reader that needs some statistics alone gets what one gets that needs all."""
    whole = decode_block(message, **PLACE)
    some = restore([open_block(message, **PLACE, rows=(1, 4))])
    for row in (1, 4):
        np.testing.assert_array_equal(some.codes[row], whole.codes[row])


def _timeline(line: Any) -> None:
    assert _increase(line.sequence)
    assert _increase(line.steps)
    assert len(line.steps) == len(line.sequence) == len(line.wall_times) == len(line.learning_rates)
    assert np.isfinite(line.wall_times).all()
    assert min(line.offered, line.thinned, line.dropped) >= 0
    assert max(line.offered, line.thinned, line.dropped) <= limits.MAX_STEP


def _description(found: Any) -> None:
    assert all(0 <= one.channels <= limits.MAX_CHANNELS for one in found.variables)
    assert np.isfinite(found.created)
    sizes = [(one.id, one.channels) for one in found.variables]
    for (_, channels), place in zip(sizes, stored_channels(sizes, found.together), strict=True):
        assert 0 <= place.first <= place.width - channels


def _mask_log(changes: Any) -> None:
    assert _increase(np.array([one.number for one in changes], np.int64))
    assert all(0 <= one.through <= one.elements <= limits.MAX_MASK for one in changes)


def _mask(mask: Any) -> None:
    assert 0 <= mask.elements <= limits.MAX_MASK
    assert mask.bits.dtype == np.uint8
    assert len(mask.bits) == -(-mask.elements // 8)


def _violations(found: Any) -> None:
    assert len(found) <= limits.MAX_VIOLATIONS
    for one in found:
        assert 0 <= one.first_step <= one.last_step
        assert 0 <= one.elements <= one.held
        assert one.largest >= 0


def _function(found: Any) -> None:
    assert found.values.shape == (len(MEASURES), len(found.steps), len(found.places))
    assert found.values.size > 0
    assert _increase(found.steps)
    assert _increase(found.sequence)


def _follows(found: Any) -> None:
    assert found.values.shape == (3, len(found.steps), sum(pair.channels for pair in found.pairs))
    assert 0 < found.values.size <= limits.MAX_VALUES
    assert len(found.steps) == len(found.past_steps)
    assert _increase(found.steps)
    assert _increase(found.sequence)


def _sketches(found: Any) -> None:
    assert found.values.shape == (len(found.steps), len(found.variables), 64)
    assert found.grid.shape == found.values.shape[:2]
    assert 0 < found.values.size <= limits.MAX_VALUES
    assert all(map(_increase, (found.steps, found.sequence, found.variables)))


def _overhead(found: Any) -> None:
    assert min(asdict(found).values()) >= 0
    assert max(asdict(found).values()) <= limits.MAX_STEP


def _standing(changes: Any) -> None:
    assert len(changes) <= limits.MAX_STANDING
    assert all(0 <= change.step <= limits.MAX_STEP for change in changes)


def _compared(found: Any) -> None:
    for own in found.held.values():
        assert all(0 <= span.first_step <= span.last_step for span in own.spans)
        assert all(span.records > 0 for span in own.spans)


PROOFS: dict[Kind, Callable[[Any], None]] = {
    Kind.CHANNELS: _block,
    Kind.TIMELINE: _timeline,
    Kind.DESCRIPTION: _description,
    Kind.MASKS: _mask_log,
    Kind.MASK: _mask,
    Kind.VIOLATIONS: _violations,
    Kind.FUNCTION: _function,
    Kind.OVERHEAD: _overhead,
    Kind.FOLLOWS: _follows,
    Kind.SKETCHES: _sketches,
    Kind.STANDING: _standing,
    Kind.COMPARED: _compared,
}


def _names(text: str) -> None:
    tags.is_channels(text)
    tags.mask_of(text)
    codec_of(text)
    found = tags.parse_run(text)
    assert found is None or 0 <= found.lineage < 1 << 32


def _series(content: bytes) -> None:
    assert 0 <= decode_series(content).channels <= limits.MAX_CHANNELS


def _as_names(data: bytes) -> None:
    _names(data.decode("utf-8", "surrogateescape"))


def read_file(data: bytes) -> None:
    """An event file: frames follow one another, and what can't be read is at its end."""
    end = 0
    for found in read_events(io.BytesIO(data)):
        assert found.offset == end
        if isinstance(found, Rest):
            return
        end += len(found.frame.payload) + 16  # its length and two checksums, as TFRecord has them
        for value in found.values:
            assert isinstance(value.tag, str)
            assert isinstance(value.metadata.plugin, str)
            assert value.data is None or isinstance(value.data, bytes)
    assert end == len(data)


def read_event(data: bytes) -> None:
    read_file(frame(data))


OTHERS: tuple[Callable[[bytes], None], ...] = (_series, _as_names, read_file, read_event)
"""What else reads bytes of a log."""
