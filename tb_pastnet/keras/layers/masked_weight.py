"""A weight of a layer that owns its masks: K = where(T, K1, K2).

K1 is the variable that the optimizer trains, K2 what is held: zero where it is pruned, the value of
then where it is frozen. T lets K1 through. The layer computes with K, so that whatever moves K1
(momentum, weight decay, moving averages) never moves what is held. Masks and K2 are variables: a
step that is traced already sees each change.
"""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
import tensorflow as tf
from keras.src.backend import AutocastScope

from tb_pastnet.core.axes import channel_axis, variable_role
from tb_pastnet.core.mask_input import Mask
from tb_pastnet.keras.model.walk import tf_variable
from tb_pastnet.keras.strategies import check_agreed
from tb_pastnet.record.masks.packed import StoredMasks
from tb_pastnet.record.masks.weight_masks import WeightMasks
from tb_pastnet.record.weight import Array


class MaskedWeight(WeightMasks):
    """One weight of a layer, with its masks.

    TensorFlow takes it as its effective value: `tf.convert_to_tensor(weight)`.

    Attributes:
        name: of the weight in its layer, such as "kernel".
        weight: the keras.Variable that is trained. Where elements are held, it may hold anything.
        version: grows with every command; loading weights changes masks without it.
    """

    def __init__(
        self,
        layer: keras.layers.Layer,
        name: str,
        weight: keras.Variable,
        stored: StoredMasks | None = None,
    ) -> None:
        self.name = name
        self.weight = weight
        self.version = 0
        self.label = f"{layer.name}/{name}"
        shape = tuple(weight.shape)
        self.role = variable_role(name, shape)
        self.axis = channel_axis([], name, shape)
        stored = stored or StoredMasks(np.ones(shape, bool), np.ones(shape, bool), np.zeros(shape))

        def add(word: str, dtype: str, value: Array) -> Any:
            variable = layer.add_weight(
                name=f"{name.replace('/', '_')}_{word}",
                shape=shape,
                dtype=dtype,
                initializer=lambda shape, dtype: tf.reshape(tf.constant(value, dtype), shape),
                trainable=False,
                autocast=False,
                aggregation="only_first_replica",
            )
            # Checkpoints of TensorFlow go by attributes.
            setattr(layer, f"_{variable.name}", variable)
            return variable

        self._kept = add("kept", "bool", stored.kept)
        self._through = add("through", "bool", stored.through)
        self._held = add("held", weight.dtype, stored.held)
        if weight.regularizer is not None:
            weight.regularizer = _Regularizer(weight.regularizer, self)
        if weight.constraint is not None:
            weight.constraint = _Constraint(weight.constraint, self)

    @property
    def variable(self) -> Any:
        """The tf.Variable that is trained."""
        return tf_variable(self.weight)

    @property
    def sources(self) -> tuple[Any, ...]:
        """The tf.Variables that each element is one of: with one value in all, it is that value."""
        return tf_variable(self.weight), tf_variable(self._held)

    @property
    def shape(self) -> tf.TensorShape:
        """The weight's shape."""
        return tf.TensorShape(self.weight.shape)

    @property
    def dtype(self) -> tf.DType:
        """The weight's dtype."""
        return tf.as_dtype(self.weight.dtype)

    def read(self) -> tuple[Mask, Mask]:
        """See `WeightMasks`."""
        kept = np.array(self._kept.numpy())
        return kept, self._through.numpy() | ~kept

    def effective(self, trained: Any = None) -> Any:
        """What the layer computes with, in full precision, given another trained value or not."""
        with AutocastScope(None):
            value = tf.convert_to_tensor(self.weight if trained is None else trained)
            held = tf.cast(tf.convert_to_tensor(self._held), value.dtype)
            return tf.where(tf.convert_to_tensor(self._through), value, held)

    def open(self, free: tf.Tensor, held: tf.Tensor) -> Any:
        """Takes `free` where the weight is free, `held` elsewhere."""
        return tf.where(tf.convert_to_tensor(self._through), free, held)

    def numpy(self) -> Any:
        """The effective value as an array."""
        return self.effective().numpy()

    def values(self) -> Any:
        """See `WeightMasks`."""
        return self.numpy()

    def __tf_tensor__(self, dtype: Any = None, name: str | None = None) -> Any:
        return tf.convert_to_tensor(self.effective(), dtype, name=name)

    def stored(self) -> StoredMasks:
        """Masks and held values as arrays."""
        return StoredMasks(self.kept, np.array(self._through.numpy()), np.array(self._held.numpy()))

    def write(self, kept: Mask, trainable: Mask) -> None:
        """See `WeightMasks`. What is let through goes on from the effective values."""
        subject = f"the masks of {self.label!r}"
        check_agreed(self.variable, subject, kept, trainable)
        value = self.numpy()
        value = np.where(kept, value, np.zeros((), value.dtype))
        # What is let through goes on from here, whatever the optimizer did to it meanwhile.
        self.weight.assign(value)
        self._held.assign(value)
        self._kept.assign(kept)
        self._through.assign(kept & trainable)
        self.version += 1

    def renew(self, elements: Mask) -> None:
        """See `WeightMasks`. The trained variable's slots went on while the element was held."""


class _Regularizer(keras.regularizers.Regularizer):
    """Penalises the effective weight."""

    def __init__(self, regularizer: keras.regularizers.Regularizer, masked: MaskedWeight) -> None:
        self._regularizer = regularizer
        self._masked = masked

    def __call__(self, x: Any) -> Any:
        return self._regularizer(self._masked.effective(x))


class _Constraint(keras.constraints.Constraint):
    """Constrains the effective weight."""

    def __init__(self, constraint: keras.constraints.Constraint, masked: MaskedWeight) -> None:
        self._constraint = constraint
        self._masked = masked

    def __call__(self, w: Any) -> Any:
        value = tf.convert_to_tensor(w)
        return self._masked.open(self._constraint(self._masked.effective(value)), value)
