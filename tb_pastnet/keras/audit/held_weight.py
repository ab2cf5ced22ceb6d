"""A variable with held elements, compared bitwise with their expected values, on its device."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from tb_pastnet.keras.masks.variable_masks import VariableMasks
from tb_pastnet.keras.measure.copies import stacks
from tb_pastnet.keras.measure.runner import EAGER
from tb_pastnet.keras.model.tf_weights import TFWeight
from tb_pastnet.keras.strategies import host, reader
from tb_pastnet.record.audit.comparison import Comparison, Ints
from tb_pastnet.record.audit.freeze_audit import Held
from tb_pastnet.record.audit.held_prints import HeldPrints
from tb_pastnet.record.weight import Array, Look

_BITS = {2: tf.int16, 4: tf.int32, 8: tf.int64}


class HeldWeight(Held):
    """A weight that is held, in part by its masks or fully by Keras's `trainable=False`.

    `trainable=False` needs a copy of the weight, its `reference`, made when the flag is first seen
    and dropped when it is reset; masks have their own. If its `version` grows, a compiled
    comparison has to be made again.
    """

    def __init__(self, weight: TFWeight) -> None:
        self.name = weight.name
        self.axis = weight.axis
        self.weight = weight
        self.variable = weight.variable
        # The object that users set: the keras.Variable of a layer's weight.
        self.owner = weight.found.given
        self.masks: VariableMasks | None = None
        self.reference: Any = None
        self.version = 0
        self._own_masks = weight.masks()
        # A reference, because otherwise the next one could have its id.
        self._parts: tuple[Any, ...] = (None, None, None)
        self._followed: tuple[Any, ...] = (None, 0, False)
        self._wanted: tuple[Any, Any] | None = None

    @property
    def nbytes(self) -> int:
        """See `Held`."""
        own = self.reference
        return 0 if own is None else self.weight.nbytes

    @cached_property
    def here(self) -> bool:
        """Whether the values are in this machine's memory."""
        return "CPU" in str(self.value().device)

    @cached_property
    def _read(self) -> Callable[[], Any]:
        return reader(self.variable)

    @property
    def flagged(self) -> bool:
        """Whether all of it is held."""
        return self.reference is not None

    def follow(self, masks: VariableMasks | None, *, flagged: bool) -> bool:
        """Updates which elements are held; returns whether these have changed."""
        self.masks = masks
        own = 0 if self._own_masks is None else self._own_masks.version
        if not flagged:
            self.reference = None
        elif self.reference is None or own != self._followed[1]:
            # An array is made much faster than a variable.
            self.reference = (
                np.array(host(self._read()))
                if self.here
                else EAGER.variable(self.value, "pastnet_held")
            )
        parts = (masks, None if masks is None else masks.expected, self.reference)
        if any(new is not old for new, old in zip(parts, self._parts, strict=True)):
            self.version += 1
        held = None if masks is None else hash(masks.through.numpy().tobytes())
        followed = (held, own, flagged)
        changed = followed != self._followed
        self._parts, self._followed, self._wanted = parts, followed, None
        return changed

    def value(self) -> Any:
        """The current value, of the first replica: a tensor."""
        return tf.convert_to_tensor(self.variable)

    def expected(self) -> Any:
        """The expected values of held elements: a tensor."""
        if self.masks is None:
            return tf.convert_to_tensor(self.reference)
        held = self.masks.expected
        if held is None:
            held = tf.zeros(self.variable.shape, self.variable.dtype)
        if self.reference is None:
            return tf.convert_to_tensor(held)
        return tf.where(self.masks.through, self.reference, held)

    def held(self) -> Any:
        """Which elements are held, a bool tensor; None if all are."""
        if self.masks is None or self.reference is not None:
            return None
        return ~tf.convert_to_tensor(self.masks.through)

    def compared(self, value: Array | None = None) -> Comparison:
        """Value (read if not given), expected value and held elements, as arrays."""
        if self._wanted is None:
            held, array = self.held(), isinstance(self.reference, np.ndarray)
            expected = self.reference if array and self.masks is None else host(self.expected())
            self._wanted = expected, None if held is None else host(held)
        return Comparison(host(self._read()) if value is None else value, *self._wanted)

    def flags(self) -> npt.NDArray[np.bool_]:
        """Which elements are held."""
        held = self.held()
        return np.ones(self.axis.shape, bool) if held is None else np.asarray(held.numpy())

    def count(self) -> int:
        """How many elements are held."""
        size = self.axis.channels * self.axis.elements
        if self.masks is None or self.flagged:
            return size
        return size - int(np.count_nonzero(self.masks.through.numpy()))

    def values_at(self, positions: Ints) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
        """Expected and current values of some of its elements."""
        return values_at(self.expected(), positions), values_at(self.value(), positions)


class HeldLarge(HeldPrints):
    """A weight that `trainable=False` holds, by fingerprints, with what causes are found by."""

    version = 0

    def __init__(self, weight: TFWeight, looks: Mapping[str, Look]) -> None:
        super().__init__(weight, looks, HeldWeight)
        self.variable, self.owner = weight.variable, weight.found.given


def which_moved(held: Sequence[HeldWeight]) -> Any:
    """Which weights have a held element that moved, a bool tensor of shape (weights,)."""
    # Small weights of one shape are compared together: it compiles in half the time.
    groups = stacks([weight.variable for weight in held], [weight.axis for weight in held])
    moved = []
    for group in groups:
        rows = [_tensors(held[number]) for number in group.members]
        columns = zip(*rows, strict=True)
        # A single one isn't copied.
        stacked = [column[0] if len(column) == 1 else tf.stack(column) for column in columns]
        flat = [tf.reshape(column, (len(rows), -1)) for column in stacked]
        moved.append(tf.reduce_any(_moved(*flat), 1))
    order = np.argsort([number for group in groups for number in group.members])
    return tf.gather(tf.concat(moved, 0), order)


def _tensors(weight: HeldWeight) -> tuple[Any, Any, Any]:
    held = weight.held()
    every = tf.ones(weight.axis.shape, tf.bool) if held is None else held
    return weight.value(), weight.expected(), every


def values_at(tensor: Any, positions: Ints) -> npt.NDArray[Any]:
    """Elements at some positions of the flattened tensor or variable."""
    flat = tf.reshape(tf.convert_to_tensor(tensor), [-1])
    return np.asarray(tf.gather(flat, positions).numpy())


def _moved(value: tf.Tensor, expected: tf.Tensor, held: tf.Tensor) -> Any:
    # By integers: NaN equals itself, −0 differs from 0, and subnormals aren't flushed. With
    # exclusive or, because a GPU compares int32 on the host.
    differ = tf.bitwise.bitwise_xor(_bits(value), _bits(expected))
    return tf.cast(differ, tf.bool) & held


def _bits(value: tf.Tensor) -> Any:
    return tf.bitcast(value, _BITS[value.dtype.size])
