"""What recording has cost: time of the training, and bytes.

A message holds the totals of one lineage so far, so that the newest that can be read tells all. It
is their number, then the fields of `Overhead` in their order, as docs/reference/record_format.md
has them; a reader passes over numbers behind those that it knows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields

from tb_pastnet.errors import InvalidArgument
from tb_pastnet.format import limits, varint
from tb_pastnet.format.envelope import Kind, seal, unseal


@dataclass(frozen=True)
class Overhead:
    """What recording has cost so far. Overheads add up. Times are in seconds.

    Attributes:
        steps: steps of the training that were seen.
        training: from when the first of them was seen to the last, ours included.
        records: of these, spent on measuring records,
        copies: on copying past values,
        masks: on following masks and auditing what they hold,
        probe: on evaluating the probe,
        other: and on all else that training waited for, such as `flush`.
        writer: processor time of the thread that writes, beside the training.
        bytes: that were written.

    Example:
        >>> cost = Overhead(steps=500, training=50.0, records=0.3, copies=0.1, bytes=70_000)
        >>> f"{cost.share:.1%} of {cost.training:.0f} s"
        '0.8% of 50 s'
    """

    steps: int = 0
    training: float = 0.0
    records: float = 0.0
    copies: float = 0.0
    masks: float = 0.0
    probe: float = 0.0
    other: float = 0.0
    writer: float = 0.0
    bytes: int = 0

    @property
    def seconds(self) -> float:
        """All that training waited for."""
        return self.records + self.copies + self.masks + self.probe + self.other

    @property
    def share(self) -> float:
        """The share of the training's time that this is; NaN where none has passed."""
        return self.seconds / self.training if self.training > 0 else math.nan

    def __add__(self, second: Overhead) -> Overhead:
        """Adds two overheads field by field."""
        return Overhead(*(getattr(self, name) + getattr(second, name) for name in _NAMES))


_COUNTS = ("steps", "bytes")
_NAMES = tuple(field.name for field in fields(Overhead))


def encode_overhead(overhead: Overhead, *, tag: str, step: int, lineage: int) -> bytes:
    """Packs and seals an overhead; times are stored to the microsecond.

    Raises InvalidArgument where a number is negative or isn't finite.
    """
    payload = varint.encode([len(_NAMES), *(_number(overhead, name) for name in _NAMES)])
    return seal(payload, Kind.OVERHEAD, tag=tag, step=step, lineage=lineage)


def decode_overhead(message: bytes, *, tag: str, step: int, lineage: int) -> Overhead:
    """Opens a message and restores its overhead; raises UnreadableRecord."""
    payload = unseal(message, Kind.OVERHEAD, tag=tag, step=step, lineage=lineage)
    reader = varint.Reader(payload)
    count = reader.number(limits.MAX_NUMBERS)
    if count < len(_NAMES):
        raise varint.damaged(f"at least {len(_NAMES)} numbers", str(count))
    numbers = [reader.number(limits.MAX_STEP) for _ in range(count)]
    reader.end()
    totals = dict(zip(_NAMES, numbers, strict=False))
    return Overhead(
        **{name: n if name in _COUNTS else n / 1e6 for name, n in totals.items()}  # type: ignore[arg-type]
    )


def _number(overhead: Overhead, name: str) -> int:
    value = getattr(overhead, name)
    if not 0 <= value < math.inf:
        raise InvalidArgument(
            f"Could not encode an overhead: expected {name} of at least 0, got {value!r}. Time "
            f"that is measured doesn't go back."
        )
    return int(value) if name in _COUNTS else round(value * 1e6)
