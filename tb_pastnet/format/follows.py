"""How far weights that follow others are from these, such as a target network from its source.

Some consecutive records are stored in one message, which decodes by itself.
docs/reference/record_format.md has its fields. Unknown keys of the head and unknown measures are
ignored; a missing measure is NaN.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tb_pastnet.errors import InvalidArgument
from tb_pastnet.format import json_payload, limits, planes, varint
from tb_pastnet.format.envelope import Kind, seal, unseal
from tb_pastnet.format.json_payload import items, natural, numbers, text

Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float32]

MEASURES = ("distance", "covered", "moved")
"""The measures of each channel of a target t with its source s, where t' is t at the record before:

- distance: ‖t − s‖.
- covered: (t − t')·(s − t') / ‖s − t'‖², the share of the distance that was covered since t'. NaN
  if there was none.
- moved: ‖t − t'‖.

All are NaN if a value isn't finite.
"""
DISTANCE, COVERED, MOVED = range(len(MEASURES))


@dataclass(frozen=True)
class FollowPair:
    """A weight that follows another one.

    Attributes:
        target: the id of its variable.
        source: that of the variable that it follows.
        channels: of the target.
        unequal: how many of them differed from the source before the first step; None: unknown.
    """

    target: str
    source: str
    channels: int
    unequal: int | None = None


@dataclass(frozen=True, eq=False)
class Follows:
    """Records of how weights follow others, oldest first."""

    pairs: tuple[FollowPair, ...]
    # int64 (records,), the numbers of the records that these belong to, increasing
    sequence: Integers
    steps: Integers  # int64 (records,), strictly increasing
    past_steps: Integers  # int64 (records,), the step of t'
    values: Floats  # float32 (3, records, channels of all pairs), see `MEASURES`


def encode_follows(follows: Follows, *, tag: str, step: int, lineage: int) -> bytes:
    """Packs and seals some records; raises InvalidArgument if a reader would refuse them."""
    data = {
        "measures": list(MEASURES),
        "pairs": [asdict(pair) for pair in follows.pairs],
        **{key: getattr(follows, key).tolist() for key in ("sequence", "steps", "past_steps")},
    }
    with json_payload.encoding("weights that follow"):
        shape = _Head(data).shape
    if follows.values.shape != shape:
        raise InvalidArgument(
            f"Could not encode weights that follow: expected values of shape {shape}, got "
            f"{follows.values.shape}. Pass all measures of each channel."
        )
    head = json_payload.pack(data)
    values = planes.deflate(follows.values.astype("<f4").tobytes(), 6)
    payload = varint.encode([len(head)]) + head + values
    return seal(payload, Kind.FOLLOWS, tag=tag, step=step, lineage=lineage)


def decode_follows(message: bytes, *, tag: str, step: int, lineage: int) -> Follows:
    """Opens a message and restores its records, exactly; raises UnreadableRecord."""
    reader = varint.Reader(unseal(message, Kind.FOLLOWS, tag=tag, step=step, lineage=lineage))
    data = json_payload.unpack(reader.take(reader.number(limits.MAX_MESSAGE)))
    with json_payload.expecting("weights that follow"):
        head = _Head(data)
    raw = planes.inflate(reader.take(reader.left), 4 * math.prod(head.shape))
    stored = np.frombuffer(raw, "<f4").reshape(head.shape)
    values = np.full((len(MEASURES), *head.shape[1:]), np.nan, np.float32)
    for row, name in enumerate(MEASURES):
        if name in head.measures:
            values[row] = stored[head.measures.index(name)]
    return Follows(head.pairs, head.sequence, head.steps, head.past_steps, values)


class _Head:
    """The checked head of a message; raises ValueError, or as looking up does."""

    def __init__(self, data: Mapping[str, Any]) -> None:
        self.measures = [text(name) for name in items(data["measures"], limits.MAX_INPUTS)]
        self.pairs = tuple(_pair(entry) for entry in items(data["pairs"], limits.MAX_PLACES))
        self.sequence = numbers(data["sequence"], natural)
        self.steps = numbers(data["steps"], natural)
        self.past_steps = numbers(data["past_steps"], natural)
        if len({pair.target for pair in self.pairs}) < len(self.pairs):
            raise ValueError("a target is there twice")
        if not len(self.sequence) == len(self.steps) == len(self.past_steps):
            raise ValueError("a step of each record is missing")
        if not (varint.increase(self.sequence) and varint.increase(self.steps)):
            raise ValueError("steps go back")
        channels = sum(pair.channels for pair in self.pairs)
        self.shape = len(self.measures), len(self.steps), channels
        if not 0 < math.prod(self.shape) <= limits.MAX_VALUES:
            raise ValueError("records of reasonable size are missing")
        if len(set(self.measures)) < len(self.measures):
            raise ValueError("a measure is there twice")


def _pair(data: Mapping[str, Any]) -> FollowPair:
    unequal = data.get("unequal")
    channels = natural(data["channels"], limits.MAX_CHANNELS)
    return FollowPair(
        text(data["target"]),
        text(data["source"]),
        channels,
        None if unequal is None else natural(unequal, channels),
    )
