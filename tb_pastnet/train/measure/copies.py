"""Past copies as TensorFlow variables, and a TensorFlow function that compares with them.

Weights stay on their device. It computes what `core.statistics.channel_statistics` defines. float32
squares vanish below 1e-19 and overflow above 1e19, so the function also says for which channels its
result can't be trusted: those few, and all with NaN or infinity, are computed again by the
definition itself.

Of sums of squares, matrix products, float64, XLA and `EuclideanNorm`, measured on 2 cores, the last
was the fastest that doesn't first compile for seconds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from tb_pastnet.core.axes import ChannelAxis
from tb_pastnet.core.statistics import CHANGED, NONFINITE, channel_statistics
from tb_pastnet.train.measure.place import Place
from tb_pastnet.train.measure.stacks import Stack

_TINY_NORM = 1e-14
"""Below it, squares may have vanished from a sum."""

Floats = npt.NDArray[np.floating]


class Copies(Protocol):
    """Past values of some stacks, and what compares the current ones with them."""

    def take(self) -> None:
        """Makes the current values the past ones."""

    def compare(self, *, replace: bool) -> Floats:
        """Compares the current values with the past ones.

        Args:
            replace: whether the current values then take their place, cheaper than by `take`.

        Returns:
            Floats (6, channels of all stacks): those rows of `core.statistics.STATISTICS` that
            values alone give.
        """

    def past(self) -> list[Any]:
        """The past values: a tensor of its shape for each variable of each stack.

        Later copies leave them as they are.
        """


class TensorCopies:
    """Past copies where the variables are; see `Copies`.

    Args:
        stacks: what is compared.
        place: where it is computed. Eagerly the past values are those of now; in a graph they have
            to be taken.
    """

    def __init__(self, stacks: Sequence[Stack], place: Place) -> None:
        self._stacks = tuple(stacks)
        self._place = place
        self._copies = [
            place.variable(partial(Stack.read, stack), "pastnet_copy") for stack in self._stacks
        ]
        self._take = place.function(lambda: self._assign(self._read()))
        self._compare = place.fetch(lambda: self._rows(self._read()))
        self._replace = place.fetch(self._compare_and_assign)
        self._give: Callable[[], Any] | None = None

    def take(self) -> None:
        """See `Copies`."""
        self._take()

    def compare(self, *, replace: bool) -> Floats:
        """See `Copies`."""
        rows = (self._replace if replace else self._compare)()
        result: Floats = np.zeros((NONFINITE + 1, rows.shape[1]), np.float32)
        result[: CHANGED + 1] = rows[: CHANGED + 1]
        suspects = np.flatnonzero(rows[-1])
        if suspects.size:
            result = self._exact(result, suspects)
            if replace:
                self.take()
        return result

    def past(self) -> list[Any]:
        """See `Copies`."""
        if self._give is None:
            self._give = self._place.function(self._apart)
        return list(self._give())

    def _read(self) -> list[Any]:
        return [stack.read() for stack in self._stacks]

    def _apart(self) -> list[Any]:
        return [
            tf.reshape(one, stack.axis.shape)
            for stack, copy in zip(self._stacks, self._copies, strict=True)
            for one in tf.unstack(copy.read_value())
        ]

    def _assign(self, values: Sequence[Any]) -> Any:
        pairs = zip(self._copies, values, strict=True)
        with tf.control_dependencies([c.assign(value, read_value=False) for c, value in pairs]):
            return tf.constant(True)

    def _rows(self, values: Sequence[Any]) -> Any:
        both = zip(self._stacks, self._copies, values, strict=True)
        parts = [_reduce(value, copy.read_value(), stack.axis) for stack, copy, value in both]
        return tf.concat(parts, axis=1)

    def _compare_and_assign(self) -> Any:
        values = self._read()
        rows = self._rows(values)
        # Where some channels have to be computed again, the past values are still needed.
        suspect = tf.reduce_any(rows[-1] > 0)
        done = tf.cond(suspect, lambda: tf.constant(True), lambda: self._assign(values))
        with tf.control_dependencies([done]):
            return tf.identity(rows)

    def _exact(self, result: Floats, suspects: npt.NDArray[np.intp]) -> Floats:
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
