"""The fingerprint of `core.fingerprint` of an array, where its memory is."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

from tb_pastnet.core import fingerprint
from tb_pastnet.core.axes import ChannelAxis
from tb_pastnet.record.device_array import values_of

_PIECE = 1 << 21
"""Words that are taken at once: they are 16 MiB as int64, and so are their products."""

# It is public from JAX 0.8 on.
_wide: Any = jax.enable_x64 if hasattr(jax, "enable_x64") else jax.experimental.enable_x64


def fingerprints(value: jax.Array, axis: ChannelAxis) -> Any:
    """The fingerprint of each channel of an array.

    Args:
        value: of any dtype of 1, 2, 4, 8 or 16 bytes.
        axis: how it splits into channels.

    Returns:
        uint64 (channels,), see `core.fingerprint.fingerprints`: an array of NumPy if the value is
        in this machine's memory, else of JAX. It needs no `jax_enable_x64`.
    """
    if all(device.platform == "cpu" for device in value.devices()):
        return fingerprint.fingerprints(values_of(value), axis)
    return by_operations(value, axis)


def by_operations(value: jax.Array, axis: ChannelAxis) -> jax.Array:
    """The same by operations of JAX, in pieces of 16 MiB."""
    axes, shape = len(axis.axes), [axis.view[at] for at in axis.order]
    each = -(-value.dtype.itemsize // 4)
    sums: dict[tuple[int, ...], Any] = {}  # of consecutive channels
    with _wide(True):
        for box in fingerprint.boxes(shape, range(len(shape)), _PIECE // each):
            factors = fingerprint.factors((*shape[axes:], each), (*box[axes:], slice(0, each)))
            parts = [box[axis.order.index(at)] for at in range(len(shape))]
            sizes = tuple(part.stop - part.start for part in parts)
            found = _sums(value, [part.start for part in parts], factors, axis, sizes)
            first = tuple(part.start for part in box[:axes])
            sums[first] = found + sums.get(first, 0)
        none = jnp.zeros(axis.channels, jnp.int64)
        return (jnp.concatenate([*sums.values()]) if sums else none).view(jnp.uint64)


@partial(jax.jit, static_argnames=("axis", "sizes"))
def _sums(
    value: jax.Array, starts: Any, factors: jax.Array, axis: ChannelAxis, sizes: tuple[int, ...]
) -> jax.Array:
    """The sums of one piece, which begins there in the view; compiled once for each size."""
    piece = jax.lax.dynamic_slice(value.reshape(axis.view), starts, sizes)
    words = _words_of(piece.transpose(axis.order)).reshape(-1, factors.size)
    return (words.astype(jnp.int64) * factors).sum(1)


def _words_of(value: jax.Array) -> jax.Array:
    """As `core.fingerprint.words_of`."""
    if value.dtype == bool:
        return value.astype(jnp.int8)[..., None]
    if jnp.iscomplexobj(value):
        parts = jnp.stack([value.real, value.imag], -1)
        words = _words_of(parts)
        return words.reshape(*value.shape, 2 * words.shape[-1])
    kind = {1: jnp.int8, 2: jnp.int16}.get(value.dtype.itemsize, jnp.int32)
    words = jax.lax.bitcast_convert_type(value, kind)
    return words if words.ndim > value.ndim else words[..., None]
