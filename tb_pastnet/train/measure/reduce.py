"""The statistics of all channels in one TensorFlow function; weights stay on their device.

It computes what `core.statistics.channel_statistics` defines. float32 squares vanish below 1e-19
and overflow above 1e19, so the function also says for which channels its result can't be trusted:
those few, and all with NaN or infinity, are computed again by the definition itself.

Small variables of one shape are stacked and reduced together, which halves the cost of networks
with many of them. Of sums of squares, matrix products, float64, XLA and `EuclideanNorm`, measured
on 2 cores, the last was the fastest that doesn't first compile for seconds.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from tb_pastnet.core.axes import ChannelAxis
from tb_pastnet.core.statistics import CHANGED, KEPT, STATISTICS, TRAINABLE, channel_statistics
from tb_pastnet.train.measure.place import EAGER, Place
from tb_pastnet.train.model.variables import Recorded

STACK_ELEMENTS = 1 << 16
"""Variables up to this size are stacked with others of their shape."""

_TINY_NORM = 1e-14
"""Below it, squares may have vanished from a sum."""

Floats = npt.NDArray[np.floating]


class _Stack(NamedTuple):
    members: tuple[int, ...]
    axis: ChannelAxis
    dtype: tf.DType


class ChannelPass:
    """Past copies of some variables, and the statistics of the current values against them.

    Args:
        variables: tf.Variables of floating dtype and fixed shape.
        axes: how each splits into channels.
        copies: past copies to hold room for. Eagerly each is taken now.
        place: where it is computed.

    Example:
        >>> from tb_pastnet.core.axes import explicit_axis
        >>> weight = tf.Variable([[3.0, 0.0], [4.0, 0.0]])
        >>> reducer = ChannelPass([weight], [explicit_axis(-1, (2, 2), "w")])
        >>> _ = weight.assign_add([[0.0, 0.0], [0.0, 1.0]])
        >>> reducer.statistics()[:5].tolist()
        [[5.0, 1.0], [5.0, 0.0], [0.0, 1.0], [0.0, 1.0], [0.0, 0.5]]
    """

    def __init__(
        self,
        variables: Sequence[Any],
        axes: Sequence[ChannelAxis],
        copies: int = 1,
        place: Place = EAGER,
    ) -> None:
        self._variables = tuple(variables)
        self._axes = tuple(axes)
        self._place = place
        self._stacks = _stacks(self._variables, self._axes)
        self._rows = {
            member: (number, row)
            for number, stack in enumerate(self._stacks)
            for row, member in enumerate(stack.members)
        }
        self._starts = np.cumsum([0, *(axis.channels for axis in self._axes)])
        self._order = self._channel_order()
        self._copies: list[list[Any]] = []
        self._take: list[Any] = []
        self._compare: list[Any] = []
        self._replace: list[Any] = []
        self._give: dict[int, Any] = {}
        for _ in range(copies):
            self._add_copy()

    @classmethod
    def of(cls, records: Sequence[Recorded], copies: int = 1, place: Place = EAGER) -> ChannelPass:
        """That of recorded variables."""
        variables = [record.found.variable for record in records]
        return cls(variables, [record.axis for record in records], copies, place)

    @property
    def channels(self) -> int:
        """Channels of all variables."""
        return int(self._starts[-1])

    def spans(self) -> list[tuple[int, int]]:
        """First channel of each variable, and one after its last."""
        return list(zip(self._starts[:-1].tolist(), self._starts[1:].tolist(), strict=True))

    def copy(self, number: int = 0) -> None:
        """Takes the current values as a past copy.

        Args:
            number: which of the copies.
        """
        self._take[number]()

    def past(self, number: int = 0) -> list[Any]:
        """The values of a past copy.

        Args:
            number: which of the copies.

        Returns:
            A tensor a variable, in their shapes and dtypes. Later copies leave it as it is.
        """
        if number not in self._give:
            self._give[number] = self._place.function(lambda: self._apart(self._copies[number]))
        return list(self._give[number]())

    def statistics(self, number: int = 0, *, replace: bool = False) -> Floats:
        """Compares the current values with a past copy.

        Args:
            number: which of the copies.
            replace: whether the current values take its place, cheaper than by `copy`.

        Returns:
            Floats (8, channels), rows as in `core.statistics.STATISTICS`; kept and trainable are 1,
            as no masks are known here.
        """
        function = self._replace[number] if replace else self._compare[number]
        rows = function()[:, self._order]
        result = np.zeros((len(STATISTICS), rows.shape[1]), np.float32)
        result[: CHANGED + 1] = rows[: CHANGED + 1]
        result[[KEPT, TRAINABLE]] = 1
        suspects = np.flatnonzero(rows[-1])
        if suspects.size:
            result = self._exact(result, suspects, number)
            if replace:
                self.copy(number)
        return result

    def _exact(self, result: Floats, suspects: npt.NDArray[np.intp], number: int) -> Floats:
        # Norms of float64 and of the largest float32 values don't fit in float32.
        exact = result.astype(np.float64)
        owners = np.searchsorted(self._starts, suspects, side="right") - 1
        for member in np.unique(owners):
            channels = suspects[owners == member]
            stack, row = self._rows[member]
            past = self._copies[number][stack].numpy()[row]
            current = self._variables[member].numpy()
            values = channel_statistics(current, past, self._axes[member])
            exact[:, channels] = values[:, channels - self._starts[member]]
        return exact

    def _add_copy(self) -> None:
        copy = [
            self._place.variable(partial(self._read, stack), "pastnet_copy")
            for stack in self._stacks
        ]
        self._copies.append(copy)

        def assign(values: Sequence[Any]) -> Any:
            pairs = zip(copy, values, strict=True)
            return _true_after(*[past.assign(value, read_value=False) for past, value in pairs])

        def compare(values: Sequence[Any]) -> Any:
            parts = [
                _reduce(value, past.read_value(), stack.axis)
                for stack, past, value in zip(self._stacks, copy, values, strict=True)
            ]
            return tf.concat(parts, axis=1)

        def replace() -> Any:
            values = self._read_all()
            rows = compare(values)
            # Where some channels have to be computed again, the past values are still needed.
            suspect = tf.reduce_any(rows[-1] > 0)
            done = tf.cond(suspect, lambda: tf.constant(True), lambda: assign(values))
            with tf.control_dependencies([done]):
                return tf.identity(rows)

        self._take.append(self._place.function(lambda: assign(self._read_all())))
        self._compare.append(self._place.fetch(lambda: compare(self._read_all())))
        self._replace.append(self._place.fetch(replace))

    def _apart(self, copy: Sequence[Any]) -> list[Any]:
        places = [self._rows[member] for member in range(len(self._variables))]
        return [
            tf.reshape(copy[stack].read_value()[row], variable.shape)
            for variable, (stack, row) in zip(self._variables, places, strict=True)
        ]

    def _read_all(self) -> list[Any]:
        return [self._read(stack) for stack in self._stacks]

    def _read(self, stack: _Stack) -> Any:
        shape = (len(stack.members), *stack.axis.view)
        values = [tf.convert_to_tensor(self._variables[member]) for member in stack.members]
        return tf.reshape(values[0] if len(values) == 1 else tf.stack(values), shape)

    def _channel_order(self) -> npt.NDArray[np.intp]:
        # Where the channels of the variables, in their order, lie in the result of the stacks.
        order = np.empty(self.channels, np.intp)
        at = 0
        for stack in self._stacks:
            for member in stack.members:
                start, stop = self._starts[member], self._starts[member + 1]
                order[start:stop] = np.arange(at, at + stop - start)
                at += stop - start
        return order


def _stacks(variables: Sequence[Any], axes: Sequence[ChannelAxis]) -> list[_Stack]:
    stacks: dict[Any, _Stack] = {}
    for member, (variable, axis) in enumerate(zip(variables, axes, strict=True)):
        small = axis.channels * axis.elements <= STACK_ELEMENTS
        key = (axis.view, axis.axes, variable.dtype, None if small else member)
        members = stacks[key].members if key in stacks else ()
        stacks[key] = _Stack((*members, member), axis, variable.dtype)
    return list(stacks.values())


def _true_after(*operations: Any) -> Any:
    with tf.control_dependencies(operations):
        return tf.constant(True)


def _reduce(current: Any, past: Any, axis: ChannelAxis) -> Any:
    """Rows norm, past_norm, delta_norm, delta_max, changed and suspect of (members, *view)."""
    if current.dtype not in (tf.float32, tf.float64):
        current, past = tf.cast(current, tf.float32), tf.cast(past, tf.float32)
    over = [number + 1 for number in range(len(axis.view)) if number not in axis.axes]
    shape = [current.shape.as_list()[0], *(n for at, n in enumerate(axis.view) if at in axis.axes)]

    def reduced(function: Any, values: Any) -> Any:
        return function(values, over) if axis.elements > 1 else tf.reshape(values, shape)

    delta = current - past
    differs = tf.cast(tf.not_equal(current, past), current.dtype)
    # Of a single element the norm is its magnitude.
    norms = [tf.abs(reduced(tf.math.reduce_euclidean_norm, x)) for x in (current, past, delta)]
    largest = reduced(tf.reduce_max, tf.abs(delta))
    changed = reduced(tf.reduce_sum, differs) / axis.elements
    # A single float32 isn't squared; a float64 has to fit in the float32 of the result.
    squared = axis.elements > 1 or current.dtype == tf.float64
    suspect = _suspect(norms, changed, _TINY_NORM if squared else 0.0)
    zero = tf.equal(tf.minimum(norms[0], norms[1]), 0)
    hidden = tf.cond(
        tf.reduce_any(zero),
        lambda: _hidden(current, norms[0], over) | _hidden(past, norms[1], over),
        lambda: tf.zeros_like(zero),
    )
    rows = [*norms, largest, changed, tf.cast(suspect | hidden, current.dtype)]
    return tf.cast(tf.stack([_in_order(row, axis) for row in rows]), tf.float32)


def _suspect(norms: Sequence[Any], changed: Any, tiny: float) -> Any:
    """Channels whose squares may have overflown or vanished, or that hold NaN or infinity."""
    # Not by comparing: TensorFlow's optimizer turns not (x < y) into x >= y, wrong for NaN.
    suspect = ~tf.math.is_finite(tf.cast(tf.add_n(norms), tf.float32))
    for norm in norms:
        suspect |= (norm > 0) & (norm < tiny)
    return suspect | ((norms[2] == 0) & (changed > 0))


def _hidden(values: Any, norm: Any, over: Sequence[int]) -> Any:
    """Channels of norm 0 with an element that isn't: by its bits, as subnormals compare as 0."""
    bits = tf.bitcast(values, tf.int64 if values.dtype == tf.float64 else tf.int32)
    magnitude = tf.bitwise.left_shift(bits, tf.ones_like(bits))
    found = tf.reduce_any(tf.not_equal(magnitude, 0), over)
    return tf.equal(norm, 0) & tf.reshape(found, tf.shape(norm))


def _in_order(row: Any, axis: ChannelAxis) -> Any:
    ranks = np.argsort(np.argsort(axis.axes)).tolist()
    if ranks != sorted(ranks):
        row = tf.transpose(row, [0, *(rank + 1 for rank in ranks)])
    return tf.reshape(row, [-1])
