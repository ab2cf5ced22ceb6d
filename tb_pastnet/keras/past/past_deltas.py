"""The past one step ago, kept as deltas of 16 bits."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from tb_pastnet.core.arguments import answered
from tb_pastnet.core.checks import is_number
from tb_pastnet.errors import InvalidArgument
from tb_pastnet.keras.graphs.trace import TemporaryVariable
from tb_pastnet.keras.past.past_variables import Shadow, Shadows, Variables

WHOLE = 4096
"""Variables of up to this many elements are kept whole: halving them saves little."""

_LEAST = 2.0**-126
"""The smallest normal bfloat16; processors treat smaller numbers as zero."""

ACROSS = 1024
"""Row length for sums of a checksum."""

_NONE = -1
"""A checksum that no value has."""


@answered
class PastDeltas(Shadows):
    """The past of variables one step ago, in half their memory.

    It keeps how far each variable moved in the step, as bfloat16; the past is the current value
    minus that: accurate to 1/256 of the movement. A delta that isn't zero is never kept as zero;
    one over 3.4e38 is infinite, and so is its past. Variables of other dtypes than float32 and
    float64, and those of up to 4,096 elements (biases, statistics, seeds), are kept whole.

    **Put every update inside `step()`.** A change elsewhere would shift the past as well. That is
    detected: reading the past of such a variable is an error when eager, and NaN in a tf.function;
    the same holds inside `step()` until it ends. `sync` starts again.

    All methods work eagerly, in a tf.function and under XLA, except for calling a `PastNetwork`:
    under XLA that needs `PastVariables`. Writes during such a call (statistics with
    `training=True`) are lost for variables kept as deltas. A checkpoint of the deltas has to be
    restored together with the current variables. See
    https://tb-pastnet.github.io/tb_pastnet/how_to/past_networks.html.

    Args:
        variables: as for `PastVariables`.

    Attributes:
        stored: the tf.Variables that hold the past.

    Raises:
        InvalidArgument: there are none, or one isn't a variable.

    Example:
        >>> weight = tf.Variable(tf.ones([100, 100]))
        >>> deltas = PastDeltas([weight])
        >>> with deltas.step():
        ...     _ = weight.assign_sub(tf.fill([100, 100], 0.25))
        >>> weight.numpy()[0, 0].item(), deltas.values()[0].numpy()[0, 0].item()
        (0.75, 1.0)
        >>> deltas.nbytes  # the variable has 40,000
        20008
    """

    def __init__(self, variables: Variables) -> None:
        super().__init__(variables, _shadow)
        self.stored = [variable for part in self._parts for variable in part.stored]

    def sync(self, tau: float = 1.0, *, statistics: bool = False) -> None:
        """Makes the past equal to the current values.

        Args:
            tau: must be 1. Soft syncs aren't possible, because deltas are of one step.
            statistics: as for `PastVariables`; with tau = 1 everything is copied.

        Raises:
            InvalidArgument: another tau.
        """
        if not is_number(tau) or tau != 1:
            raise InvalidArgument(
                f"Could not sync deltas: expected tau to be 1, got {tau}. Use PastVariables for "
                "soft syncs."
            )
        for part in self._parts:
            part.sync(statistics=statistics)


class _HalvedShadow(Shadow):
    """The past of a variable as its movement, and a checksum of the value it is counted from."""

    def __init__(self, current: tf.Variable, name: str) -> None:
        self.current = current
        self._name = name
        zeros, mark = tf.zeros(current.shape, tf.bfloat16), checksum(current.read_value())
        self._delta = tf.Variable(zeros, trainable=False, name=f"delta/{name}")
        self._mark = tf.Variable(mark, trainable=False, name=f"mark/{name}")
        self.stored = [self._delta, self._mark]
        # XLA can't fill it, and names the variable in its error.
        needed = f"XLA_needs_PastVariables_in_place_of_PastDeltas/{name}"
        self._temporary = TemporaryVariable(current, needed)
        self.full = self._temporary.variable

    def value(self) -> tf.Tensor:
        current, delta = self._read()
        return tf.stop_gradient(current - tf.cast(delta, current.dtype))

    def delta(self) -> tf.Tensor:
        delta = tf.cast(self._read()[1], self.current.dtype)
        return _as_moved(tf.convert_to_tensor(self.current), delta)

    def sync(self, tau: float | tf.Tensor = 1.0, *, statistics: bool = False) -> None:
        self._delta.assign(tf.zeros_like(self._delta))
        self._mark.assign(checksum(self.current.read_value()))

    def begin(self) -> tf.Tensor:
        self._mark.assign(tf.constant(_NONE, tf.int64))
        return self.current.read_value()

    def end(self, previous: tf.Tensor | None) -> tf.Operation:
        current = self.current.read_value()
        return tf.group(
            self._delta.assign(_movement(current, previous), read_value=False),
            self._mark.assign(checksum(current), read_value=False),
        )

    def fill(self) -> tf.Operation | None:
        return self._temporary.fill(self.value())

    def empty(self) -> None:
        self._temporary.empty()

    def _read(self) -> tuple[tf.Tensor, tf.Tensor]:
        """The current value and the delta; NaN if the variable has changed since."""
        current = self.current.read_value()
        delta = self._delta.read_value()
        same = tf.equal(checksum(current), self._mark.read_value())
        if not tf.executing_eagerly():
            return current, tf.where(same, delta, tf.constant(float("nan"), tf.bfloat16))
        if not same:
            raise InvalidArgument(
                f"Could not read the past of {self._name!r}: expected no change since the last "
                "step() or sync(), got other values. Change variables only inside step(), read "
                "the past outside of it, or call sync() to start again."
            )
        return current, delta


def _shadow(current: tf.Variable, name: str, given: Any) -> Shadow:
    if current.dtype in (tf.float32, tf.float64) and current.shape.num_elements() > WHOLE:
        return _HalvedShadow(current, name)
    return Shadow(current, name, given)


def _movement(current: tf.Tensor, previous: tf.Tensor) -> tf.Tensor:
    """How far a variable moved, as bfloat16: zero only where it didn't move."""
    delta = tf.cast(current - previous, tf.bfloat16)
    least = tf.constant(_LEAST, tf.bfloat16)
    delta = tf.where(delta == 0, tf.where(current > previous, least, -least), delta)
    # Including infinities that stay: their difference would be NaN.
    return tf.where(current == previous, tf.zeros((), tf.bfloat16), delta)


