"""The probe batch: fixed, checked, and described."""

from __future__ import annotations

import hashlib
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from tb_pastnet.core.probe_inputs import named_leaves, refused, sample_count
from tb_pastnet.format.function_change import Input


class ProbeBatch(NamedTuple):
    """A batch to evaluate a network on: copies of its arguments, what they are, and samples."""

    arguments: tuple[Any, ...]
    inputs: tuple[Input, ...]
    samples: int


def probe_batch(batch: Any) -> ProbeBatch:
    """Checks a probe batch, as `Recorder` takes it.

    What is neither an array nor a tensor goes to the network as it is.

    Raises:
        InvalidArgument: there is no array in it, one has no samples, or not as many as the first.

    Example:
        >>> probe_batch({"x": np.zeros((4, 2))}).inputs
        (Input(name='x', shape=(4, 2), dtype='float64', digest='88939ddc986e59dd'),)
    """
    arguments = batch if isinstance(batch, tuple) else (batch,)
    fixed = tf.nest.map_structure(_fixed, arguments)
    leaves = named_leaves(fixed[0] if len(fixed) == 1 else fixed)
    tensors = [(name, leaf) for name, leaf in leaves if isinstance(leaf, tf.Tensor)]
    shapes = [(name, tuple(tensor.shape)) for name, tensor in tensors]
    samples = sample_count(shapes, type(batch).__name__)
    inputs = tuple(
        Input(name, tuple(tensor.shape), tensor.dtype.name, _digest(tensor))
        for name, tensor in tensors
    )
    return ProbeBatch(fixed, inputs, samples)


def _fixed(leaf: object) -> Any:
    """A tensor that nobody else writes to; TensorFlow may share the memory of an array."""
    if isinstance(leaf, np.ndarray | np.generic):
        if leaf.dtype == object:
            raise refused("arrays of numbers or strings", "one of objects")
        return tf.convert_to_tensor(np.array(leaf))
    return tf.convert_to_tensor(leaf) if isinstance(leaf, tf.Variable) else leaf


def _digest(tensor: tf.Tensor) -> str:
    """Another one for another batch of the same shape."""
    # The array of a tensor of strings holds pointers.
    strings = tensor.dtype == tf.string
    data = tf.io.serialize_tensor(tensor).numpy() if strings else tensor.numpy().tobytes()
    return hashlib.blake2b(data, digest_size=8).hexdigest()
