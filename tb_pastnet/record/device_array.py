"""Arrays of JAX and tensors of torch, read without a trace on them: neither is imported.

They may be on an accelerator, in pieces on several, or have no memory at present.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from tb_pastnet.errors import InvalidArgument
from tb_pastnet.record.weight import Array


def fetch(value: Any) -> None:
    """Starts copying an array from an accelerator: many together take a third of the time."""
    if any(device.platform != "cpu" for device in getattr(value, "devices", set)()):
        value.copy_to_host_async()


def values_of(value: Any) -> Array:
    """The values of a JAX array: a view if they are in this machine's memory, in one piece."""
    shards: Sequence[Any] = getattr(value, "addressable_shards", ())
    if len(shards) < 2:
        return np.asarray(value)
    if value.is_fully_replicated:
        return np.asarray(shards[0].data)
    # Of the whole, JAX 0.11 keeps views of the pieces, which then can't be donated.
    whole: Array = np.empty(value.shape, value.dtype)
    for shard in shards:
        if shard.replica_id == 0:
            whole[shard.index] = shard.data
    return whole


def tensor_values(tensor: Any) -> Array:
    """The values of a dense tensor of torch: a read-only view if possible, to be released at once.

    Dtypes without a NumPy equivalent, such as bfloat16, become float32, exactly. Raises
    InvalidArgument if its memory was freed.
    """
    check_memory(tensor)
    return memory_of(tensor)


def memory_of(tensor: Any) -> Array:
    """See `tensor_values`, for a tensor that `has_memory`."""
    kind = _KINDS.get(tensor.dtype) or _kind(tensor.dtype)
    if kind == _OTHER:
        tensor, kind = tensor.detach().float(), _SINGLE
    if not (tensor.is_cpu and tensor.is_contiguous()) or tensor.is_neg():
        tensor = tensor.detach().cpu().resolve_neg().contiguous()
    view = _view(tensor, kind)
    own: Array = tensor.detach().clone().numpy() if view is None else view
    return own


def bits_of(tensor: Any) -> Array | None:
    """The memory of a dense tensor of torch as integers: a read-only view, to be released at once.

    It has the tensor's shape and strides. None if the tensor isn't in this machine's memory, or has
    bits that are still to be flipped. Raises InvalidArgument if its memory was freed.
    """
    check_memory(tensor)
    size: int = tensor.element_size()
    plain = tensor.is_cpu and not tensor.is_neg() and not tensor.is_conj()
    return _view(tensor, f"<i{size}" if size <= 8 else f"<c{size}") if plain else None


def _view(tensor: Any, kind: str) -> Array | None:
    """The memory of a tensor in this machine; None if torch doesn't show where, or it is empty."""
    # `Tensor.numpy` would make the storage permanently unresizable, and `data_ptr` would copy a
    # tensor that shares its memory until it is written.
    address = getattr(sys.modules["torch"]._C, "_data_address", None)
    if address is None or not tensor.numel():
        return None
    size = tensor.element_size()
    memory = _Memory()
    memory.tensor = tensor
    memory.__array_interface__ = {
        "shape": tuple(tensor.shape),
        "strides": tuple(step * size for step in tensor.stride()),
        "typestr": kind,
        # That of the storage, whichever part of it the tensor is.
        "data": (address(tensor) + tensor.storage_offset() * size, True),
        "version": 3,
    }
    return np.asarray(memory)


def check_memory(tensor: Any) -> None:
    """Raises InvalidArgument unless `has_memory`."""
    if not has_memory(tensor):
        raise InvalidArgument(
            f"Could not read a tensor of shape {tuple(tensor.shape)}: expected its values, got a "
            f"storage without them, as offloading leaves. Restore them before a record is due."
        )


def has_memory(tensor: Any) -> bool:
    """Whether the storage of a dense tensor of torch has room for it: offloading frees it.

    Almost any operation of torch on a tensor without memory ends the process.
    """
    if not tensor.numel():
        return True
    size: int = tensor.untyped_storage().nbytes()
    offset: int = tensor.storage_offset()
    if tensor.is_contiguous():
        return size >= tensor.nbytes + offset and (not offset or _end(tensor) <= size)
    return _end(tensor) <= size


def _end(tensor: Any) -> int:
    """The bytes of a storage up to the last element of a tensor."""
    places = zip(tensor.shape, tensor.stride(), strict=True)
    last = sum((length - 1) * stride for length, stride in places)
    end: int = (tensor.storage_offset() + last + 1) * tensor.element_size()
    return end


class _Memory:
    """The memory of a tensor, for NumPy: an array of it keeps the tensor."""

    __slots__ = ("__array_interface__", "tensor")

    tensor: Any
    __array_interface__: dict[str, Any]


_SINGLE, _OTHER = np.dtype(np.float32).str, "other"

_KINDS: dict[Any, str] = {}


def _kind(dtype: Any) -> str:
    """NumPy's code of a dtype of torch; _OTHER if NumPy doesn't have it."""
    try:
        found = np.dtype(str(dtype).removeprefix("torch."))
    except TypeError:
        found = np.dtype(object)
    # Another package may have registered a bfloat16.
    return _KINDS.setdefault(dtype, found.str if found.kind in "biuf" else _OTHER)
