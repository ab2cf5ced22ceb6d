"""Past copies as TensorFlow variables, and a TensorFlow function for the comparison.

Weights stay on their device. The function computes `core.statistics.channel_statistics`. Squares in
float32 vanish below 1e-19 and overflow above 1e19. So the function also returns for which channels
its result may be wrong. Those few, and all with NaN or infinity, are computed again by the
definition itself.

Small variables of one shape are stacked, which halves the cost of networks with many of them.

Of sums of squares, matrix products, float64, XLA and `EuclideanNorm`, measured on 2 cores, the last
was the fastest that doesn't first compile for seconds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from tb_pastnet.core.axes import ChannelAxis, stacked
from tb_pastnet.core.fingerprint import Prints
from tb_pastnet.core.statistics import (
    CHANGED,
    DELTA_NORM,
    NONFINITE,
    channel_statistics,
)
from tb_pastnet.keras.measure.fingerprint import fingerprints
from tb_pastnet.keras.measure.learning_rate import LearningRate
from tb_pastnet.keras.measure.runner import Runner
from tb_pastnet.keras.types import Tensor
from tb_pastnet.record.source import STACK_ELEMENTS, Floats, Ints

_TINY_NORM = 1e-14
"""Below it, squares may have vanished from a sum."""


class Stack(NamedTuple):
    """Variables of one shape, dtype and channel axis; `members` numbers them among all."""

    members: tuple[int, ...]
    variables: tuple[Any, ...]
    axis: ChannelAxis

    def read(self) -> Any:
        """Their values, in one tensor (members, *view): that of a single one is not copied."""
        values = [tf.convert_to_tensor(variable) for variable in self.variables]
        together = values[0] if len(values) == 1 else tf.stack(values)
        return tf.reshape(together, (len(values), *self.axis.view))

    def norm(self) -> Any:
        """The norms of their channels."""
        return _norm(_exact(self.read()), self.axis)

    def prints(self, value: Tensor) -> Any:
        """The fingerprints of their channels; TensorFlow doesn't show the bits of a single byte."""
        seen = _exact(value) if value.dtype.size == 1 else value
        return fingerprints(seen, stacked(self.axis, len(self.members)))


def stacks(variables: Sequence[Any], axes: Sequence[ChannelAxis]) -> list[Stack]:
    """Groups variables that can be measured together."""
    groups: dict[Any, list[int]] = {}
    for number, (variable, axis) in enumerate(zip(variables, axes, strict=True)):
        small = axis.channels * axis.elements <= STACK_ELEMENTS
        key = (axis.view, axis.axes, variable.dtype, None if small else number)
        groups.setdefault(key, []).append(number)
    return [
        Stack(tuple(members), tuple(variables[number] for number in members), axes[members[0]])
        for members in groups.values()
    ]


