"""The bits of any array, tensor or variable as integers in this machine's memory."""

from __future__ import annotations

import math
import sys
from typing import Any

import numpy as np
import numpy.typing as npt

from tb_pastnet.errors import InvalidArgument
from tb_pastnet.record.device_array import bits_of, check_memory, values_of

Array = npt.NDArray[Any]

_X87 = 10
"""Bytes of a long double of Intel's that count: the rest is padding."""


def is_array(value: Any) -> bool:
    """Whether it has values to compare: an array of any framework, or a number."""
    if isinstance(value, bool | int | float | complex | np.generic):
        return np.asarray(value).dtype != object
    return hasattr(value, "dtype") and hasattr(value, "shape")


def form_of(value: Any) -> tuple[str, tuple[int, ...]]:
    """The dtype's name and the shape."""
    if not hasattr(value, "dtype"):
        return type(value).__name__, ()
    name = str(getattr(value.dtype, "name", value.dtype)).removeprefix("torch.")
    return name, tuple(int(size) for size in value.shape)


def bits(value: Any, name: str) -> Array:
    """The bits of a value, (*shape, words of an element): a view where that is possible.

    -0.0 isn't 0.0, and a NaN is equal to itself only with the same payload. Raises InvalidArgument
    for what has no dense memory; `name` is for the error.
    """
    value = getattr(value, "value", value) if _is_keras(value) else value
    if "torch" in sys.modules and hasattr(value, "untyped_storage"):
        return _words(_of_tensor(value, name))
    if _is_key(value):
        data = sys.modules["jax"].random.key_data(value)
        return np.asarray(data).reshape(*value.shape, -1)
    array = np.asarray(_host_array(value))
    if array.dtype == object:
        raise _unreadable(name, "an array of objects")
    return _words(array)


def as_floats(words: Array, dtype: str) -> npt.NDArray[np.float64] | None:
    """The numbers that bits are, for dtypes of floating numbers; else None."""
    if dtype == "bfloat16":
        words, dtype = words.astype(np.uint32) << 16, "float32"
    if dtype not in ("float16", "float32", "float64"):
        return None
    floats: Array = words.view(dtype)[..., 0]
    return floats.astype(np.float64)


def _is_keras(value: Any) -> bool:
    keras = sys.modules.get("keras")
    variable = getattr(keras, "Variable", None)
    return isinstance(variable, type) and isinstance(value, variable)


def _is_key(value: Any) -> bool:
    dtypes = getattr(sys.modules.get("jax"), "dtypes", None)
    if dtypes is None or not hasattr(value, "addressable_shards"):
        return False
    return bool(dtypes.issubdtype(value.dtype, dtypes.prng_key))


def _host_array(value: Any) -> Any:
    if hasattr(value, "addressable_shards"):
        return values_of(value)
    return value.numpy() if hasattr(value, "numpy") else value


def _of_tensor(tensor: Any, name: str) -> Array:
    torch = sys.modules["torch"]
    tensor = tensor.detach()
    tensor = tensor.to_local() if hasattr(tensor, "to_local") else tensor
    if tensor.layout is not torch.strided or hasattr(tensor, "__tensor_flatten__"):
        raise _unreadable(name, f"a {type(tensor).__name__} of layout {tensor.layout}")
    if tensor.is_meta:
        raise _unreadable(name, "a tensor on the device 'meta'")
    check_memory(tensor)
    if not tensor.numel():
        return np.zeros(tuple(tensor.shape), f"u{min(tensor.element_size(), 8)}")
    own = bits_of(tensor)
    if own is None:
        own = bits_of(tensor.resolve_conj().resolve_neg().cpu().contiguous().clone())
    if own is None:  # torch doesn't show where its memory is
        own = tensor.cpu().contiguous().view(torch.uint8).reshape(*tensor.shape, -1).numpy()
        own = own.view(f"V{own.shape[-1]}")[..., 0]
    return own


def _words(array: Array) -> Array:
    if array.dtype.kind in "fc" and np.finfo(array.dtype).nmant == 63:
        return _long_doubles(array)
    size = array.dtype.itemsize
    word = math.gcd(size, 8) if size else 1
    words: Array = (
        array.view(np.dtype((f"u{word}", (size // word,))))
        if size
        else np.zeros((*array.shape, 0), np.uint8)
    )
    return words


def _long_doubles(array: Array) -> Array:
    size = np.dtype(np.longdouble).itemsize
    parts = array.dtype.itemsize // size
    raw = np.ascontiguousarray(array).reshape(*array.shape, 1).view(np.uint8)
    own: Array = raw.reshape(*array.shape, parts, size)[..., :_X87]
    return np.ascontiguousarray(own).reshape(*array.shape, parts * _X87)


def _unreadable(name: str, got: str) -> InvalidArgument:
    return InvalidArgument(
        f"Could not compare {name!r}: expected dense values, got {got}. Leave it out by a pattern."
    )
