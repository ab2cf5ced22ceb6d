"""The log of mask changes, without the masks themselves: small enough to read at once.

Each message holds the changes since the one before, as deflated JSON. A change's number counts all
changes of a lineage, so a missing number is a lost change. The mask itself is stored under
the variable's own tag, see `mask_bits`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from tb_pastnet.errors import InvalidArgument
from tb_pastnet.format import json_payload, limits, varint
from tb_pastnet.format.envelope import Kind, seal, unseal
from tb_pastnet.format.json_payload import natural, text


@dataclass(frozen=True)
class MaskChange:
    """One change of one mask, "kept" or "trainable"; a later version may write others.

    Numbers go 0, 1, 2, … over all changes of the lineage. From `step` on, the first whose record it
    is in force in, `through` of the variable's elements are let through.
    """

    number: int
    step: int
    variable: str
    mask: str
    through: int
    elements: int


def encode_mask_log(changes: Sequence[MaskChange], *, tag: str, step: int, lineage: int) -> bytes:
    """Packs and seals some changes; raises InvalidArgument if their numbers don't increase."""
    numbers = [change.number for change in changes]
    if not varint.increase(numbers):
        raise InvalidArgument(
            f"Could not encode changes of masks: expected increasing numbers, got {numbers[:8]}. "
            f"Pass them in the order in which they were made."
        )
    entries = [asdict(change) for change in changes]
    with json_payload.encoding("changes of masks"):
        for entry in entries:
            _change(entry)
    payload = json_payload.pack({"changes": entries})
    return seal(payload, Kind.MASKS, tag=tag, step=step, lineage=lineage)


def decode_mask_log(message: bytes, *, tag: str, step: int, lineage: int) -> tuple[MaskChange, ...]:
    """Opens a message and restores its changes, numbers increasing; raises UnreadableRecord."""
    payload = unseal(message, Kind.MASKS, tag=tag, step=step, lineage=lineage)
    data = json_payload.unpack(payload)
    with json_payload.expecting("complete changes of masks"):
        changes = tuple(_change(entry) for entry in data["changes"])
    if not varint.increase([change.number for change in changes]):
        raise varint.damaged("increasing numbers of changes", "numbers that go back")
    return changes


def _change(data: Mapping[str, Any]) -> MaskChange:
    elements = natural(data["elements"], limits.MAX_MASK)
    return MaskChange(
        number=natural(data["number"]),
        step=natural(data["step"]),
        variable=text(data["variable"]),
        mask=text(data["mask"]),
        through=natural(data["through"], elements),
        elements=elements,
    )
