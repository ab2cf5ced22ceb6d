"""Some consecutive records of one variable, and their codec.

A block decodes by itself: absolute state at its first record, differences inside. It is the unit of
loss: a damaged block costs its own records and no others. docs/reference/record_format.md has its
fields, under "Channels".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, chain, groupby
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tb_pastnet.core.quantize import NAN, Codes, dequantize, quantize_counts
from tb_pastnet.errors import DamagedRecord, InvalidArgument
from tb_pastnet.format import limits, planes, varint
from tb_pastnet.format.envelope import Kind, payload_of, seal, unseal, version_of
from tb_pastnet.format.layout import (
    ROWS,
    VERSION_1,
    WRITTEN,
    Layout,
    Rows,
    encode_heads,
    read_layout,
    wanted,
)

Integers = npt.NDArray[np.int64]
Words = planes.Words

_FAR = 1 << 62
_SIZE_BYTES = 20
_PIECE = 1 << 20
"""Cells whose values are in memory as floats."""

_HEADS = encode_heads()


@dataclass(frozen=True, eq=False)
class Block:
    """Records of one variable, oldest first."""

    sequence: Integers  # int64 (records,), the writer's number of each record, strictly increasing
    steps: Integers  # int64 (records,), strictly increasing
    past_steps: Integers  # int64 (records,), the step of the past value that each is compared with
    # int16 (statistics, records, channels), see `quantize`, rows as in `statistics.STATISTICS`;
    # `NAN` where a statistic wasn't recorded
    codes: Codes
    # names of statistics that were recorded, and are unknown to this version
    unknown: tuple[str, ...] = ()

    @property
    def channels(self) -> int:
        """Number of channels."""
        return int(self.codes.shape[-1])


def encode_block(block: Block, *, tag: str, lineage: int) -> bytes:
    """Packs and seals a block, to be stored in an event whose step is the block's last."""
    return encode_blocks(block, [(tag, 0, block.channels)], lineage=lineage)[0]


def encode_blocks(
    block: Block, ranges: Sequence[tuple[str, int, int]], *, lineage: int
) -> list[bytes]:
    """Packs and seals several variables together, in less time than one by one.

    `ranges` are the tag of each variable, its first channel among those of the block, and one after
    its last; they are contiguous. Raises InvalidArgument if the arrays don't fit together.
    """
    _check(block)
    _check_size(len(block.steps), max(stop - start for _, start, stop in ranges))
    head = varint.encode_signed(np.diff(block.sequence, prepend=0).tolist())
    head += varint.encode_signed([0, *np.diff(block.steps)[::-1].tolist()])
    head += varint.encode_signed((block.steps - block.past_steps).tolist()) + _HEADS
    words = block.codes.view(np.uint16).copy()
    for row, base in WRITTEN.predicted:
        words[row] -= block.codes[base].view(np.uint16)
    packed = planes.pack_apart(words.view(np.int16), [(start, stop) for _, start, stop in ranges])
    records, step = len(block.steps), int(block.steps[-1])
    return [
        seal(
            bytes(varint.encode([stop - start, records]) + head + own),
            Kind.CHANNELS, tag=tag, step=step, lineage=lineage,
        )
        for (tag, start, stop), own in zip(ranges, packed, strict=True)
    ]  # fmt: skip


def decode_block(message: bytes, *, tag: str, step: int, lineage: int) -> Block:
    """Opens a message and restores its block, exactly; raises UnreadableRecord."""
    return restore([open_block(message, tag=tag, step=step, lineage=lineage)])


class BlockHead(NamedTuple):
    """The records of a block, and its layout; a lag is a record's step minus that of its past."""

    sequence: list[int]
    steps: list[int]
    lags: list[int]
    layout: Layout


Heads = dict[tuple[int, int, bytes], tuple[bytes, BlockHead]]
"""Heads of blocks that were read before, by version, step and first bytes, with all their bytes.

The variables of a network are recorded together: their blocks have the same heads, which are then
the same object.
"""

_FIRST_BYTES = 8
# A hostile log has no two equal ones, and long ones.
_MOST_HEADS, _MOST_RECORDS = 1 << 12, 64


