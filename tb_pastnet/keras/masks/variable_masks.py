"""One variable's masks, and what holds its elements through an update of any optimizer.

An element is free, frozen (held at its value) or pruned (held at zero). Two boolean variables say
which: kept, and through for the free ones. They are variables, not tensors, so that a change is
seen by every step that is traced already.
"""

from __future__ import annotations

import weakref
from typing import Any

import numpy as np
import tensorflow as tf

from tb_pastnet.core.mask_input import Mask
from tb_pastnet.keras.model.assignments import tell_assignments
from tb_pastnet.keras.strategies import scope_of
from tb_pastnet.record.masks.mask_table import MaskRegistry

MASKS = MaskRegistry()
"""Of all variables in this process: whoever updates one finds its masks here."""

_MARK = "_pastnet_masks"

_SMALL = 1 << 16
"""Elements up to which a constant of zeros is worth its memory: broadcasting one is slower."""


class VariableMasks:
    """The masks of one variable, and the values that its frozen elements had when they were held.

    Elsewhere the `reference` means nothing; it is None before anything is frozen. Updates put it
    back, or the value before them where the variable was set by hand since. `hooks` are those of
    the optimizers that update the variable; `fresh` is whether older traces lack something that is
    there now.
    """

    def __init__(self, variable: tf.Variable, *, enforced: bool = True) -> None:
        self.variable = variable
        self.enforced = enforced
        self.generation = 0
        self.fresh = True
        self.reference: Any = None
        self.hooks: weakref.WeakSet[Any] = weakref.WeakSet()
        shape = variable.shape
        size = shape if shape.num_elements() <= _SMALL else ()
        self._zeros = np.zeros(size, variable.dtype.as_numpy_dtype)
        with tf.init_scope(), scope_of(variable):
            self.kept = tf.Variable(np.ones(shape, bool), trainable=False, name="kept")
            self.through = tf.Variable(np.ones(shape, bool), trainable=False, name="through")
            self._by_hand = tf.Variable(False, trainable=False, name="by_hand")
        # They live as long as the variable.
        setattr(variable, _MARK, self)
        tell_assignments(variable, self.let_be)

    def read(self) -> tuple[Mask, Mask]:
        """Kept and trainable, as arrays. A pruned element counts as trainable: it isn't frozen."""
        kept = self.kept.numpy()
        return kept, self.through.numpy() | ~kept

    def write(self, kept: Mask, trainable: Mask) -> None:
        """Sets both masks. What is frozen only now is held at its current value."""
        if (kept & ~trainable).any():
            were_kept, were_trainable = self.read()
            self._refer(were_kept & ~were_trainable)
        self.kept.assign(kept)
        self.through.assign(kept & trainable)

    def held_value(self) -> Any:
        """What held elements should be, a tensor: zero where pruned, else the reference."""
        if self.reference is None:
            return tf.zeros(self.variable.shape, self.variable.dtype)
        return tf.where(self.kept, tf.convert_to_tensor(self.reference), self._zeros)

    def put_back(self) -> None:
        """Sets what is held to what it should be."""
        self.restore(self.variable, tf.convert_to_tensor(self.through), self.held_now())

    def let_be(self) -> None:
        """Takes what is frozen as it is set by hand: an update shall not undo a loading."""
        self._by_hand.assign(True)

    def refer_anew(self) -> None:
        """Takes what is frozen at its current value, as after weights were loaded."""
        if not (self.through.numpy() | ~self.kept.numpy()).all():
            self._refer(np.zeros(self.variable.shape, bool))
            self._by_hand.assign(False)

    def _refer(self, already: Mask) -> None:
        value = tf.convert_to_tensor(self.variable)
        if self.reference is None:
            with tf.init_scope(), scope_of(self.variable):
                self.reference = tf.Variable(self.variable.numpy(), trainable=False)
            self.fresh = True
        else:
            self.reference.assign(tf.where(already, self.reference, value))

    def mask_gradient(self, gradient: tf.Tensor, through: tf.Tensor) -> Any:
        """The gradient with zeros at what is held, also NaN; `through` is read once for many."""
        if isinstance(gradient, tf.IndexedSlices):
            zero = tf.zeros((), gradient.values.dtype)
            values = tf.where(tf.gather(through, gradient.indices), gradient.values, zero)
            return tf.IndexedSlices(values, gradient.indices, gradient.dense_shape)
        return tf.where(through, gradient, tf.cast(self._zeros, gradient.dtype))

    def held_now(self) -> Any:
        """What is held, taken before an update: a copy, as `identity` would share the storage."""
        return tf.where(self.kept, self._frozen_now(), self._zeros)

    def _frozen_now(self) -> Any:
        value = tf.convert_to_tensor(self.variable)
        if self.reference is None:
            return value
        return tf.where(self._by_hand, value, tf.convert_to_tensor(self.reference))

    @staticmethod
    def restore(variable: tf.Variable, through: tf.Tensor, held: tf.Tensor) -> None:
        """Puts back what is held, as from `held_now`, in the variable or in its moving average."""
        # A product would spread NaN.
        value = tf.where(through, tf.convert_to_tensor(variable), held)
        variable.assign(value, read_value=False)