class TensorCopies:
    """Past copies on the variables' devices, with the interface of `ArrayCopies`."""

    prints: Prints

    def __init__(self, stacks: Sequence[Stack], runner: Runner, rate: LearningRate) -> None:
        self._stacks = tuple(stacks)
        self._runner = runner
        self._rate = rate
        self._copies = [runner.variable(stack.read, "pastnet_copy") for stack in self._stacks]
        # Computed while values are current: for past values they stay the same.
        self._norms = [runner.variable(stack.norm, "pastnet_norm") for stack in self._stacks]
        channels = [len(stack.members) * stack.axis.channels for stack in stacks]
        self._tiny = np.repeat([_tiny(stack) for stack in stacks], channels)
        self._take = runner.function(self._assign_all)
        self._compare = runner.fetch(self._compare_only)
        self._replace = runner.fetch(self._compare_and_assign)

    def take(self) -> None:
        """Makes the current values the past ones."""
        self._take()

    def compare(self, *, replace: bool) -> Floats:
        """See `ArrayCopies`."""
        rows, suspect, self.prints, *numbers = (self._replace if replace else self._compare)()
        self._rate.hear(numbers)
        result: Floats = np.zeros((NONFINITE + 1, rows.shape[1]), np.float32)
        result[: CHANGED + 1] = rows
        suspects = np.flatnonzero(suspect)
        if suspects.size:
            result = self._corrected(result, suspects)
            if replace:
                self.take()
        return result

    @property
    def nbytes(self) -> int:
        """Bytes of the past values."""
        sizes = [(stack.axis.channels * stack.axis.elements, stack) for stack in self._stacks]
        return sum(size * len(own.members) * own.variables[0].dtype.size for size, own in sizes)

    def past(self) -> list[Any]:
        """The past values: one tensor per variable. Later copies leave them as they are."""
        return list(self._give())

    @cached_property
    def _give(self) -> Callable[[], Any]:
        return self._runner.function(self._apart)

    def _read(self) -> list[Any]:
        return [stack.read() for stack in self._stacks]

    def _apart(self) -> list[Any]:
        return [
            tf.reshape(value, stack.axis.shape)
            for stack, copy in zip(self._stacks, self._copies, strict=True)
            for value in tf.unstack(copy.read_value())
        ]

    def _assign_all(self) -> Any:
        values = self._read()
        pairs = zip(self._stacks, values, strict=True)
        return self._assign(values, [_norm(_exact(value), stack.axis) for stack, value in pairs])

    def _assign(self, values: Sequence[Any], norms: Sequence[Any]) -> Any:
        pairs = zip((*self._copies, *self._norms), (*values, *norms), strict=True)
        with tf.control_dependencies([c.assign(value, read_value=False) for c, value in pairs]):
            return tf.constant(True)

    def _rows(self, values: Sequence[Any]) -> tuple[Any, Any, list[Any]]:
        """The rows of all stacks, which channels are suspect, and each one's current norms."""
        sides = []
        each = zip(self._stacks, values, self._copies, self._norms, strict=True)
        for stack, value, copy, norm in each:
            current, past = _exact(value), _exact(copy.read_value())
            norms = _norm(current, stack.axis), norm.read_value()
            sides.append(_Sides(current, past, *norms, stack.axis))
        # All channels at once from here on: the number of operations matters.
        wide = tf.float64 if any(side.norm.dtype == tf.float64 for side in sides) else tf.float32
        rows = tf.concat([tf.cast(side.rows(), wide) for side in sides], axis=1)
        hidden = tf.concat([side.hidden() for side in sides], 0)
        suspect = hidden | _suspect(rows, self._tiny.astype(wide.as_numpy_dtype))
        return tf.cast(rows, tf.float32), suspect, [side.norm for side in sides]

    def _compare_only(self) -> list[Any]:
        values = self._read()
        return [*self._rows(values)[:2], self._prints(values), *self._rate.tensors()]

    def _prints(self, values: Sequence[Any]) -> Any:
        """The fingerprints of the channels of all stacks."""
        pairs = zip(self._stacks, values, strict=True)
        return tf.concat([stack.prints(value) for stack, value in pairs], 0)

    def _compare_and_assign(self) -> list[Any]:
        values = self._read()
        rows, suspect, norms = self._rows(values)
        # If some channels have to be computed again, the past values are still needed.
        done = tf.cond(
            tf.reduce_any(suspect),
            lambda: tf.constant(True),
            lambda: self._assign(values, norms),
        )
        with tf.control_dependencies([done]):
            measured = map(tf.identity, (rows, suspect, self._prints(values)))
            return [*measured, *self._rate.tensors()]

    def _corrected(self, result: Floats, suspects: Ints) -> Floats:
        # Norms of float64 and of the largest float32 values don't fit in float32.
        exact = result.astype(np.float64)
        start = 0
        for stack, copy in zip(self._stacks, self._copies, strict=True):
            width = stack.axis.channels
            for row, variable in enumerate(stack.variables):
                channels = suspects[(start <= suspects) & (suspects < start + width)]
                if channels.size:
                    values = channel_statistics(variable.numpy(), copy.numpy()[row], stack.axis)
                    exact[:, channels] = values[: NONFINITE + 1, channels - start]
                start += width
        return exact


