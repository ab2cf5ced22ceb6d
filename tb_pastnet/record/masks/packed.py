"""Masks as bits: in a saved model, with the proof of a resume, and as text in a layer's config."""

from __future__ import annotations

import base64
import io
import json
import math
import zlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tb_pastnet.core.axes import ChannelAxis
from tb_pastnet.core.mask_input import Mask
from tb_pastnet.errors import InvalidArgument

Bits = npt.NDArray[np.uint8]
Sums = npt.NDArray[np.uint32]

_HEAD = "head"


class SavedMasks(NamedTuple):
    """The masks of one variable in a saved model, with checksums of each channel's held values."""

    kept: Mask
    through: Mask
    sums: Sums


def save(origin: str, masks: Mapping[str, SavedMasks]) -> bytes:
    """Packs the masks of a model, one bit per element and mask, before compression."""
    shapes = {name: saved.kept.shape for name, saved in masks.items()}
    head = json.dumps({"origin": origin, "variables": shapes})
    arrays: dict[str, npt.NDArray[Any]] = {_HEAD: np.frombuffer(head.encode(), np.uint8)}
    for number, saved in enumerate(masks.values()):
        arrays[f"kept_{number}"] = np.packbits(saved.kept)
        arrays[f"through_{number}"] = np.packbits(saved.through)
        arrays[f"held_{number}"] = saved.sums
    stream = io.BytesIO()
    np.savez_compressed(stream, **arrays)  # type: ignore[arg-type]
    return stream.getvalue()


def load(
    data: bytes, check: Callable[[str, tuple[int, ...]], None]
) -> tuple[str, dict[str, SavedMasks]]:
    """Unpacks what `save` packed; first `check` raises if a name or shape isn't a weight's."""
    with np.load(io.BytesIO(data), allow_pickle=False) as stored:
        arrays = dict(stored)
    head = json.loads(arrays[_HEAD].tobytes())
    shapes = {name: tuple(shape) for name, shape in head["variables"].items()}
    for name, shape in shapes.items():
        check(name, shape)
    masks = {
        name: SavedMasks(
            _unpacked(arrays[f"kept_{number}"], shape),
            _unpacked(arrays[f"through_{number}"], shape),
            arrays[f"held_{number}"],
        )
        for number, (name, shape) in enumerate(shapes.items())
    }
    return head["origin"], masks


class StoredMasks(NamedTuple):
    """A layer's masks of a weight: `held` is used where `through` is 0."""

    kept: Mask
    through: Mask
    held: npt.NDArray[Any]


def pack(stored: StoredMasks) -> dict[str, str] | None:
    """Packs masks as bits, and only the frozen values; None if everything is let through."""
    if stored.through.all():
        return None
    frozen = stored.held[stored.kept & ~stored.through]
    return {
        "kept": _text(np.packbits(stored.kept).tobytes()),
        "through": _text(np.packbits(stored.through).tobytes()),
        "frozen": _text(frozen.tobytes()),
    }


def unpack(packed: Mapping[str, str], shape: Sequence[int], dtype: Any, name: str) -> StoredMasks:
    """Unpacks what `pack` packed: held values are zero except where frozen.

    Raises InvalidArgument if it was packed for another shape or dtype, or is damaged.
    """
    kept, through = (_bits(packed.get(word), shape, name) for word in ("kept", "through"))
    frozen = kept & ~through
    count = int(np.count_nonzero(frozen))
    held = np.zeros(tuple(shape), dtype)
    data = _bytes(packed.get("frozen"), count * held.dtype.itemsize, name)
    held[frozen] = np.frombuffer(data, held.dtype)
    return StoredMasks(kept, through & kept, held)


def _text(data: bytes) -> str:
    return base64.b64encode(zlib.compress(data)).decode()


def _bits(text: Any, shape: Sequence[int], name: str) -> Mask:
    data = _bytes(text, -(-math.prod(shape) // 8), name)
    return _unpacked(np.frombuffer(data, np.uint8), shape)


def _unpacked(bits: Bits, shape: Sequence[int]) -> Mask:
    return np.unpackbits(bits, count=math.prod(shape)).astype(bool).reshape(tuple(shape))


def _bytes(text: Any, size: int, name: str) -> bytes:
    """The bytes of a text in a file, which is untrusted."""
    decoder, data, got = zlib.decompressobj(), b"", ""
    try:
        # Never inflates more than expected.
        data = decoder.decompress(base64.b64decode(text, validate=True), size + 1)
    except (TypeError, ValueError, zlib.error) as error:
        got = f"damaged text ({type(error).__name__})"
    else:
        if len(data) > size:
            got = "more"
        elif len(data) < size or not decoder.eof:
            got = f"{len(data)}" + ("" if decoder.eof else " of damaged text")
    if got:
        raise InvalidArgument(
            f"Could not read the masks of {name!r} from its config: expected {size} bytes, got "
            f"{got}. Build the layer with the shape and dtype that the masks were made for, or "
            f"pass masks=None."
        )
    return data


class Resumed(NamedTuple):
    """The comparison after masks were loaded, by checksums of each channel's held values.

    Attributes:
        equal: variables whose masks are restored and whose held values are bit-identical.
        changed: for each other variable, the channels whose held values differ from those saved.

    Example:
        >>> report = Resumed(("dense/kernel",), {"dense_1/kernel": (3,)})
        >>> print(report)
        1 of 2 variables with masks are restored as saved. Held values differ in 'dense_1/kernel',
        channels 3.
    """

    equal: tuple[str, ...]
    changed: Mapping[str, tuple[int, ...]]

    @classmethod
    def of(cls, sums: Mapping[str, tuple[Sums, Sums]]) -> Resumed:
        """Compares saved checksums with those of the current values, by variable."""
        differ = {name: np.flatnonzero(saved != current) for name, (saved, current) in sums.items()}
        return cls(
            tuple(name for name, channels in differ.items() if not channels.size),
            {name: tuple(channels.tolist()) for name, channels in differ.items() if channels.size},
        )

    def __bool__(self) -> bool:
        """Whether everything is restored."""
        return not self.changed

    def __str__(self) -> str:
        count = len(self.equal) + len(self.changed)
        text = f"{len(self.equal)} of {count} variables with masks are restored as saved."
        for name, channels in self.changed.items():
            shown = ", ".join(map(str, channels[:8])) + (", …" if len(channels) > 8 else "")
            text += f" Held values differ in {name!r},\nchannels {shown}."
        return text


def check_sums(values: npt.NDArray[Any], through: Mask, axis: ChannelAxis) -> Sums:
    """CRC-32 of the bytes of the held elements of each channel."""
    rows = zip(np.ascontiguousarray(axis.split(values)), axis.split(~through), strict=True)
    return np.array([zlib.crc32(row[held].tobytes()) for row, held in rows], np.uint32)
