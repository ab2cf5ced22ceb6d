"""The held elements of one tensor: gradients become zero there, and values are put back.

Nothing here changes a free element, and nothing computes with a held one: bits are copied.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Sequence
from functools import cache, partial
from types import ModuleType
from typing import Any, Protocol

import numpy as np
import torch

from tb_pastnet.core.mask_words import Bits, packed_words, unpacked_words
from tb_pastnet.core.numba_switch import numba_kernels
from tb_pastnet.core.parallel import processors, together
from tb_pastnet.torch.saved_state import as_integers

PACKED_FROM = 1 << 12
"""Elements from which masks of bits are used on a CPU: the kernel has to be loaded."""

_PART = 1 << 19
"""Elements, or words of 8 bytes, that one thread zeros or restores at once."""

_WORDS: dict[int, Any] = {2: np.uint16, 4: np.uint32, 8: np.uint64}


class Elements(Protocol):
    """Which elements of a tensor are held, and at which values."""

    shape: torch.Size

    @property
    def arrays(self) -> Sequence[Any]:
        """What takes memory."""

    def fits(self, tensor: torch.Tensor) -> bool:
        """Whether the tensor has its shape, device and dtype."""

    def zero(self, gradient: torch.Tensor) -> torch.Tensor:
        """Sets a gradient to zero at held elements, even if it is NaN there; returns it."""

    def restore(self, tensor: torch.Tensor) -> None:
        """Puts the values of held elements back."""

    def differing(self, tensor: torch.Tensor) -> int:
        """How many held elements of a tensor have other bits than they are held at.

        If nothing is frozen, a zero may have either sign.
        """

    def for_other(self, tensor: torch.Tensor) -> Elements:
        """The same for a tensor of its shape, but of another device or dtype."""


def held_elements(
    now: torch.Tensor, kept: torch.Tensor, through: torch.Tensor, packed: tuple[Bits, Bits] | None
) -> Elements | None:
    """The elements that masks hold, at their current values; None if they hold none.

    Args:
        now: the tensor, or what a rank has of it.
        kept: bool tensor of its shape, in CPU memory: False is pruned.
        through: the same: False is held.
        packed: the same as words, if there are such already.
    """
    if bool(through.all()):
        return None
    kept = kept | through
    held_range = _range_of(~through)
    if held_range is not None and now.is_contiguous():
        of_range = kept.reshape(-1)[held_range]
        if bool(of_range.all()):
            return RangeElements(now, held_range, now.reshape(-1)[held_range].clone())
        if not bool(of_range.any()):
            return RangeElements(now, held_range, None)
    plain = now.is_cpu and now.element_size() in _WORDS and now.is_contiguous()
    if plain and now.numel() >= PACKED_FROM and _kernels() is not None:
        bits = packed or (packed_words(kept.numpy()), packed_words(through.numpy()))
        return PackedElements(now, bits, as_integers(now)[kept & ~through])
    held = ~through.to(now.device)
    values = None
    if bool((kept & ~through).any()):
        values = now.clone().masked_fill_(~kept.to(now.device), 0)[held]
    return HeldElements(held, values)


def _range_of(held: torch.Tensor) -> slice | None:
    """The only range of elements that are held, as of first rows; None if there are several."""
    flat = held.reshape(-1).numpy()
    first, count = int(flat.argmax()), int(np.count_nonzero(flat))
    own = slice(first, first + count)
    return own if flat[own].all() else None


@cache
def _kernels() -> ModuleType | None:
    return numba_kernels("torch", "held_kernel")


class HeldElements:
    """Which elements of a tensor are held, one byte for each, on any device: see `Elements`.

    Args:
        held: bool tensor of the shape of what this rank has, on its device: True is held.
        values: of the held elements, in their order; None: all of them are zero.
    """

    def __init__(self, held: torch.Tensor, values: torch.Tensor | None) -> None:
        self.held, self.shape = held, held.shape
        self.values = values

    @property
    def arrays(self) -> Sequence[Any]:
        """See `Elements`."""
        return [self.held] if self.values is None else [self.held, self.values]

    def fits(self, tensor: torch.Tensor) -> bool:
        """See `Elements`."""
        values = self.values
        return (
            tensor.shape == self.shape
            and tensor.device == self.held.device
            and (values is None or values.dtype == tensor.dtype)
        )

    def zero(self, gradient: torch.Tensor) -> torch.Tensor:
        """See `Elements`."""
        if gradient.is_sparse:
            gradient = gradient.coalesce()
            gradient.values().masked_fill_(self.held[tuple(gradient.indices())], 0)
        else:
            _words(gradient).masked_fill_(self.held, 0)
        return gradient

    def restore(self, tensor: torch.Tensor) -> None:
        """See `Elements`."""
        if self.values is None:
            _words(tensor).masked_fill_(self.held, 0)
        else:
            _words(tensor).masked_scatter_(self.held, _words(self.values))

    def differing(self, tensor: torch.Tensor) -> int:
        """See `Elements`."""
        current = tensor[self.held]
        if self.values is None:
            return int(torch.count_nonzero(current))
        return int(torch.count_nonzero(as_integers(current) != as_integers(self.values)))

    def for_other(self, tensor: torch.Tensor) -> HeldElements:
        """See `Elements`."""
        values = None if self.values is None else self.values.to(tensor.device, tensor.dtype)
        return HeldElements(self.held.to(tensor.device), values)


class RangeElements:
    """The same for a tensor that is held in one range, on any device, without a mask.

    Args:
        tensor: contiguous.
        own: the range of its elements, in their order.
        values: of these; None: they are pruned.
    """

    def __init__(self, tensor: torch.Tensor, own: slice, values: torch.Tensor | None) -> None:
        self.shape, self._dtype, self._device = tensor.shape, tensor.dtype, tensor.device
        self._own, self._values = own, values

    @property
    def arrays(self) -> Sequence[Any]:
        """See `Elements`."""
        return [] if self._values is None else [self._values]

    def fits(self, tensor: torch.Tensor) -> bool:
        """See `Elements`."""
        same: bool = tensor.shape == self.shape and tensor.dtype == self._dtype
        return same and tensor.device == self._device and tensor.is_contiguous()

    def zero(self, gradient: torch.Tensor) -> torch.Tensor:
        """See `Elements`."""
        if gradient.is_sparse or not gradient.is_contiguous():
            return HeldElements(self._mask(gradient.device), None).zero(gradient)
        _zero_range(gradient.view(-1)[self._own])
        return gradient

    def restore(self, tensor: torch.Tensor) -> None:
        """See `Elements`."""
        own = tensor.detach().view(-1)[self._own]
        _zero_range(own) if self._values is None else _copy_range(own, self._values)

    def differing(self, tensor: torch.Tensor) -> int:
        """See `Elements`."""
        own = tensor.view(-1)[self._own]
        if self._values is None:
            return int(torch.count_nonzero(own))
        return int(torch.count_nonzero(as_integers(own) != as_integers(self._values)))

    def for_other(self, tensor: torch.Tensor) -> HeldElements:
        """See `Elements`."""
        values = None if self._values is None else self._values.to(tensor.device, tensor.dtype)
        return HeldElements(self._mask(tensor.device), values)

    def _mask(self, device: torch.device) -> torch.Tensor:
        held = torch.zeros(self.shape.numel(), dtype=torch.bool, device=device)
        held[self._own] = True
        return held.reshape(self.shape)


class PackedElements:
    """The same in CPU memory, one bit for each and mask, read by compiled code: see `Elements`.

    Args:
        tensor: contiguous.
        bits: both masks, by `packed_words`: 0 is pruned in the first, held in the second.
        frozen: the bits of frozen elements, as integers.
    """

    def __init__(self, tensor: torch.Tensor, bits: tuple[Bits, Bits], frozen: Any) -> None:
        self.shape, self._dtype, self._count = tensor.shape, tensor.dtype, tensor.numel()
        self._kept, self._through = bits
        self._values = frozen.numpy().view(_WORDS[tensor.element_size()])
        # Parts of the masks' words, and the place of each part's first value.
        self._parts: list[tuple[slice, int]] = []
        place = 0
        for part in _parts_of(self._kept.size, _PART // 64):
            self._parts.append((part, place))
            frozen_here = self._kept[part] & ~self._through[part]
            place += int(np.unpackbits(frozen_here.view(np.uint8)).sum())

    @property
    def arrays(self) -> Sequence[Any]:
        """See `Elements`."""
        return [self._kept, self._through, self._values]

    def fits(self, tensor: torch.Tensor) -> bool:
        """See `Elements`."""
        same: bool = tensor.shape == self.shape and tensor.dtype == self._dtype
        return same and tensor.is_cpu and tensor.is_contiguous()

    def zero(self, gradient: torch.Tensor) -> torch.Tensor:
        """See `Elements`."""
        kernels = _kernels_for(gradient)
        if kernels is None or not gradient.is_contiguous():
            return HeldElements(self._held().to(gradient.device), None).zero(gradient)
        size, first = gradient.element_size(), gradient.data_ptr()
        like = np.zeros(1, _WORDS[size])
        _in_parts(
            partial(kernels.zero, first + 64 * size * part.start, like, self._through[part])
            for part, _ in self._parts
        )
        torch.autograd.graph.increment_version(gradient)
        return gradient

    def restore(self, tensor: torch.Tensor) -> None:
        """See `Elements`."""
        kernels = _kernels()
        if kernels is None:  # it was pickled where numba is installed
            self._plain(tensor).restore(tensor)
            return
        size, first = tensor.element_size(), tensor.data_ptr()
        _in_parts(
            partial(
                kernels.restore,
                first + 64 * size * part.start,
                self._values[place:],
                self._kept[part],
                self._through[part],
            )
            for part, place in self._parts
        )
        torch.autograd.graph.increment_version(tensor)

    def differing(self, tensor: torch.Tensor) -> int:
        """See `Elements`."""
        return self._plain(tensor).differing(tensor)

    def for_other(self, tensor: torch.Tensor) -> HeldElements:
        """See `Elements`."""
        return self._plain(tensor).for_other(tensor)

    def _held(self) -> torch.Tensor:
        return ~self._unpacked(self._through)

    def _unpacked(self, bits: Bits) -> torch.Tensor:
        return torch.from_numpy(unpacked_words(bits, self._count)).reshape(self.shape)

    def _plain(self, tensor: torch.Tensor) -> HeldElements:
        held = self._held()
        if not self._values.size:
            return HeldElements(held, None)
        words = np.zeros(self._count, self._values.dtype)
        frozen = (held & self._unpacked(self._kept)).numpy().reshape(-1)
        words[frozen] = self._values
        own = torch.from_numpy(words).view(self._dtype).reshape(self.shape)
        return HeldElements(held, own[held])


def _words(tensor: torch.Tensor) -> Any:
    """The tensor, or its bytes where torch can't fill such numbers, as float8."""
    return tensor.view(torch.uint8) if tensor.element_size() == 1 else tensor