class OpenBlock(NamedTuple):
    """A verified and inflated block, whose codes aren't restored yet.

    It has the planes of its layout for `rows`, the statistics that are needed, see
    `planes.open_planes`. Of `columns` it restores some of the channels; None: all.
    """

    head: BlockHead
    channels: int
    rows: Rows
    planes: tuple[planes.Opened, ...]
    columns: Integers | None = None

    @property
    def steps(self) -> list[int]:
        """The step of each record."""
        return self.head.steps

    @property
    def sequence(self) -> list[int]:
        """The number of each record."""
        return self.head.sequence

    def deflated(self) -> OpenBlock:
        """The same with planes that take little memory."""
        return self._replace(planes=tuple(map(planes.deflated, self.planes)))

    @property
    def unknown(self) -> tuple[str, ...]:
        """Names of its statistics that are unknown to this version."""
        return self.head.layout.unknown


def claimed(message: bytes) -> tuple[int, int]:
    """The records and the channels that a message claims to hold, unverified, in a few bytes.

    (0, 0) if `open_block` refuses it before anything is inflated.
    """
    try:
        return _size(varint.Reader(payload_of(message, _SIZE_BYTES)))
    except DamagedRecord:
        return 0, 0


def _size(reader: varint.Reader) -> tuple[int, int]:
    channels = reader.number(limits.MAX_CHANNELS)
    records = reader.number(limits.MAX_RECORDS)
    if not channels or not records or channels * records > limits.MAX_CELLS:
        raise varint.damaged("a block of reasonable size", f"{records} x {channels} cells")
    return records, channels


def open_block(
    message: bytes,
    *,
    tag: str,
    step: int,
    lineage: int,
    rows: Rows = ROWS,
    heads: Heads | None = None,
) -> OpenBlock:
    """Opens a message up to the point where many blocks can be restored together.

    The statistics that aren't among `rows` may come back as NaN. `heads` saves time for many
    blocks, and gets those that are new. Raises UnreadableRecord.
    """
    payload = unseal(message, Kind.CHANNELS, tag=tag, step=step, lineage=lineage)
    reader = varint.Reader(payload)
    records, channels = _size(reader)
    head = _head(reader, records, step, version_of(message), {} if heads is None else heads)
    needed = wanted(head.layout, rows)
    opened = planes.open_planes(reader, needed, records, channels)
    reader.end()
    return OpenBlock(head, channels, rows, opened)


def _head(reader: varint.Reader, records: int, step: int, version: int, heads: Heads) -> BlockHead:
    """The head of a block at a step; `heads` has those that were read."""
    key = records << 8 | version, step, reader.payload[reader.at : reader.at + _FIRST_BYTES]
    stored, head = heads.get(key, (b"", None))
    # Numbers end where they end: equal bytes are equal numbers, and equally many bytes.
    if head is not None and reader.skip(stored):
        return head
    begin = reader.at
    head = _read_head(reader, records, step, version)
    if len(heads) < _MOST_HEADS and records <= _MOST_RECORDS:
        heads[key] = reader.payload[begin : reader.at], head
    return head


def _read_head(reader: varint.Reader, records: int, step: int, version: int) -> BlockHead:
    # Plain integers: NumPy would take longer for so few.
    numbers = reader.signed_array(3 * records).tolist()
    sequence = list(accumulate(numbers[:records]))
    steps = [step - distance for distance in accumulate(numbers[records : 2 * records])][::-1]
    layout = VERSION_1 if version == 1 else read_layout(reader)
    if min(numbers[1:records] + numbers[records + 1 : 2 * records], default=1) < 1:
        raise varint.damaged("increasing steps", "steps that go back")
    if max(map(abs, (sequence[0], sequence[-1], steps[0], steps[-1]))) >= _FAR:
        raise varint.damaged("steps below 2**62", "larger ones")
    return BlockHead(sequence, steps, numbers[2 * records :], layout)


def restore(blocks: Sequence[OpenBlock]) -> Block:
    """Restores consecutive blocks of one number of channels, and the same columns, as one.

    Their sequence numbers and steps increase from block to block.
    """
    return restore_beside([blocks])


def restore_row(block: OpenBlock, row: int) -> Codes:
    """Restores one statistic, (records, channels); `NAN` if the block doesn't have it."""
    layout, needed = block.head.layout, {row}
    while more := {base for each, base in layout.predicted if each in needed} - needed:
        needed |= more
    shape = 1, 1, len(block.steps), block.channels
    words = {each: np.empty(shape, np.uint16) for each in needed}
    _restore_alike([block], block.rows, layout, words)
    codes: Codes = words[row][0, 0].view(np.int16)
    return codes if block.columns is None else codes[:, block.columns]