class _Sides(NamedTuple):
    """Current and past values of a stack, (members, *view), and the norms of their channels."""

    current: Tensor
    past: Tensor
    norm: Tensor
    past_norm: Tensor
    axis: ChannelAxis

    def rows(self) -> Any:
        """Norm, past_norm, delta_norm, delta_max and changed: (5, channels)."""
        current, axis = self.current, self.axis
        delta = current - self.past
        differs = tf.cast(tf.not_equal(current, self.past), current.dtype)
        norms = [self.norm, self.past_norm, _norm(delta, axis)]
        largest = _reduced(tf.reduce_max, tf.abs(delta), axis)
        changed = _reduced(tf.reduce_sum, differs, axis) / axis.elements
        return _in_order(tf.stack([*norms, largest, changed]), axis)

    def hidden(self) -> Any:
        """Which channels have a norm of 0, and an element that isn't 0: bool (channels,)."""
        zero = tf.equal(tf.minimum(self.norm, self.past_norm), 0)

        def look() -> Any:
            current = _hidden(self.current, self.norm, self.axis)
            return current | _hidden(self.past, self.past_norm, self.axis)

        # For each stack separately: one channel of zeros shouldn't make all weights be read.
        hidden = tf.cond(tf.reduce_any(zero), look, lambda: tf.zeros_like(zero))
        return _in_order(hidden[tf.newaxis], self.axis)[0]


def _exact(values: Tensor) -> Any:
    """In a dtype that is exact enough, and has all operations."""
    return values if values.dtype in (tf.float32, tf.float64) else tf.cast(values, tf.float32)


def _norm(values: Tensor, axis: ChannelAxis) -> Any:
    # For a single element it is its magnitude.
    return tf.abs(_reduced(tf.math.reduce_euclidean_norm, values, axis))


def _reduced(function: Any, values: Tensor, axis: ChannelAxis) -> Any:
    """(members, *view) to (members, *channel axes)."""
    if axis.elements > 1:
        return function(values, _over(axis))
    sizes = (size for number, size in enumerate(axis.view) if number in axis.axes)
    return tf.reshape(values, [values.shape.as_list()[0], *sizes])


def _over(axis: ChannelAxis) -> list[int]:
    return [number + 1 for number in range(len(axis.view)) if number not in axis.axes]


def _tiny(stack: Stack) -> float:
    """The norm below which squares may have vanished."""
    # A single float32 isn't squared; a float64 has to fit in the float32 of the result.
    squared = stack.axis.elements > 1 or stack.variables[0].dtype == tf.float64
    return _TINY_NORM if squared else 0.0


def _suspect(rows: Tensor, tiny: Floats) -> Any:
    """Channels whose squares may have overflown or vanished, or that hold NaN or infinity."""
    *norms, _, changed = tf.unstack(rows)
    # Not by comparing: TensorFlow's optimizer turns not (x < y) into x >= y, wrong for NaN.
    suspect = ~tf.math.is_finite(tf.cast(tf.add_n(norms), tf.float32))
    for norm in norms:
        suspect |= (norm > 0) & (norm < tiny)
    return suspect | ((norms[DELTA_NORM] == 0) & (changed > 0))


def _hidden(values: Tensor, norm: Tensor, axis: ChannelAxis) -> Any:
    """Channels of norm 0 with an element that isn't 0, by its bits: subnormals compare as 0."""
    bits = tf.bitcast(values, tf.int64 if values.dtype == tf.float64 else tf.int32)
    magnitude = tf.bitwise.left_shift(bits, tf.ones_like(bits))
    nonzero = tf.reduce_any(tf.not_equal(magnitude, 0), _over(axis))
    return tf.equal(norm, 0) & tf.reshape(nonzero, tf.shape(norm))


def _in_order(rows: Tensor, axis: ChannelAxis) -> Any:
    """(rows, members, *channel axes) to (rows, channels)."""
    ranks = np.argsort(np.argsort(axis.axes)).tolist()
    if ranks != sorted(ranks):
        rows = tf.transpose(rows, [0, 1, *(rank + 2 for rank in ranks)])
    return tf.reshape(rows, [rows.shape[0], -1])
