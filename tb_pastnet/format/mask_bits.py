"""One mask of one variable after one change: complete, with at most one bit per element.

Each message decodes by itself, so a damaged one loses only one change.
docs/reference/record_format.md has its fields, under "Masks".
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tb_pastnet.errors import DamagedRecord, InvalidArgument
from tb_pastnet.format import limits, planes, varint
from tb_pastnet.format.envelope import Kind, payload_of, seal, unseal

Bits = npt.NDArray[np.uint8]

_ZEROS, _ONES, _PACKED, _DEFLATED = range(4)
_LEVEL = 6
_HEAD_BYTES = 30


@dataclass(frozen=True, eq=False)
class MaskBits:
    """A mask from a step on, the first whose record it is in force in.

    The number is that of the change in the lineage that made it. The bits, uint8 (ceil(elements /
    8),), are what `numpy.packbits` makes of the flattened mask: 1 = through, 0 = held.
    """

    number: int
    step: int
    elements: int
    bits: Bits

    @property
    def flags(self) -> npt.NDArray[np.bool_]:
        """The mask, bool (elements,), True = through."""
        return np.unpackbits(self.bits, count=self.elements).view(np.bool_)


def encode_mask(mask: MaskBits, *, tag: str, step: int, lineage: int) -> bytes:
    """Packs and seals a mask; raises InvalidArgument if its bits don't fit, or are too many."""
    _check(mask)
    coding, data = _pack(mask)
    payload = varint.encode([mask.number]) + varint.encode_signed([step - mask.step])
    payload += varint.encode([mask.elements, coding]) + data
    return seal(payload, Kind.MASK, tag=tag, step=step, lineage=lineage)


def claimed(message: bytes) -> tuple[int, int]:
    """The number and the elements that a message claims to have, unverified; -1 if it can't."""
    reader = varint.Reader(payload_of(message, _HEAD_BYTES))
    try:
        number, _, elements = reader.number(), reader.signed(), reader.number(limits.MAX_MASK)
    except DamagedRecord:
        return -1, 0
    return number, elements


def decode_mask(
    message: bytes,
    *,
    tag: str,
    step: int,
    lineage: int,
    most: int = limits.MAX_MASK,
    through: int | None = None,
) -> MaskBits:
    """Opens a message and restores its mask, exactly; raises UnreadableRecord.

    At most `most` elements, such as those of the variable, are accepted and allocated. `through`,
    if known, is how many of them the mask lets through; a constant mask has to.
    """
    payload = unseal(message, Kind.MASK, tag=tag, step=step, lineage=lineage)
    reader = varint.Reader(payload)
    number = reader.number(limits.MAX_STEP)
    own_step = step - reader.signed()
    if not 0 <= own_step <= limits.MAX_STEP:
        raise varint.damaged(f"a step from 0 to {limits.MAX_STEP}", str(own_step))
    elements = reader.number(min(most, limits.MAX_MASK))
    bits = _unpack(reader, elements, through)
    if _padding(bits, elements):
        raise varint.damaged("zeros behind the last element", "ones")
    return MaskBits(number, own_step, elements, bits)


def _pack(mask: MaskBits) -> tuple[int, bytes]:
    if not mask.bits.any():
        return _ZEROS, b""
    if np.array_equal(mask.bits, _all_through(mask.elements)):
        return _ONES, b""
    packed = mask.bits.tobytes()
    deflated = zlib.compress(packed, _LEVEL)
    return (_DEFLATED, deflated) if len(deflated) < len(packed) else (_PACKED, packed)


def _unpack(reader: varint.Reader, elements: int, through: int | None) -> Bits:
    size = _size(elements)
    coding = reader.number()
    data = reader.take(reader.left)
    if coding in (_ZEROS, _ONES):
        if data:
            raise varint.damaged("the end of the record", f"{len(data)} more bytes")
        if through not in (None, elements * (coding == _ONES)):
            raise varint.damaged(f"a mask of {through} ones", "a constant one")
        return _all_through(elements) if coding == _ONES else np.zeros(size, np.uint8)
    if coding == _DEFLATED:
        data = planes.inflate(data, size)
    elif coding != _PACKED:
        raise varint.damaged("a mask of a coding from 0 to 3", str(coding))
    if len(data) != size:
        raise varint.damaged(f"{size} bytes of a mask", str(len(data)))
    return np.frombuffer(data, np.uint8)


def _all_through(elements: int) -> Bits:
    bits = np.full(_size(elements), 0xFF, np.uint8)
    if elements % 8:
        bits[-1] = 0xFF << (8 - elements % 8) & 0xFF
    return bits


def _size(elements: int) -> int:
    return (elements + 7) // 8


def _padding(bits: Bits, elements: int) -> int:
    return int(bits[-1]) & (0xFF >> elements % 8) if elements % 8 else 0


def _check(mask: MaskBits) -> None:
    size = _size(mask.elements)
    if mask.bits.dtype != np.uint8 or mask.bits.shape != (size,):
        raise InvalidArgument(
            f"Could not encode a mask: expected uint8 bits of shape ({size},) for "
            f"{mask.elements} elements, got {mask.bits.dtype} {mask.bits.shape}. "
            f"Pass numpy.packbits of the flattened mask."
        )
    if not 0 <= mask.elements <= limits.MAX_MASK:
        raise InvalidArgument(
            f"Could not encode a mask: expected at most {limits.MAX_MASK} elements, got "
            f"{mask.elements}. Split the variable."
        )
    if _padding(mask.bits, mask.elements):
        raise InvalidArgument(
            f"Could not encode a mask: expected zeros behind element {mask.elements}, got ones. "
            f"Pass numpy.packbits of the flattened mask."
        )
