"""Masks as bits: in a saved model, with the proof of a resume, and as text in a layer's config."""

from __future__ import annotations

import base64
import io
import json
import math
import zipfile
import zlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tb_pastnet.core.axes import ChannelAxis
from tb_pastnet.core.mask_input import Mask
from tb_pastnet.errors import InvalidArgument
from tb_pastnet.record.masks.array_file import read_array, untrusted

Bits = npt.NDArray[np.uint8]
Sums = npt.NDArray[np.uint32]

MEND = "Load an earlier file, or make the masks again."

_HEAD = "head"
_EXTRA = 4096
"""Bytes of the headers of a weight's arrays in a zip, and more."""


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


class Bounds(NamedTuple):
    """The most bytes of packed masks, and of their head once inflated."""

    packed: int
    head: int

    @classmethod
    def of(cls, shapes: Mapping[str, tuple[int, ...]], channels: int) -> Bounds:
        """Those of masks of weights of these shapes, with so many channels together."""
        head = _EXTRA + len(json.dumps(shapes))
        bits = sum(_EXTRA + 2 * -(-math.prod(shape) // 8) for shape in shapes.values())
        # What doesn't deflate grows a little.
        return cls((head + bits + 4 * channels) * 33 // 32, head)


def load(
    data: bytes, bounds: Bounds, check: Callable[[str, tuple[int, ...]], int], source: str
) -> tuple[str, dict[str, SavedMasks]]:
    """Unpacks what `save` packed.

    Before anything of a weight is inflated, `check` raises if a name or shape isn't a weight's, and
    returns the number of its channels. Raises InvalidArgument for damaged bytes of some source.
    """
    with untrusted(f"load the masks in {source}", "those of Masks", MEND):
        if len(data) > bounds.packed:
            raise ValueError(f"{len(data)} bytes, more than {bounds.packed}")
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            return _load(archive, bounds.head, check)


def _load(
    archive: zipfile.ZipFile, most: int, check: Callable[[str, tuple[int, ...]], int]
) -> tuple[str, dict[str, SavedMasks]]:
    head = json.loads(read_array(archive, _HEAD, most).tobytes())
    masks = {}
    for number, (name, given) in enumerate(head["variables"].items()):
        shape = tuple(given)
        channels, size = check(name, shape), -(-math.prod(shape) // 8)
        kept = read_array(archive, f"kept_{number}", size)
        through = read_array(archive, f"through_{number}", size)
        sums = read_array(archive, f"held_{number}", 4 * channels)
        forms = [(each.dtype.name, each.shape) for each in (kept, through, sums)]
        if forms != [("uint8", (size,))] * 2 + [("uint32", (channels,))]:
            raise ValueError(f"arrays of {name!r:.60} have other forms")
        masks[name] = SavedMasks(_unpacked(kept, shape), _unpacked(through, shape), sums)
    return origin_in(head), masks


def origin_in(head: Mapping[str, Any]) -> str:
    """The origin of weights in an untrusted head; raises ValueError if it is none."""
    origin = head["origin"]
    if not isinstance(origin, str) or len(origin) > 64 or not origin.isascii():
        raise ValueError("an origin of letters is missing")
    return origin


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


def misfit(name: str, shape: tuple[int, ...], own: tuple[int, ...] | None) -> InvalidArgument:
    """The error for masks in a file that aren't those of a weight; None: there is no such one."""
    got = "no such variable" if own is None else f"shape {own}"
    return InvalidArgument(
        f"Could not load the masks of {name!r}: expected a variable of shape {shape}, as in the "
        f"file, got {got} in the model. Load them into a model of the same structure."
    )
