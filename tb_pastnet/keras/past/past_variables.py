"""Shadow variables: past values of chosen variables, synced by hand, hard or soft."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, TypeAlias

import keras
import tensorflow as tf

from tb_pastnet.core.arguments import answered
from tb_pastnet.core.checks import is_number
from tb_pastnet.errors import InvalidArgument
from tb_pastnet.keras.model.tf_variable import tf_variable
from tb_pastnet.keras.strategies import primary
from tb_pastnet.keras.versions import need_tensorflow

Variables: TypeAlias = "Sequence[keras.Variable | tf.Variable] | Mapping[str, Any]"
"""In a fixed order, or by name."""


def moved(current: tf.Tensor, past: tf.Tensor, tau: float | tf.Tensor) -> tf.Tensor:
    """The past value after a soft sync: tau * current + (1 - tau) * past, in their dtype."""
    # A cast would round a number to float32 first.
    number = is_number(tau)
    share = tf.constant(float(tau), current.dtype) if number else tf.cast(tau, current.dtype)
    return share * current + (1 - share) * past


def check_tau(tau: Any) -> None:
    """Raises InvalidArgument for a number outside of 0 to 1, and for what is no scalar."""
    if is_number(tau):
        fits = 0 <= tau <= 1
    else:
        fits = tf.is_tensor(tau) and tf.TensorShape(tau.shape).is_compatible_with(())
    if not fits:
        raise InvalidArgument(
            f"Could not sync past variables: expected tau from 0 to 1, or a scalar tensor, got "
            f"{tau!r:.80}. Use 1 for a copy."
        )


def difference(current: tf.Tensor, past: tf.Tensor, name: str | None = None) -> tf.Tensor:
    """Current minus past; for bools, whether they differ."""
    subtract = tf.math.logical_xor if current.dtype == tf.bool else tf.subtract
    return subtract(current, past, name=name)


class Shadow:
    """The past of a variable as a copy: in `full`, between `fill` and `empty`."""

    def __init__(self, current: tf.Variable, name: str, given: Any) -> None:
        self.current = current
        self._given = given
        self.full = tf.Variable(current.read_value(), trainable=False, name=f"past/{name}")
        self.stored = [self.full]

    def __getstate__(self) -> dict[str, Any]:
        if isinstance(self._given, keras.Variable):
            # A copied model makes its own variables, which a copy would miss.
            raise InvalidArgument(
                f"Could not copy or pickle past variables: expected those of tf.Variables, got the "
                f"past of {self._given.path!r}, a Keras variable. Make PastVariables of the copied "
                f"model, and assign the past values."
            )
        return vars(self)

    def value(self) -> tf.Tensor:
        """The past value."""
        return self.full.read_value()

    def delta(self) -> tf.Tensor:
        """Current minus past."""
        return difference(tf.convert_to_tensor(self.current), self.full.read_value())

    def sync(self, tau: float | tf.Tensor = 1.0, *, statistics: bool = False) -> None:
        """Moves the past value towards the current one."""
        value = tf.convert_to_tensor(self.current)
        # Keras's statistics are already averages, which a soft sync would slow.
        soft = statistics or getattr(self._given, "trainable", True)
        if soft and not (is_number(tau) and tau == 1) and value.dtype.is_floating:
            value = moved(value, self.full.read_value(), tau)
        self.full.assign(value)

    def begin(self) -> tf.Tensor | None:
        """Before an update; returns what `end` needs."""
        self.sync()
        return None

    def end(self, previous: tf.Tensor | None) -> tf.Operation | None:
        """After an update; returns the operation to wait for. The copy was taken in `begin`."""
        return None

    def fill(self) -> tf.Operation | None:
        """Fills `full` with the past value; returns the operation to wait for. It always has it."""
        return None

    def empty(self) -> None:
        """Frees the memory of `fill`: nothing."""


class _Untracked:
    """Shadows in which TensorFlow doesn't look for variables to save, such as the current ones."""

    def __init__(self, shadows: Iterable[Shadow]) -> None:
        self._shadows = tuple(shadows)

    def __iter__(self) -> Iterator[Shadow]:
        return iter(self._shadows)