@tf.custom_gradient
def _as_moved(current: tf.Tensor, delta: tf.Tensor) -> Any:  # noqa: ARG001  only its gradient counts
    """The delta, whose gradient is that of the current value."""
    return tf.identity(delta), lambda upstream: (upstream, None)


def checksum(value: tf.Tensor) -> tf.Tensor:
    """A number from 0 on that changes with the bits of float32 or float64 and with their order.

    Whole numbers are summed, so it is the same eagerly, in a graph and under XLA. Two values have
    the same one by chance in one of 2^63 cases.
    """
    flat = tf.reshape(value, [-1])
    cut = flat.shape[0] - flat.shape[0] % (2 * ACROSS)
    # Two float32 are read as one number: no copy is made.
    pair = () if value.dtype == tf.float64 else (2,)
    blocks = _spread(tf.bitcast(tf.reshape(flat[:cut], [-1, ACROSS, *pair]), tf.int64))
    if value.dtype == tf.float64:
        rest = _spread(tf.bitcast(flat[cut:], tf.int64))
    else:
        rest = tf.cast(tf.bitcast(flat[cut:], tf.int32), tf.int64)
    # Each place counts with its own odd factor.
    total = (
        _weighed(tf.reduce_sum(blocks, 1), 0, 2 * ACROSS)
        + _weighed(tf.reduce_sum(blocks, 0), 1, 2)
        + _weighed(rest, 2 * cut + 1, 2)
    )
    return tf.bitwise.bitwise_and(total, tf.int64.max)


def _spread(bits: tf.Tensor) -> tf.Tensor:
    """Copies the highest bit lower down: otherwise two flipped signs would cancel out."""
    return bits + tf.bitwise.right_shift(bits, tf.constant(32, tf.int64))


def _weighed(numbers: tf.Tensor, first: int, step: int) -> tf.Tensor:
    factors = tf.range(first, first + step * numbers.shape[0], step, tf.int64)
    return tf.reduce_sum(numbers * factors)
