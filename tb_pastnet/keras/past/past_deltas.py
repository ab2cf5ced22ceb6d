"""The past one step ago, kept as deltas of 16 bits."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import tensorflow as tf

from tb_pastnet.errors import InvalidArgument
from tb_pastnet.keras.graphs.temporary import StandIn
from tb_pastnet.keras.past.mark import mark_of
from tb_pastnet.keras.past.past_variables import Current, Followed, difference

WHOLE = 4096
"""Variables of up to this many elements are kept whole: a half of them is worth little."""

_LEAST = 2.0**-126
"""The smallest normal bfloat16; processors take what is smaller for zero."""

_UNKNOWN = -1
"""A mark that no variable has."""


class PastDeltas(tf.Module):
    """The past of variables one step ago, in half of their memory.

    Kept is how far each variable moved in the step, as bfloat16, and the past is the current value
    minus that: right to 1/256 of the movement. A copy of 16 bits would be wrong by up to 1/256 of
    the weight itself, often more than the movement. A delta that isn't zero is never kept as zero;
    one over 3.4e38 is infinite, and so is its past. Variables of other dtypes than float32 and
    float64, and those of up to 4,096 elements (biases, statistics, seeds), are kept whole.

    **All that changes the variables has to happen inside of `step()`.** What changes one elsewhere
    would move its past along. That is noticed: the past of such a variable, and also inside of
    `step()` until it ends, is an error when it is read eagerly, and NaN in a tf.function. `sync`
    begins anew.

    All methods work eagerly, in a tf.function and under XLA, but for calling a `PastNetwork`:
    under XLA that needs `PastVariables`. While it is called the full values exist for a moment, and
    what it writes (statistics with `training=True`) is forgotten for variables that are kept as
    deltas. A `tf.train.Checkpoint(past=deltas)` saves and restores the deltas, to be restored
    together with the current variables.

    Args:
        variables: keras.Variables or tf.Variables, in an order that `values` and `delta` keep; or a
            mapping of names to them.

    Attributes:
        stored: the tf.Variables that hold the past.

    Raises:
        InvalidArgument: there are none, or one is something else.

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

    def __init__(self, variables: Sequence[Any] | Mapping[str, Any]) -> None:
        super().__init__()
        with tf.init_scope():
            self._parts = _Parts(Current(variables))
        self.stored = [variable for part in self._parts for variable in part.stored]

    @property
    def nbytes(self) -> int:
        """Bytes that the past takes between two calls."""
        return sum(one.shape.num_elements() * one.dtype.size for one in self.stored)

    @property
    def handles(self) -> frozenset[int]:
        """By `id`, the handles of the current variables."""
        return frozenset(id(part.current.handle) for part in self._parts)

    def values(self) -> list[Any]:
        """The past values, one tensor a variable, without gradients.

        Raises:
            InvalidArgument: eagerly, where a variable has changed outside of `step`.
        """
        return [part.value() for part in self._parts]

    def delta(self) -> list[Any]:
        """Current minus past, one tensor a variable, in the variable's own dtype and shape.

        Its gradient is that of the current variable.

        Raises:
            InvalidArgument: as of `values`.
        """
        return [_as_moved(tf.convert_to_tensor(part.current), part.delta()) for part in self._parts]

    def sync(self, tau: float = 1.0) -> None:
        """Makes the past equal to the current values.

        Args:
            tau: 1. There is no half way, as deltas are of one step.

        Raises:
            InvalidArgument: another tau.
        """
        if not isinstance(tau, int | float) or tau != 1:
            raise InvalidArgument(
                f"Could not sync deltas: expected tau to be 1, got {tau}. Use PastVariables to "
                f"follow softly."
            )
        for part in self._parts:
            part.sync()

    @contextmanager
    def step(self) -> Iterator[None]:
        """Around all that changes the variables: the past is then the values from before it.

        With Keras that is the update, and the forward pass with `training=True`. Read the past
        before or after the block.
        """
        before = [part.begin() for part in self._parts]
        yield
        _in_turn(partial(part.end, value) for part, value in zip(self._parts, before, strict=True))

    @contextmanager
    def standing_in(self) -> Iterator[dict[int, Any]]:
        """By `id` of each current handle, that of a variable which holds the past value.

        Raises:
            InvalidArgument: as of `values`.
        """
        try:
            _in_turn(part.fill for part in self._parts)
            yield {id(part.current.handle): part.full.handle for part in self._parts}
        finally:
            for part in self._parts:
                part.empty()