class Shadows(tf.Module):
    """The past of several variables, one part each."""

    def __init__(self, variables: Variables, part: Callable[..., Shadow]) -> None:
        if not isinstance(variables, Iterable):
            raise InvalidArgument(
                f"Could not make past variables of {variables!r:.60}: expected variables= a list "
                f"or a mapping from names, got {type(variables).__name__}. Pass model.variables."
            )
        named = variables if isinstance(variables, Mapping) else dict(enumerate(variables))
        if not named:
            raise InvalidArgument(
                "Could not make past variables: expected at least one variable, got none. Build "
                "the model before you pass its variables."
            )
        super().__init__()
        with tf.init_scope():
            self._parts = _Untracked(
                part(
                    _current(name, variable),
                    name if isinstance(name, str) else _own_name(variable),
                    variable,
                )
                for name, variable in named.items()
            )

    @property
    def nbytes(self) -> int:
        """Bytes that the past takes between two calls."""
        stored = [variable for part in self._parts for variable in part.stored]
        return sum(each.shape.num_elements() * each.dtype.size for each in stored)

    @property
    def handles(self) -> frozenset[int]:
        """By `id`, the handles of the current variables."""
        return frozenset(id(part.current.handle) for part in self._parts)

    def values(self) -> list[Any]:
        """The past values, one tensor per variable.

        Raises:
            InvalidArgument: eagerly, for PastDeltas: a variable has changed outside of `step`.
        """
        return [part.value() for part in self._parts]

    def delta(self) -> list[Any]:
        """Current minus past, one tensor per variable, in the variable's own dtype and shape.

        Its gradient is that of the current variable. For a bool variable it is True where the two
        differ.

        Raises:
            InvalidArgument: as for `values`.
        """
        return [part.delta() for part in self._parts]

    @contextmanager
    def step(self) -> Iterator[None]:
        """A context for every change of the variables: the past values are those from before it.

        With Keras that is the update, and the forward pass with `training=True`. Read the past of
        PastDeltas before or after the block.

        Example:
            >>> from tb_pastnet import PastVariables
            >>> weight = tf.Variable(1.0)
            >>> past = PastVariables([weight])
            >>> with past.step():
            ...     _ = weight.assign_add(2.0)
            >>> past.delta()[0].numpy().item()
            2.0
        """
        previous = [part.begin() for part in self._parts]
        yield
        parts = zip(self._parts, previous, strict=True)
        _in_turn(partial(part.end, value) for part, value in parts)

    @contextmanager
    def standing_in(self) -> Iterator[dict[int, Any]]:
        """Handles of variables with the past values, by `id` of each current handle."""
        try:
            _in_turn(part.fill for part in self._parts)
            yield {id(part.current.handle): part.full.handle for part in self._parts}
        finally:
            for part in self._parts:
                part.empty()


@answered
class PastVariables(Shadows):
    """Past copies of variables, e.g. for a target network or to compare with the previous step.

    The copies are separate variables; they never share storage with the current ones. They aren't
    trainable and belong to no model. All methods work eagerly and inside a tf.function. A
    `tf.train.Checkpoint(past=shadow)` saves and restores them, without the current ones.

    Args:
        variables: keras.Variables or tf.Variables, in an order that `past` and `delta` keep; or a
            mapping of names to them.

    Attributes:
        past: the shadow variables, tf.Variables of the same shapes and dtypes, named
            `past/<name>`.

    Raises:
        InvalidArgument: there are none, or one isn't a variable.

    Example:
        >>> weight = tf.Variable([1.0, 2.0], name="weight")
        >>> shadow = PastVariables([weight])
        >>> _ = weight.assign_add([0.5, 0.0])
        >>> [delta.numpy().tolist() for delta in shadow.delta()]
        [[0.5, 0.0]]
        >>> shadow.sync()
        >>> shadow.past[0].numpy().tolist()
        [1.5, 2.0]
    """

    def __init__(self, variables: Variables) -> None:
        super().__init__(variables, Shadow)
        self.past = [part.full for part in self._parts]

    def sync(self, tau: float | Any = 1.0, *, statistics: bool = False) -> None:
        """Moves the past values towards the current ones: past = tau * current + (1 - tau) * past.

        Args:
            tau: 1 copies; smaller values follow softly (Keras's `ema_momentum` is 1 - tau).
                A tensor works as well. Non-floating variables are always copied.
            statistics: whether variables that aren't trainable, such as a BatchNormalization's
                statistics, follow softly, too. Otherwise they are copied: they are already
                averages.

        Raises:
            InvalidArgument: a number outside of 0 to 1, or no scalar.
        """
        check_tau(tau)
        for part in self._parts:
            part.sync(tau, statistics=statistics)


def _in_turn(actions: Iterable[Callable[[], Any]]) -> None:
    """Runs them one by one, even in a graph: each frees its memory before the next."""
    done: list[Any] = []
    for action in actions:
        with tf.control_dependencies(done):
            result = action()
        # Eagerly there is nothing to wait for, nor if nothing was done.
        done = [] if result is None else [result]


def _current(name: object, variable: object) -> tf.Variable:
    if isinstance(variable, keras.Variable):
        need_tensorflow("keep the past of a Keras variable")
    current = tf_variable(variable)
    if current is None:
        raise InvalidArgument(
            f"Could not make a past variable of {name!r}: expected a keras.Variable or a "
            f"tf.Variable, got {type(variable).__name__}. Pass variables, not values."
        )
    return primary(current)


def _own_name(variable: keras.Variable | tf.Variable) -> str:
    path = getattr(variable, "path", None) or variable.name
    return str(path).partition(":")[0]
