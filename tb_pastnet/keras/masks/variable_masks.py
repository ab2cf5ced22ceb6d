"""One variable's masks, which hold its elements through an update of any optimizer.

An element is free, frozen (held at its value) or pruned (held at zero). Two boolean variables
define which: kept, and through for the free ones. They are variables, not tensors, so a change
reaches steps that are already traced.
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
"""Of all variables in this process: every update looks up masks here."""

_MARK = "_pastnet_masks"

_SMALL = 1 << 16
"""Elements up to which a constant of zeros is worth its memory: broadcasting is slower."""


class VariableMasks:
    """The masks of one variable, and the values of its held elements.

    Updates restore `held`: zero where pruned, the value at freezing where frozen; elsewhere it has
    no meaning. It is None before anything is frozen. `hooks` are those of the optimizers that
    update the variable; `fresh` is whether older traces lack a new part.
    """

    def __init__(self, variable: tf.Variable, *, enforced: bool = True) -> None:
        self.variable = variable
        self.enforced = enforced
        self.generation = 0
        self.fresh = True
        self.held: Any = None
        self.hooks: weakref.WeakSet[Any] = weakref.WeakSet()
        # The held values before they were set by hand, for an audit.
        self._before: Any = None
        self._set_by_hand = False
        shape = variable.shape
        size = shape if shape.num_elements() <= _SMALL else ()
        self._zeros = np.zeros(size, variable.dtype.as_numpy_dtype)
        with tf.init_scope(), scope_of(variable):
            self.kept = tf.Variable(np.ones(shape, bool), trainable=False, name="kept")
            self.through = tf.Variable(np.ones(shape, bool), trainable=False, name="through")
        # They last as long as the variable.
        setattr(variable, _MARK, self)
        tell_assignments(variable, self.let_be)

    def read(self) -> tuple[Mask, Mask]:
        """Kept and trainable, as arrays. A pruned element counts as trainable: it isn't frozen."""
        kept = self.kept.numpy()
        return kept, self.through.numpy() | ~kept

    def write(self, kept: Mask, trainable: Mask) -> None:
        """Sets both masks. Newly frozen elements are held at their current values."""
        frozen = kept & ~trainable
        if self.held is not None or frozen.any():
            already = self._frozen() & frozen
            if self._before is not None:
                self._before = np.where(already, self._before, self._at_now(frozen))
            self._hold(frozen, already)
        self.kept.assign(kept)
        self.through.assign(kept & trainable)

    @property
    def expected(self) -> Any:
        """The values of held elements before they were set by hand; None: all are zero."""
        return self.held if self._before is None else self._before

    def put_back(self) -> None:
        """Restores held elements."""
        self.restore(self.variable, tf.convert_to_tensor(self.through), self.held_now())

    def let_be(self) -> None:
        """Accepts frozen elements as set by hand: an update must not undo loading."""
        self._set_by_hand = True
        if self._before is None and self.held is not None:
            self._before = self.held.numpy()
        self._hold(self._frozen())

    def has_lost_zeros(self) -> bool:
        """Whether pruned elements were set by hand since the last call, and aren't zero now."""
        by_hand, self._set_by_hand = self._set_by_hand and self.enforced, False
        return by_hand and bool(self.variable.numpy()[~self.kept.numpy()].any())

    def refer_anew(self) -> None:
        """Freezes at current values, for example after weights were loaded."""
        self._before = None
        self._hold(self._frozen())

    def _frozen(self) -> Mask:
        frozen: Mask = self.kept.numpy() & ~self.through.numpy()
        return frozen

    def _hold(self, frozen: Mask, already: Mask | None = None) -> None:
        """Freezes elements at their current values, except those already frozen."""
        if self.held is None:
            if not frozen.any():
                return
            with tf.init_scope(), scope_of(self.variable):
                self.held = tf.Variable(np.asarray(self._at_now(frozen)), trainable=False)
            self.fresh = True
        else:
            value = self._at_now(frozen)
            self.held.assign(value if already is None else tf.where(already, self.held, value))

    def _at_now(self, frozen: Mask) -> Any:
        return tf.where(frozen, tf.convert_to_tensor(self.variable), self._zeros)

    def mask_gradient(self, gradient: tf.Tensor, through: tf.Tensor) -> Any:
        """The gradient with zeros at held elements, even for NaN; `through` is read once."""
        if isinstance(gradient, tf.IndexedSlices):
            zero = tf.zeros((), gradient.values.dtype)
            values = tf.where(tf.gather(through, gradient.indices), gradient.values, zero)
            return tf.IndexedSlices(values, gradient.indices, gradient.dense_shape)
        return tf.where(through, gradient, tf.cast(self._zeros, gradient.dtype))

    def held_now(self) -> Any:
        """The values that an update restores, a tensor; a scalar zero may stand for a large one."""
        return tf.convert_to_tensor(self._zeros if self.held is None else self.held)

    @staticmethod
    def restore(variable: tf.Variable, through: tf.Tensor, held: tf.Tensor) -> None:
        """Restores held values, from `held_now`, in the variable or its moving average."""
        # A product would spread NaN.
        value = tf.where(through, tf.convert_to_tensor(variable), held)
        variable.assign(value, read_value=False)