def restore_beside(variables: Sequence[Sequence[OpenBlock]]) -> Block:
    """Restores blocks of series with the same heads as one, the channels side by side.

    Each has one number of channels, and the same columns, in all of its blocks.
    """
    blocks = variables[0]
    widths = [own[0].channels for own in variables]
    records = sum(len(block.steps) for block in blocks)
    words = np.empty((len(ROWS), records, sum(widths)), np.uint16)
    ends = list(accumulate(widths))
    first = 0
    for (size, rows, layout), group in groupby(
        enumerate(blocks), lambda b: (len(b[1].steps), b[1].rows, b[1].head.layout)
    ):
        places = [place for place, _ in group]
        last = first + size * len(places)
        for width, numbers in groupby(range(len(variables)), widths.__getitem__):
            some = list(numbers)
            alike = [variables[number][place] for place in places for number in some]
            part = words[:, first:last, ends[some[0]] - width : ends[some[-1]]]
            part = part.reshape(len(ROWS), len(places), size, len(some), width)
            by_row = dict(enumerate(part.transpose(0, 1, 3, 2, 4)))
            _restore_alike(alike, rows, layout, by_row)
        first = last
    sequence, steps, lags = (
        np.array(list(chain.from_iterable(column)), np.int64)
        for column in list(zip(*(block.head for block in blocks), strict=True))[:3]
    )
    unknown = tuple(sorted({name for block in blocks for name in block.unknown}))
    if any(own[0].columns is not None for own in variables):
        starts = [end - width for end, width in zip(ends, widths, strict=True)]
        words = words[..., np.concatenate(list(map(_columns, variables, starts)))]
    return Block(sequence, steps, steps - lags, words.view(np.int16), unknown)


def _columns(blocks: Sequence[OpenBlock], start: int) -> Integers:
    """The columns of a variable's blocks that begin at one of a wide array."""
    columns = blocks[0].columns
    return start + (np.arange(blocks[0].channels) if columns is None else columns)


def _restore_alike(
    blocks: Sequence[OpenBlock], rows: Rows, layout: Layout, words: Mapping[int, Words]
) -> None:
    """Fills the words (blocks, variables, records, channels) of statistics, of blocks of one size.

    There are those of each statistic that predicts one of them.
    """
    for row, own in words.items():
        if row not in layout.rows:
            own[...] = NAN
    for plane, each in enumerate(layout.rows):
        if each is not None and each in words:
            planes.restore_beside([block.planes[plane] for block in blocks], words[each])
    for predicted, base in layout.predicted:
        if predicted in rows and predicted in words:
            np.add(words[predicted], words[base], out=words[predicted])
    for row in layout.rounded:
        if row in rows and row in words:
            _round_counts(words[row])


def _round_counts(words: Words) -> None:
    """Turns codes of values (…, channels) into codes of counts, some channels at a time."""
    channels = words.shape[-1]
    width = max(_PIECE * channels // max(words.size, 1), 1)
    for first in range(0, channels, width):
        part = words[..., first : first + width]
        counts = np.rint(dequantize(part.view(np.int16)))
        part[...] = quantize_counts(counts).view(np.uint16)


def _check_size(records: int, widest: int) -> None:
    if records > limits.MAX_RECORDS or widest * records > limits.MAX_CELLS:
        raise InvalidArgument(
            f"Could not encode a block: expected at most {limits.MAX_RECORDS} records and "
            f"{limits.MAX_CELLS} cells, got {records} records of {widest} channels. Store them in "
            f"several blocks."
        )


def _check(block: Block) -> None:
    records = len(block.steps)
    fits = block.codes.dtype == np.int16 and block.codes.ndim == 3 and block.codes.size > 0
    if not fits or block.codes.shape[:2] != (len(ROWS), records):
        raise InvalidArgument(
            f"Could not encode a block: expected int16 codes of shape ({len(ROWS)}, {records}, "
            f"channels), got {block.codes.dtype} {block.codes.shape}. Pass quantised statistics."
        )
    if len(block.sequence) != records or len(block.past_steps) != records:
        raise InvalidArgument(
            f"Could not encode a block: expected {records} sequence numbers and past steps, got "
            f"{len(block.sequence)} and {len(block.past_steps)}. Pass one of each per record."
        )
    if not (varint.increase(block.steps) and varint.increase(block.sequence)):
        raise InvalidArgument(
            f"Could not encode a block: expected strictly increasing steps and sequence numbers, "
            f"got steps {block.steps.tolist()}. Start a new lineage when training goes back."
        )