def _kernels_for(tensor: torch.Tensor) -> ModuleType | None:
    """The kernels, if they can write to the memory of a dense tensor."""
    dense = tensor.is_cpu and not tensor.is_sparse and not tensor.is_neg()
    return _kernels() if dense and tensor.element_size() in _WORDS else None


def _zero_range(own: torch.Tensor) -> None:
    """Sets contiguous elements to zero."""
    size, count = own.element_size(), own.numel()
    kernels = _kernels_for(own) if count >= PACKED_FROM else None
    if kernels is None:
        own.zero_()
        return
    # Whole words of 8 bytes, and what is around them.
    first = -own.data_ptr() % 8 // size
    words = (count - first) * size // 8
    own[:first].zero_()
    own[first + words * 8 // size :].zero_()
    begin, like = own.data_ptr() + first * size, np.zeros(1, np.uint64)
    _in_parts(
        partial(kernels.zero_words, begin + 8 * part.start, like, part.stop - part.start)
        for part in _parts_of(words, _PART)
    )
    torch.autograd.graph.increment_version(own)


def _copy_range(own: torch.Tensor, values: torch.Tensor) -> None:
    """Copies values to contiguous elements of their dtype and device."""
    size, count = own.element_size(), own.numel()
    if not own.is_cpu or count < PACKED_FROM:
        own.copy_(values)
        return
    to, source = own.data_ptr(), values.data_ptr()
    # Quicker than torch's copy: for so many bytes it doesn't read what it writes to.
    steps = max(_PART, -(-count // processors()))
    _in_parts(
        partial(
            ctypes.memmove,
            to + size * part.start,
            source + size * part.start,
            size * (part.stop - part.start),
        )
        for part in _parts_of(count, steps)
    )
    torch.autograd.graph.increment_version(own)


def _parts_of(count: int, size: int) -> Iterator[slice]:
    return (slice(first, min(first + size, count)) for first in range(0, count, size))


def _in_parts(actions: Iterator[Any]) -> None:
    """Calls what writes parts of a tensor, on several threads if there are several."""
    every = list(actions)
    if len(every) == 1:
        every[0]()
    else:
        together(every)
