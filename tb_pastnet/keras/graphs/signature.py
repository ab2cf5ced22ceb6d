"""The arguments of a network, taken apart into tensors and all that isn't one."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import keras
import numpy as np
import tensorflow as tf

from tb_pastnet.errors import InvalidArgument
from tb_pastnet.keras.model.walk import tf_variable

_MASK = "_keras_mask"
"""The attribute in which Keras hands a mask on with its tensor."""


class Signature(NamedTuple):
    """What a network is called with, but for the shapes of dense tensors."""

    key: Hashable  # equal for arguments that are called alike
    pattern: Any  # the nest of the arguments, without them
    parts: tuple[Any, ...]  # the arguments in its order

    def arguments(self, tensors: Sequence[Any]) -> tuple[Sequence[Any], Mapping[str, Any]]:
        """The arguments again, with these tensors in them."""
        left = iter(tensors)
        leaves = [_joined(part, left) for part in self.parts]
        args, kwargs = tf.nest.pack_sequence_as(self.pattern, leaves)
        return args, kwargs


def take_apart(args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[Signature, list[Any]]:
    """Splits arguments into a signature, and tensors or TensorSpecs: of a ragged one several."""
    structure = (tuple(args), dict(kwargs))
    leaves = [_tensor_of(leaf) for leaf in tf.nest.flatten(structure)]
    parts = tuple(_part(leaf) for leaf in leaves)
    tensors = [
        tensor for leaf, part in zip(leaves, parts, strict=True) for tensor in _tensors(leaf, part)
    ]
    # The pattern holds no tensor, or the first batch would never be freed.
    pattern = tf.nest.pack_sequence_as(structure, [0] * len(parts))
    # By type too: 1, 1.0 and True are equal, but not to a network.
    key = (repr(pattern), tuple((type(part), part) for part in parts))
    return Signature(key, pattern, parts), tensors


class Dense(NamedTuple):
    """Stands for a tensor, and the mask of Keras on it."""

    dtype: tf.DType
    masked: bool


def _tensor_of(leaf: object) -> Any:
    if isinstance(leaf, keras.KerasTensor):
        raise InvalidArgument(
            f"Could not call a past network: expected values, got {leaf!r:.80}. Inside of a "
            f"functional model, call it in the `call` of a layer."
        )
    if (variable := tf_variable(leaf)) is not None:
        return tf.convert_to_tensor(variable)
    return tf.convert_to_tensor(leaf) if isinstance(leaf, np.ndarray | np.generic) else leaf


def _part(leaf: object) -> Any:
    if isinstance(leaf, tf.Tensor | tf.TensorSpec):
        return Dense(leaf.dtype, getattr(leaf, _MASK, None) is not None)
    if isinstance(leaf, tf.TypeSpec):
        return _any_batch(leaf)
    if tf.is_tensor(leaf) or isinstance(leaf, tf.experimental.ExtensionType):
        return _any_batch(tf.type_spec_from_value(leaf))
    try:
        hash(leaf)
    except TypeError:
        raise InvalidArgument(
            f"Could not call a past network: expected tensors and hashable values, got "
            f"{leaf!r:.80}. Pass a {type(leaf).__name__} as a tensor, or as a tuple."
        ) from None
    return leaf


def _any_batch(spec: tf.TypeSpec) -> tf.TypeSpec:
    """With the size of the batch left open, where that can be said of it."""
    if isinstance(spec, tf.RaggedTensorSpec) and spec.shape.rank:
        shape = [None, *spec.shape[1:]]
        return tf.RaggedTensorSpec(
            shape, spec.dtype, spec.ragged_rank, spec.row_splits_dtype, spec.flat_values_spec
        )
    if isinstance(spec, tf.SparseTensorSpec) and spec.shape.rank:
        return tf.SparseTensorSpec([None, *spec.shape[1:]], spec.dtype)
    return spec


def _tensors(leaf: object, part: object) -> Sequence[Any]:
    if isinstance(part, Dense):
        return (leaf, getattr(leaf, _MASK)) if part.masked else (leaf,)
    if isinstance(part, tf.TypeSpec):
        components: Sequence[Any] = tf.nest.flatten(leaf, expand_composites=True)
        return components
    return ()


def _joined(part: object, left: Iterator[tf.Tensor]) -> Any:
    if isinstance(part, Dense):
        tensor = next(left)
        if part.masked:
            setattr(tensor, _MASK, next(left))
        return tensor
    if isinstance(part, tf.TypeSpec):
        components = [next(left) for _ in tf.nest.flatten(part, expand_composites=True)]
        return tf.nest.pack_sequence_as(part, components, expand_composites=True)
    return part
