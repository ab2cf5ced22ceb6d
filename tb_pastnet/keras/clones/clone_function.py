"""Clones traced functions, of which no layers are left."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import tensorflow as tf

from tb_pastnet.errors import InvalidArgument
from tb_pastnet.keras.clones.layer_copies import Initializer, draw
from tb_pastnet.keras.clones.proof import captured_pairs, check_pairs, refuse_python
from tb_pastnet.keras.graphs.nodes import Nest
from tb_pastnet.keras.graphs.reason import reason
from tb_pastnet.keras.graphs.trace import Trace

if TYPE_CHECKING:
    from tensorflow.types.experimental import ConcreteFunction, PolymorphicFunction

    Traceable: TypeAlias = ConcreteFunction | PolymorphicFunction

_CONCRETE = tf.types.experimental.ConcreteFunction


class ClonedFunction(tf.Module):
    """A function with variables of its own, as `clone_network` returns it.

    It is called as the original, and gives what the original gives. Gradients flow through it;
    `variables` and `trainable_variables` are its own, with the names and flags of the original's.
    `tf.saved_model.save`, `tf.train.Checkpoint` and a further `clone_network` take it.

    Args:
        function: a tf.function or ConcreteFunction.
        state: its variables.

    Attributes:
        function: what is called.
        state: its tf.Variables, in the order in which the function uses them first.
    """

    def __init__(self, function: Traceable, state: Sequence[tf.Variable]) -> None:
        super().__init__()
        self.function = function
        self.state = list(state)
        # TensorFlow saves functions that it finds as attributes: so a SavedModel of it can be
        # called as well.
        self.__dict__["__call__"] = function

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """What the original returns, computed with its own variables."""
        return self.function(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<ClonedFunction with {len(self.state)} variables>"


def clone_function(
    network: object, initializer: Initializer | None, example: Nest, name: str | None
) -> ClonedFunction:
    """Clones a ConcreteFunction, a tf.function, or what calls one, see `clone_network`."""
    function = _traceable(network)
    shown = f"function {name or getattr(function, '__name__', None) or 'network'!r}"
    concretes = _concretes(function, example, shown)
    state = _state(concretes, shown)
    copy = _saved_and_loaded(function, state, shown)
    pairs = list(zip(state, copy.state, strict=True))
    for original, copied in zip(concretes, _traces_of(copy.function), strict=True):
        pairs += captured_pairs(original, copied, shown)
    check_pairs(pairs, shown)
    if initializer is not None:
        draw(copy.state, initializer, shown)
    return copy


def _traceable(network: object) -> Traceable:
    """The tf.function or ConcreteFunction in what was given."""
    for function in (network, getattr(network, "__call__", None)):  # noqa: B004 - its value
        if isinstance(function, tf.types.experimental.PolymorphicFunction | _CONCRETE):
            return function
    return tf.function(network)


def _concretes(function: Traceable, example: Nest, name: str) -> list[ConcreteFunction]:
    try:
        if example is not None and not isinstance(function, _CONCRETE):
            function.get_concrete_function(*(example if isinstance(example, tuple) else (example,)))
        concretes = _traces_of(function)
    except Exception as error:
        got = "none" if example is None else f"{example!r:.80}"
        raise InvalidArgument(
            f"Could not trace {name}: expected that it can be called with its example, got {got}: "
            f"{reason(error).rstrip('.')}. Pass example=, a batch, and keep what owns the function."
        ) from error
    if not concretes:
        raise InvalidArgument(
            f"Could not clone {name}: expected a traced function, got one that was never called. "
            f"Pass example=, a batch as it is called with."
        )
    for concrete in concretes:
        refuse_python(concrete, name)
    return concretes


def _traces_of(function: Traceable) -> list[ConcreteFunction]:
    if isinstance(function, _CONCRETE):
        return [function]
    # No public name lists the traces of a tf.function. It is what saving it takes.
    return list(function._list_all_concrete_functions_for_serialization())


def _state(concretes: Sequence[ConcreteFunction], name: str) -> list[tf.Variable]:
    """The variables of functions, each once."""
    variables: dict[int, tf.Variable] = {}
    for concrete in concretes:
        for capture in Trace(concrete).captures:
            if capture.variable is not None:
                variables.setdefault(id(capture.variable), capture.variable)
            elif capture.is_state:
                raise InvalidArgument(
                    f"Could not clone {name}: expected variables as its state, got {capture.name}, "
                    f"which can't be copied. Call it before the function, and pass what it gives."
                )
    return list(variables.values())


def _saved_and_loaded(
    function: Traceable, state: Sequence[tf.Variable], name: str
) -> ClonedFunction:
    """Through a SavedModel in memory: the public way to a graph with gradients and own state."""
    path = f"ram://pastnet-{uuid.uuid4().hex}"
    options = tf.saved_model.SaveOptions(experimental_custom_gradients=True)
    logger = tf.get_logger()
    level = logger.level
    # Without the line that saving prints for each folder.
    logger.setLevel(max(level, logging.WARNING))
    try:
        tf.saved_model.save(ClonedFunction(function, state), path, options=options)
        loaded = tf.saved_model.load(path)
    except Exception as error:
        raise InvalidArgument(
            f"Could not clone {name}: expected a function that can be saved as a SavedModel, got: "
            f"{reason(error).rstrip('.')}. Use all variables in the function itself, not in a "
            f"gradient alone."
        ) from error
    finally:
        logger.setLevel(level)
        if tf.io.gfile.exists(path):
            tf.io.gfile.rmtree(path)
    return ClonedFunction(loaded.function, loaded.state)
