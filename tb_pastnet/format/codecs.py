"""The codec of each kind of message: its tags, and its decoder."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from tb_pastnet.format import block, mask_bits, tags
from tb_pastnet.format.block import decode_block
from tb_pastnet.format.compared import decode_compared
from tb_pastnet.format.description import decode_description
from tb_pastnet.format.envelope import Kind
from tb_pastnet.format.follows import decode_follows
from tb_pastnet.format.function_change import decode_function_change
from tb_pastnet.format.mask_bits import decode_mask
from tb_pastnet.format.mask_log import decode_mask_log
from tb_pastnet.format.overhead import decode_overhead
from tb_pastnet.format.sketches import decode_sketches
from tb_pastnet.format.standing import decode_standing
from tb_pastnet.format.timeline import decode_timeline
from tb_pastnet.format.violations import decode_violations


class Codec(NamedTuple):
    """How to find and read messages of one kind.

    `stands_under` returns whether a tag holds them; `decode` takes a message, and by keyword the
    `tag`, `step` and `lineage` of its place. `work` is what it claims to hold that its own limits
    don't bound: cells, or bytes of a mask, see `budget`.
    """

    stands_under: Callable[[str], object]
    decode: Callable[..., Any]
    work: Callable[[bytes], int] = lambda _: 0


def _cells(message: bytes) -> int:
    records, channels = block.claimed(message)
    return records * channels


CODECS = {
    Kind.CHANNELS: Codec(tags.is_channels, decode_block, _cells),
    Kind.TIMELINE: Codec(tags.TAG_TIMELINE.__eq__, decode_timeline),
    Kind.DESCRIPTION: Codec(tags.DESCRIPTIONS.__contains__, decode_description),
    Kind.MASKS: Codec(tags.TAG_MASKS.__eq__, decode_mask_log),
    Kind.MASK: Codec(tags.mask_of, decode_mask, lambda message: mask_bits.claimed(message)[1] // 8),
    Kind.VIOLATIONS: Codec(tags.TAG_VIOLATIONS.__eq__, decode_violations),
    Kind.FUNCTION: Codec(tags.TAG_FUNCTION.__eq__, decode_function_change),
    Kind.OVERHEAD: Codec(tags.TAG_OVERHEAD.__eq__, decode_overhead),
    Kind.SKETCHES: Codec(tags.TAG_SKETCHES.__eq__, decode_sketches),
    Kind.FOLLOWS: Codec(tags.TAG_FOLLOWS.__eq__, decode_follows),
    Kind.STANDING: Codec(tags.TAG_STANDING.__eq__, decode_standing),
    Kind.COMPARED: Codec(tags.TAG_COMPARED.__eq__, decode_compared),
}
"""Of each kind."""


def codec_of(tag: str) -> Codec | None:
    """The codec of a lineage's tag; None if only a later version knows it."""
    return next((codec for codec in CODECS.values() if codec.stands_under(tag)), None)
