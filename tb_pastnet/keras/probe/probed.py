"""The probe batch: checked, and said in words."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from tb_pastnet.errors import InvalidArgument
from tb_pastnet.format.function_change import Input


class Probed(NamedTuple):
    """A batch to evaluate a network on.

    Attributes:
        arguments: what the network is called with; their arrays are copies.
        inputs: what they are.
        samples: how many.
    """

    arguments: tuple[Any, ...]
    inputs: tuple[Input, ...]
    samples: int


def probed(batch: Any) -> Probed:
    """Checks a probe batch.

    Args:
        batch: an array or a tensor with the samples along its first axis, a list or a mapping of
            such, or a tuple of arguments. What is neither an array nor a tensor goes to the network
            as it is.

    Raises:
        InvalidArgument: there is no array in it, one has no samples, or not as many as the first.

    Example:
        >>> probed({"x": np.zeros((4, 2))}).inputs
        (Input(name='x', shape=(4, 2), dtype='float64', digest='88939ddc986e59dd'),)
    """
    arguments = batch if isinstance(batch, tuple) else (batch,)
    fixed = tf.nest.map_structure(_fixed, arguments)
    named = _named(fixed[0] if len(fixed) == 1 else fixed)
    tensors = [(name, leaf) for name, leaf in named if isinstance(leaf, tf.Tensor)]
    if not tensors:
        raise _refused("at least one array or tensor", f"a {type(batch).__name__} without one")
    for name, tensor in tensors:
        shown = f"shape {tuple(tensor.shape)}" + (f" in {name!r}" if name else "")
        if tensor.shape.rank == 0 or 0 in tensor.shape:
            raise _refused("samples along the first axis", shown)
        if tensor.shape[0] != tensors[0][1].shape[0]:
            raise _refused(f"{tensors[0][1].shape[0]} samples in each input", shown)
    inputs = tuple(
        Input(name, tuple(tensor.shape), tensor.dtype.name, _digest(tensor))
        for name, tensor in tensors
    )
    return Probed(fixed, inputs, int(tensors[0][1].shape[0]))


def _fixed(leaf: Any) -> Any:
    """A tensor that nobody else writes to; TensorFlow may share the memory of an array."""
    if isinstance(leaf, np.ndarray | np.generic):
        if leaf.dtype == object:
            raise _refused("arrays of numbers or strings", "one of objects")
        return tf.convert_to_tensor(np.array(leaf))
    return tf.convert_to_tensor(leaf) if isinstance(leaf, tf.Variable) else leaf


def _digest(tensor: Any) -> str:
    """Tells batches of one shape apart."""
    # The array of a tensor of strings holds pointers.
    strings = tensor.dtype == tf.string
    data = tf.io.serialize_tensor(tensor).numpy() if strings else tensor.numpy().tobytes()
    return hashlib.blake2b(data, digest_size=8).hexdigest()


def _named(nest: Any, name: str = "") -> list[tuple[str, Any]]:
    if isinstance(nest, Mapping):
        parts = [(str(key), nest[key]) for key in sorted(nest)]
    elif isinstance(nest, list | tuple):
        parts = [(str(number), part) for number, part in enumerate(nest)]
    else:
        return [(name, nest)]
    return [leaf for key, part in parts for leaf in _named(part, f"{name}/{key}" if name else key)]


def _refused(expected: str, got: str) -> InvalidArgument:
    return InvalidArgument(
        f"Could not use the probe: expected {expected}, got {got}. Pass a fixed batch of what the "
        f"network is called with, such as the first images to validate on."
    )
