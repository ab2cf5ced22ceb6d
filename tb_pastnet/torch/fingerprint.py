"""The fingerprint of `core.fingerprint` of a tensor, where its memory is."""

from __future__ import annotations

import torch

from tb_pastnet.core import fingerprint
from tb_pastnet.core.axes import ChannelAxis
from tb_pastnet.record.device_array import bits_of

_PIECE = 1 << 22
"""Words that are taken at once: their products are 32 MiB."""

_WORDS = {1: torch.int8, 2: torch.int16}


def fingerprints(tensor: torch.Tensor, axis: ChannelAxis, *, fast: bool = True) -> torch.Tensor:
    """The fingerprint of each channel of a tensor, on its device.

    Args:
        tensor: of a dtype of 1, 2, 4, 8 or 16 bytes, and any strides.
        axis: how it splits into channels.
        fast: see `core.fingerprint.fingerprints`.

    Returns:
        uint64 (channels,), see `core.fingerprint.fingerprints`.

    Raises:
        InvalidArgument: its memory was freed.
    """
    bits = bits_of(tensor)
    if bits is None:
        return by_operations(tensor, axis)
    return torch.from_numpy(fingerprint.fingerprints(bits, axis, fast=fast))


@torch.no_grad()
def by_operations(tensor: torch.Tensor, axis: ChannelAxis) -> torch.Tensor:
    """The same by operations of torch, in pieces of 32 MiB."""
    view, order, axes = fingerprint.without_ones(axis)
    values = tensor.detach().reshape(view).permute(order)
    out = torch.zeros(values.shape[:axes], dtype=torch.int64, device=tensor.device)
    each = -(-tensor.element_size() // 4)
    outermost = sorted(range(values.ndim), key=lambda at: -values.stride(at))
    for box in fingerprint.boxes(values.shape, outermost, _PIECE // each):
        own = (*box[axes:], slice(0, each))
        factors = fingerprint.factors((*values.shape[axes:], each), own)
        words = _words_of(values[box]).reshape(-1, len(factors))
        sums = (words * torch.from_numpy(factors).to(tensor.device)).sum(1)
        part = out[(*box[:axes], ...)]
        part += sums.view(part.shape)
    return out.reshape(-1).view(torch.uint64)


def _words_of(piece: torch.Tensor) -> torch.Tensor:
    if piece.is_complex():
        piece = torch.view_as_real(piece.resolve_conj())
    piece = piece.resolve_neg().contiguous().unsqueeze(-1)
    return piece.view(_WORDS.get(piece.element_size(), torch.int32))
