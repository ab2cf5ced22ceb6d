"""The recording overhead: time of the training, and bytes.

A message holds the totals of one lineage so far: the newest readable one has them all. It is their
number, then the fields of `Overhead` in their order, as docs/reference/record_format.md has them; a
reader skips additional numbers.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields

from tb_pastnet.errors import InvalidArgument
from tb_pastnet.format import limits, varint
from tb_pastnet.format.envelope import Kind, seal, unseal


@dataclass(frozen=True)
class Overhead:
    """The recording overhead so far. Overheads add up. Times are in seconds.

    Attributes:
        steps: steps of the training that were seen.
        training: from the first of them to the last, including the overhead.
        records: of these, spent on measuring records,
        copies: on copying past values,
        masks: on following masks and auditing held weights,
        probe: on evaluating the probe,
        other: and on anything else that training waited for, such as `flush`.
        writer: CPU time of the writer thread, which runs next to the training.
        bytes: written.
        memory: bytes of the past values, and of what held weights are compared with; of several
            lineages the most. 0 in logs of earlier versions.

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
    memory: int = 0

    @property
    def seconds(self) -> float:
        """All that training waited for."""
        return self.records + self.copies + self.masks + self.probe + self.other

    @property
    def share(self) -> float:
        """The recording overhead as a share of the training's time; NaN if no time has passed."""
        return self.seconds / self.training if self.training > 0 else math.nan

    def __add__(self, second: Overhead) -> Overhead:
        """Adds two overheads field by field; memory is released before it is taken again."""
        sums = {name: getattr(self, name) + getattr(second, name) for name in _NAMES}
        return Overhead(**sums | {"memory": max(self.memory, second.memory)})


_COUNTS = ("steps", "bytes", "memory")
_LEAST = 9
"""Fields that each version has written."""
_NAMES = tuple(field.name for field in fields(Overhead))


def encode_overhead(overhead: Overhead, *, tag: str, step: int, lineage: int) -> bytes:
    """Packs and seals an overhead; times are stored to the microsecond.

    Raises InvalidArgument if a number is negative or isn't finite.
    """
    payload = varint.encode([len(_NAMES), *(_number(overhead, name) for name in _NAMES)])
    return seal(payload, Kind.OVERHEAD, tag=tag, step=step, lineage=lineage)


def decode_overhead(message: bytes, *, tag: str, step: int, lineage: int) -> Overhead:
    """Opens a message and restores its overhead; raises UnreadableRecord."""
    payload = unseal(message, Kind.OVERHEAD, tag=tag, step=step, lineage=lineage)
    reader = varint.Reader(payload)
    count = reader.number(limits.MAX_NUMBERS)
    if count < _LEAST:
        raise varint.damaged(f"at least {_LEAST} numbers", str(count))
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
            f"Could not encode an overhead: expected {name} of at least 0, got {value!r}. Measured "
            f"time doesn't go back."
        )
    return min(int(value) if name in _COUNTS else round(value * 1e6), limits.MAX_STEP)
