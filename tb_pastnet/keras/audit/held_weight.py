"""A variable of which something is held, compared bitwise with what it should be, where it lies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from tb_pastnet.core.axes import ChannelAxis
from tb_pastnet.keras.masks.variable_masks import VariableMasks
from tb_pastnet.keras.measure.copies import stacks
from tb_pastnet.keras.measure.runner import EAGER
from tb_pastnet.keras.model.weights import TFWeight
from tb_pastnet.record.audit.freeze_audit import Channels, Ints

_BITS = {2: tf.int16, 4: tf.int32, 8: tf.int64}
# Odd, so that the print of one element that changes always changes.
_STRIDE = 0x5851F42D4C957F2E
_START = 0x14057B7EF767814F


class HeldWeight:
    """A weight that is held, in part by its masks or whole by Keras's `trainable=False`.

    What `trainable=False` holds needs a copy of the weight, its `reference`, made when the flag is
    first seen and given up when it is set back; masks bring their own. Where its `version` grows, a
    compiled comparison has to be made anew.
    """

    def __init__(self, weight: TFWeight) -> None:
        self.name = weight.name
        self.axis = weight.axis
        self.variable = weight.variable
        # What users set: the keras.Variable of a layer's weight.
        self.owner = weight.found.given
        self.masks: VariableMasks | None = None
        self.reference: Any = None
        self.version = 0
        self._own_masks = weight.masks()
        # Kept alive, as the next one could be taken for it otherwise.
        self._parts: tuple[Any, ...] = (None, None, None)
        self._followed: tuple[Any, ...] = (None, 0, False)

    @property
    def flagged(self) -> bool:
        """Whether it is held whole."""
        return self.reference is not None

    def follow(self, masks: VariableMasks | None, *, flagged: bool) -> bool:
        """Takes over what holds it now; whether other elements are held than before."""
        self.masks = masks
        own = 0 if self._own_masks is None else self._own_masks.version
        if not flagged:
            self.reference = None
        elif self.reference is None or own != self._followed[1]:
            self.reference = EAGER.variable(self.value, "pastnet_held")
        parts = (masks, None if masks is None else masks.reference, self.reference)
        if any(new is not old for new, old in zip(parts, self._parts, strict=True)):
            self.version += 1
        held = None if masks is None else hash(masks.through.numpy().tobytes())
        followed = (held, own, flagged)
        changed = followed != self._followed
        self._parts, self._followed = parts, followed
        return changed

    def value(self) -> Any:
        """The value now, of the first replica."""
        return tf.convert_to_tensor(self.variable)

    def expected(self) -> Any:
        """What held elements should be."""
        if self.masks is None:
            return tf.convert_to_tensor(self.reference)
        if self.reference is None:
            return self.masks.held_value()
        return tf.where(self.masks.through, self.reference, self.masks.held_value())

    def held(self) -> Any:
        """Which elements are held, a bool tensor."""
        if self.masks is None or self.reference is not None:
            return tf.ones(self.variable.shape, tf.bool)
        return ~tf.convert_to_tensor(self.masks.through)

    def flags(self) -> npt.NDArray[np.bool_]:
        """Which elements are held."""
        return np.asarray(self.held().numpy())

    def moved(self) -> Any:
        """Which elements are held and differ in any bit, a bool tensor."""
        return _moved(self.value(), self.expected(), self.held())

    def values_at(self, positions: Ints) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
        """Some of its elements: what they should be, and what they are."""
        return values_at(self.expected(), positions), values_at(self.value(), positions)

    def channels(self) -> Channels:
        """Compares it channel by channel."""
        # Eager: few weights are ever violated, and to compile this takes longer than to run it.
        values = self.value(), self.expected(), self.held()
        return Channels(*(result.numpy() for result in compared(*values, self.axis)))

    def worst(self, channels: Ints, count: int) -> Ints:
        """Positions of elements that moved farthest, a share of each channel, at most `count`."""
        axis = self.axis
        channels = channels[:: -(-len(channels) // count)]
        share = min(axis.elements, max(1, count // len(channels)))
        size = _distance(self.value(), self.expected())
        size = tf.where(self.moved(), size, -tf.ones((), tf.float64))
        top = tf.math.top_k(tf.gather(_split(size, axis), channels), share)
        row, column = np.nonzero(top.values.numpy() >= 0)
        return _flat(axis, channels[row], top.indices.numpy()[row, column])


def compared(
    value: tf.Tensor, expected: tf.Tensor, held: tf.Tensor, axis: ChannelAxis
) -> tuple[Any, ...]:
    """Compares a variable channel by channel: tensors as in `Channels`."""
    moved = _moved(value, expected, held)
    held, moved = _split(held, axis), _split(moved, axis)
    size = tf.where(moved, _split(_distance(value, expected), axis), tf.zeros((), tf.float64))
    factor = tf.range(axis.elements, dtype=tf.int64) * _STRIDE + _START
    zero = tf.zeros((), tf.int64)

    def fingerprint(value: tf.Tensor) -> Any:
        bits = tf.cast(_split(_bits(value), axis), tf.int64)
        # One more, so that it also says which elements are held where all are zero.
        return tf.reduce_sum(tf.where(held, (bits + 1) * factor, zero), 1)

    return (
        tf.reduce_sum(tf.cast(moved, tf.int64), 1),
        tf.reduce_sum(tf.cast(held, tf.int64), 1),
        tf.reduce_max(size, 1),
        fingerprint(value),
        fingerprint(expected),
    )


def which_moved(held: Sequence[HeldWeight]) -> Any:
    """Which weights have a held element that moved, a bool tensor of shape (weights,)."""
    # Small weights of one shape are compared together: it compiles in half of the time.
    groups = stacks([weight.variable for weight in held], [weight.axis for weight in held])
    moved = []
    for group in groups:
        weights = [held[number] for number in group.members]
        rows = [(weight.value(), weight.expected(), weight.held()) for weight in weights]
        columns = zip(*rows, strict=True)
        # A single one isn't copied.
        stacked = [column[0] if len(column) == 1 else tf.stack(column) for column in columns]
        flat = [tf.reshape(column, (len(rows), -1)) for column in stacked]
        moved.append(tf.reduce_any(_moved(*flat), 1))
    order = np.argsort([number for group in groups for number in group.members])
    return tf.gather(tf.concat(moved, 0), order)


def values_at(tensor: Any, positions: Ints) -> npt.NDArray[Any]:
    """Elements at some positions of the flattened tensor or variable."""
    flat = tf.reshape(tf.convert_to_tensor(tensor), [-1])
    return np.asarray(tf.gather(flat, positions).numpy())


def _moved(value: tf.Tensor, expected: tf.Tensor, held: tf.Tensor) -> Any:
    # By integers: NaN equals itself, −0 differs from 0, and subnormals aren't flushed. An
    # exclusive or, as a GPU compares int32 on the host.
    differ = tf.bitwise.bitwise_xor(_bits(value), _bits(expected))
    return tf.cast(differ, tf.bool) & held


def _distance(value: tf.Tensor, expected: tf.Tensor) -> Any:
    delta = tf.abs(tf.cast(value, tf.float64) - tf.cast(expected, tf.float64))
    return tf.where(tf.math.is_finite(delta), delta, tf.constant(np.inf, tf.float64))


def _bits(value: tf.Tensor) -> Any:
    return tf.bitcast(value, _BITS[value.dtype.size])


def _split(value: tf.Tensor, axis: ChannelAxis) -> Any:
    """As `ChannelAxis.split`: of shape (channels, elements)."""
    view = tf.transpose(tf.reshape(value, axis.view), axis.order)
    return tf.reshape(view, (axis.channels, axis.elements))


def _flat(axis: ChannelAxis, channels: Ints, elements: Ints) -> Ints:
    if not axis.view:
        return np.zeros(len(channels), np.int64)
    shape = [axis.view[number] for number in axis.order]
    places = np.unravel_index(channels * axis.elements + elements, shape)
    in_order = [places[axis.order.index(number)] for number in range(len(axis.view))]
    return np.ravel_multi_index(in_order, axis.view).astype(np.int64)
