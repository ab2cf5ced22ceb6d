"""One variable of which something is held, compared bitwise with what it should be.

All is computed where the variable lies; only results of channels leave the device.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from tb_pastnet.core.axes import ChannelAxis
from tb_pastnet.keras.layers.weight import MaskedWeight
from tb_pastnet.keras.masks.hold import Hold
from tb_pastnet.keras.measure.stacks import STACK_ELEMENTS
from tb_pastnet.keras.model.weights import TFWeight
from tb_pastnet.keras.outside_strategy import outside_strategy

Ints = npt.NDArray[np.int64]

_BITS = {2: tf.int16, 4: tf.int32, 8: tf.int64}
# Odd, so that the print of one element that changes always changes.
_STRIDE = 0x5851F42D4C957F2E
_START = 0x14057B7EF767814F


class Channels(NamedTuple):
    """What a comparison found, each of shape (channels,).

    Attributes:
        differ: int64, held elements that aren't what they should be.
        held: int64, held elements.
        largest: float64, largest |w − expected| of those; infinite where it isn't finite.
        now: int64, a fingerprint of the held elements.
        then: int64, a fingerprint of which are held, and of what they should be.
    """

    differ: Ints
    held: Ints
    largest: npt.NDArray[np.float64]
    now: Ints
    then: Ints


class Watch:
    """A variable that is held, in part by its masks or whole by Keras's `trainable=False`.

    What `trainable=False` holds needs a copy of the variable, made when the flag is first seen and
    given up when it is set back; masks bring their own reference.

    Args:
        record: the variable.

    Attributes:
        hold: its masks, None without.
        reference: tf.Variable, what it was when it was first seen not to be trainable; None while
            it is.
        version: grows whenever a compiled comparison has to be made anew.
    """

    def __init__(self, record: TFWeight) -> None:
        self.record = record
        self.variable = record.found.variable
        self.hold: Hold | None = None
        self.reference: Any = None
        self.version = 0
        # Kept alive, as the next one could be taken for it otherwise.
        self._parts: tuple[Any, ...] = (None, None, None)
        self._held: int | None = None
        self._own = 0
        self._flagged = False

    @property
    def owner(self) -> Any:
        """What users set: the keras.Variable of a layer's weight."""
        return self.record.found.holders[-1]

    def follow(self, hold: Hold | None, *, flagged: bool) -> bool:
        """Takes over what holds the variable now.

        Args:
            hold: its masks, None without.
            flagged: Keras says that it isn't trainable.

        Returns:
            Whether other elements are held than before.
        """
        self.hold = hold
        own = self.variable.version if isinstance(self.variable, MaskedWeight) else 0
        if not flagged:
            self.reference = None
        elif self.reference is None or own != self._own:
            self.refer()
        parts = (hold, None if hold is None else hold.reference, self.reference)
        if any(new is not old for new, old in zip(parts, self._parts, strict=True)):
            self.version += 1
        held = None if hold is None else hash(hold.through.numpy().tobytes())
        other = (held, own, flagged) != (self._held, self._own, self._flagged)
        self._parts, self._held, self._own, self._flagged = parts, held, own, flagged
        return other

    def refer(self) -> None:
        """Takes the value of now as what `trainable=False` holds."""
        with tf.init_scope():
            value = self.value()
            self.reference = outside_strategy(
                lambda: tf.Variable(value, trainable=False, name="pastnet_held")
            )

    def value(self) -> Any:
        """The value now, of the first replica."""
        return tf.convert_to_tensor(self.variable)

    def expected(self) -> Any:
        """What held elements should be."""
        if self.hold is None:
            return tf.convert_to_tensor(self.reference)
        if self.reference is None:
            return self.hold.held_value()
        return tf.where(self.hold.through, self.reference, self.hold.held_value())

    def held(self) -> Any:
        """Which elements are held, a bool tensor."""
        if self.hold is None or self.reference is not None:
            return tf.ones(self.variable.shape, tf.bool)
        return ~tf.convert_to_tensor(self.hold.through)

    def moved(self) -> Any:
        """Which elements are held and differ in any bit, a bool tensor."""
        return _moved(self.value(), self.expected(), self.held())

    def channels(self) -> Channels:
        """Compares the variable channel by channel."""
        # Eager: few variables are ever violated, and to compile this takes longer than to run it.
        values = self.value(), self.expected(), self.held()
        return Channels(*(result.numpy() for result in compared(*values, self.record.axis)))

    def worst(self, channels: Ints, count: int) -> Ints:
        """Elements that moved farthest, a share of each channel.

        Args:
            channels: those to look at, int64.
            count: how many elements at most.

        Returns:
            Positions in the flattened variable, int64.
        """
        axis = self.record.axis
        channels = channels[:: -(-len(channels) // count)]
        share = min(axis.elements, max(1, count // len(channels)))
        size = _distance(self.value(), self.expected())
        size = tf.where(self.moved(), size, -tf.ones((), tf.float64))
        top = tf.math.top_k(tf.gather(_split(size, axis), channels), share)
        row, column = np.nonzero(top.values.numpy() >= 0)
        return _flat(axis, channels[row], top.indices.numpy()[row, column])


def compared(value: Any, expected: Any, held: Any, axis: ChannelAxis) -> tuple[Any, ...]:
    """Compares a variable channel by channel.

    Args:
        value: its value, a tensor.
        expected: what held elements should be.
        held: which are, a bool tensor.
        axis: how it splits into channels.

    Returns:
        Tensors as in `Channels`.
    """
    moved = _moved(value, expected, held)
    held, moved = _split(held, axis), _split(moved, axis)
    size = tf.where(moved, _split(_distance(value, expected), axis), tf.zeros((), tf.float64))
    factor = tf.range(axis.elements, dtype=tf.int64) * _STRIDE + _START
    zero = tf.zeros((), tf.int64)

    def fingerprint(value: Any) -> Any:
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


def which_moved(watches: Sequence[Watch]) -> Any:
    """Which of some variables have a held element that moved.

    Args:
        watches: at least one.

    Returns:
        A bool tensor of shape (watches,). Small variables of one shape are compared together, which
        halves the time to compile it.
    """
    groups: dict[Any, list[int]] = {}
    for number, watch in enumerate(watches):
        variable = watch.variable
        large = variable.shape.num_elements() > STACK_ELEMENTS
        key = (tuple(variable.shape.as_list()), variable.dtype, number if large else None)
        groups.setdefault(key, []).append(number)
    found = []
    for numbers in groups.values():
        group = [watches[number] for number in numbers]
        rows = [(one.value(), one.expected(), one.held()) for one in group]
        columns = [_flattened(column) for column in zip(*rows, strict=True)]
        found.append(tf.reduce_any(_moved(*columns), 1))
    order = np.argsort([number for numbers in groups.values() for number in numbers])
    return tf.gather(tf.concat(found, 0), order)


def values_at(tensor: Any, positions: Ints) -> npt.NDArray[Any]:
    """Some elements of a tensor or variable.

    Args:
        tensor: of any shape.
        positions: in the flattened tensor.
    """
    flat = tf.reshape(tf.convert_to_tensor(tensor), [-1])
    return np.asarray(tf.gather(flat, positions).numpy())


def channels_at(axis: ChannelAxis, positions: Ints) -> Ints:
    """The channels of some elements.

    Args:
        axis: of the variable.
        positions: in the flattened variable.
    """
    if not axis.axes:
        return np.zeros(len(positions), np.int64)
    places = np.unravel_index(positions, axis.view)
    shape = [axis.view[at] for at in axis.axes]
    return np.ravel_multi_index([places[at] for at in axis.axes], shape).astype(np.int64)


def _flattened(values: Sequence[Any]) -> Any:
    # A single one isn't copied.
    stacked = values[0] if len(values) == 1 else tf.stack(values)
    return tf.reshape(stacked, (len(values), -1))


def _moved(value: Any, expected: Any, held: Any) -> Any:
    # By integers: NaN equals itself, −0 differs from 0, and subnormals aren't flushed. An
    # exclusive or, as a GPU compares int32 on the host.
    differ = tf.bitwise.bitwise_xor(_bits(value), _bits(expected))
    return tf.cast(differ, tf.bool) & held


def _distance(value: Any, expected: Any) -> Any:
    delta = tf.abs(tf.cast(value, tf.float64) - tf.cast(expected, tf.float64))
    return tf.where(tf.math.is_finite(delta), delta, tf.constant(np.inf, tf.float64))


def _bits(value: Any) -> Any:
    return tf.bitcast(value, _BITS[value.dtype.size])


def _split(value: Any, axis: ChannelAxis) -> Any:
    """As `ChannelAxis.split`: of shape (channels, elements)."""
    view = tf.transpose(tf.reshape(value, axis.view), axis.order)
    return tf.reshape(view, (axis.channels, axis.elements))


def _flat(axis: ChannelAxis, channels: Ints, elements: Ints) -> Ints:
    if not axis.view:
        return np.zeros(len(channels), np.int64)
    shape = [axis.view[at] for at in axis.order]
    places = np.unravel_index(channels * axis.elements + elements, shape)
    in_order = [places[axis.order.index(at)] for at in range(len(axis.view))]
    return np.ravel_multi_index(in_order, axis.view).astype(np.int64)
