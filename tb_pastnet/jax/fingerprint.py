"""The fingerprint of `core.fingerprint` of an array, where its memory is."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

from tb_pastnet.core import fingerprint
from tb_pastnet.core.axes import ChannelAxis
from tb_pastnet.record.device_array import values_of

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
    """The same by one compiled operation of JAX, which makes no array of the value's size."""
    with _wide(True):
        sums: jax.Array = _sums(value, axis)
        return sums


@partial(jax.jit, static_argnames="axis")
def _sums(value: jax.Array, axis: ChannelAxis) -> jax.Array:
    words = _words_of(value)
    words = words.reshape(*axis.view, words.shape[-1])
    axes, position = [*axis.order[len(axis.axes) :], words.ndim - 1], jnp.zeros((), jnp.int64)
    for at in axes:
        own = jax.lax.broadcasted_iota(jnp.int64, words.shape, at)
        position = position * words.shape[at] + own
    a, b = map(jnp.asarray, fingerprint.tables(axis.elements * words.shape[-1]))
    factors = a[position % fingerprint.PERIOD] * b[position // fingerprint.PERIOD]
    sums = (words.astype(jnp.int64) * factors).sum(axes)
    # The sums have the channels' axes in the order of the view.
    return (
        sums.transpose([sorted(axis.axes).index(at) for at in axis.axes]).reshape(-1).view("uint64")
    )


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
