"""Shadow variables: past values of chosen variables, synced by hand."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import tensorflow as tf

from tb_pastnet.errors import InvalidArgument
from tb_pastnet.keras.model.walk import tf_variable
from tb_pastnet.keras.past.replicas import primary


class PastVariables(tf.Module):
    """Past copies of variables, as for a target network or to compare a step with the one before.

    The copies are variables of their own; they never share storage with the current ones. They are
    not trainable and belong to no model. All methods work eagerly and inside a tf.function. A
    `tf.train.Checkpoint(past=shadow)` saves and restores them, without the current ones.

    Args:
        variables: keras.Variables or tf.Variables, in an order that `past` and `delta` keep; or a
            mapping of names to them.

    Attributes:
        past: the shadow variables, tf.Variables of the same shapes and dtypes, named
            `past/<name>`.

    Raises:
        InvalidArgument: there are none, or one is something else.

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

    def __init__(self, variables: Sequence[Any] | Mapping[str, Any]) -> None:
        super().__init__()
        self._current = Current(variables)
        with tf.init_scope():
            self.past = [
                tf.Variable(one.current.read_value(), trainable=False, name=f"past/{one.name}")
                for one in self._current
            ]

    @property
    def nbytes(self) -> int:
        """Bytes that the copies take."""
        return sum(one.nbytes for one in self._current)

    @property
    def handles(self) -> frozenset[int]:
        """By `id`, the handles of the current variables."""
        return frozenset(id(one.current.handle) for one in self._current)

    def values(self) -> list[Any]:
        """The past values, one tensor a variable."""
        return [past.read_value() for past in self.past]

    def delta(self) -> list[Any]:
        """Current minus past, one tensor a variable, in the variable's own dtype and shape.

        Of a bool variable it is True where the two differ.
        """
        return [
            difference(one.current, past)
            for one, past in zip(self._current, self.past, strict=True)
        ]

    def sync(self, tau: float | Any = 1.0) -> None:
        """Moves the past values towards the current ones: past = tau * current + (1 - tau) * past.

        Args:
            tau: 1 copies; smaller values follow softly (Keras's `ema_momentum` is 1 - tau).
                A tensor does as well. Variables that aren't trainable, such as a
                BatchNormalization's statistics, and those that aren't floating are always copied.

        Raises:
            InvalidArgument: a number outside of 0 to 1.
        """
        hard = isinstance(tau, int | float) and tau == 1
        if isinstance(tau, int | float) and not 0 <= tau <= 1:
            raise InvalidArgument(
                f"Could not sync past variables: expected tau from 0 to 1, got {tau}. Use 1 for a "
                f"copy."
            )
        for one, past in zip(self._current, self.past, strict=True):
            value = tf.convert_to_tensor(one.current)
            if not (hard or one.hard) and value.dtype.is_floating:
                # A cast would round a number to float32 first.
                number = isinstance(tau, int | float)
                share = tf.constant(tau, value.dtype) if number else tf.cast(tau, value.dtype)
                value = share * value + (1 - share) * past.read_value()
            past.assign(value)

    @contextmanager
    def step(self) -> Iterator[None]:
        """Around an update: the past values are those from before it.

        Example:
            >>> weight = tf.Variable(1.0)
            >>> shadow = PastVariables([weight])
            >>> with shadow.step():
            ...     _ = weight.assign_add(2.0)
            >>> shadow.delta()[0].numpy().item()
            2.0
        """
        self.sync()
        yield

    @contextmanager
    def standing_in(self) -> Iterator[dict[int, Any]]:
        """By `id` of each current handle, that of a variable which holds the past value."""
        yield {
            id(one.current.handle): past.handle
            for one, past in zip(self._current, self.past, strict=True)
        }


class Followed(NamedTuple):
    """A variable whose past is kept.

    Attributes:
        current: the tf.Variable.
        name: of its past.
        hard: whether it is always copied: Keras's statistics move by averages of their own, which
            a soft sync would slow.
    """

    current: Any
    name: str
    hard: bool

    @property
    def nbytes(self) -> int:
        """Bytes of one copy."""
        return int(self.current.shape.num_elements()) * int(self.current.dtype.size)


class Current:
    """The variables whose past is kept. TensorFlow doesn't look inside to save them as well.

    Args:
        variables: keras.Variables or tf.Variables, or a mapping of names to them.

    Raises:
        InvalidArgument: there are none, or one is something else.
    """

    def __init__(self, variables: Sequence[Any] | Mapping[str, Any]) -> None:
        named = variables if isinstance(variables, Mapping) else dict(enumerate(variables))
        if not named:
            raise InvalidArgument(
                "Could not make past variables: expected at least one variable, got none. Build "
                "the model before you pass its variables."
            )
        self._entries = tuple(
            Followed(
                _checked(name, variable),
                name if isinstance(name, str) else _own_name(variable),
                not getattr(variable, "trainable", True),
            )
            for name, variable in named.items()
        )

    def __iter__(self) -> Iterator[Followed]:
        return iter(self._entries)


def difference(current: Any, past: Any) -> Any:
    """Current minus past, of two variables; of bools whether they differ."""
    values = tf.convert_to_tensor(current), past.read_value()
    return tf.math.logical_xor(*values) if values[0].dtype == tf.bool else tf.subtract(*values)


def _checked(name: Any, variable: Any) -> Any:
    current = tf_variable(variable)
    if current is None:
        raise InvalidArgument(
            f"Could not make a past variable of {name!r}: expected a keras.Variable or a "
            f"tf.Variable, got {type(variable).__name__}. Pass variables, not values."
        )
    return primary(current)


def _own_name(variable: Any) -> str:
    path = getattr(variable, "path", None) or variable.name
    return str(path).partition(":")[0]