class _Whole:
    """The past of a variable as a copy."""

    def __init__(self, followed: Followed) -> None:
        self.current = followed.current
        self.full = _shadow(f"past/{followed.name}", self.current.read_value())
        self.stored = [self.full]

    def value(self) -> Any:
        return self.full.read_value()

    def delta(self) -> Any:
        return difference(self.current, self.full)

    def sync(self) -> None:
        self.full.assign(self.current.read_value())

    def begin(self) -> Any:
        self.sync()

    def end(self, before: Any) -> None:
        """The copy was taken at the beginning."""

    def fill(self) -> None:
        """It is full."""

    def empty(self) -> None:
        """It stays full."""


class _Delta:
    """The past of a variable as its movement, and a mark of the value that it is counted from."""

    def __init__(self, followed: Followed) -> None:
        self.current = followed.current
        self._name = followed.name
        none = tf.zeros(self.current.shape, tf.bfloat16)
        self._delta = _shadow(f"delta/{followed.name}", none)
        self._mark = _shadow(f"mark/{followed.name}", mark_of(self.current.read_value()))
        self.stored = [self._delta, self._mark]
        # XLA can't fill it, and names the variable in its error.
        name = f"XLA_needs_PastVariables_in_place_of_PastDeltas/{followed.name}"
        self._stand_in = StandIn(self.current, name)
        self.full = self._stand_in.variable

    def value(self) -> Any:
        current, delta = self._known()
        return tf.stop_gradient(current - tf.cast(delta, current.dtype))

    def delta(self) -> Any:
        return tf.cast(self._known()[1], self.current.dtype)

    def sync(self) -> None:
        self._delta.assign(tf.zeros_like(self._delta))
        self._mark.assign(mark_of(self.current.read_value()))

    def begin(self) -> Any:
        self._mark.assign(tf.constant(_UNKNOWN, tf.int64))
        return self.current.read_value()

    def end(self, before: Any) -> Any:
        current = self.current.read_value()
        return tf.group(
            self._delta.assign(_moved(current, before), read_value=False),
            self._mark.assign(mark_of(current), read_value=False),
        )

    def fill(self) -> Any:
        return self._stand_in.fill(self.value())

    def empty(self) -> None:
        self._stand_in.empty()

    def _known(self) -> tuple[Any, Any]:
        """The current value and the delta; NaN where the variable has changed since."""
        current = self.current.read_value()
        delta = self._delta.read_value()
        same = tf.equal(mark_of(current), self._mark.read_value())
        if not tf.executing_eagerly():
            return current, tf.where(same, delta, tf.constant(float("nan"), tf.bfloat16))
        if not same:
            raise InvalidArgument(
                f"Could not tell the past of {self._name!r}: expected it as the last step() or "
                f"sync() left it, got other values. Change variables inside of step() only, read "
                f"the past outside of it, or call sync() to begin anew."
            )
        return current, delta


class _Parts:
    """The past of each variable. TensorFlow doesn't look inside to save the current ones too."""

    def __init__(self, current: Current) -> None:
        self._entries = tuple(_Delta(one) if _halves(one) else _Whole(one) for one in current)

    def __iter__(self) -> Iterator[_Whole | _Delta]:
        return iter(self._entries)


def _halves(followed: Followed) -> bool:
    current = followed.current
    return current.dtype in (tf.float32, tf.float64) and current.shape.num_elements() > WHOLE


def _shadow(name: str, value: Any) -> Any:
    return tf.Variable(value, trainable=False, name=name)


def _moved(current: Any, before: Any) -> Any:
    """How far a variable moved, as bfloat16: zero only where it is equal."""
    delta = tf.cast(current - before, tf.bfloat16)
    least = tf.constant(_LEAST, tf.bfloat16)
    delta = tf.where(delta == 0, tf.where(current > before, least, -least), delta)
    # Also infinities that stay: their difference would be NaN.
    return tf.where(current == before, tf.zeros((), tf.bfloat16), delta)


def _in_turn(actions: Iterable[Callable[[], Any]]) -> None:
    """Runs them one after the other also in a graph: what each needs is freed before the next."""
    before: list[Any] = []
    for action in actions:
        with tf.control_dependencies(before):
            done = action()
        # Eagerly there is nothing to wait for, nor where nothing was to be done.
        before = [] if done is None else [done]


@tf.custom_gradient
def _as_moved(current: Any, delta: Any) -> Any:  # noqa: ARG001  only its gradient counts
    """The delta, whose gradient is that of the current value."""
    return tf.identity(delta), lambda upstream: (upstream, None)
