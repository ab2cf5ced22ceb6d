"""How often a variable was set by hand, and not by an update."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import tensorflow as tf

_METHODS = ("assign", "_restore_from_tensors")
_NOT_BY_HAND = ("keras.src.optimizers", "keras.src.backend.tensorflow.optimizer", "tb_pastnet.")


def _nothing() -> None:
    """Tells nobody."""


class _Counted:
    """Stands for a method of one variable. An object, so that a deep copy binds to its own."""

    def __init__(self, method: Any) -> None:
        self._method = method
        self.count = 0
        self.tell: Callable[[], None] = _nothing

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        # Whatever fails here, it isn't the user's assignment.
        with suppress(Exception):
            caller = str(sys._getframe(1).f_globals.get("__name__"))
            if tf.executing_eagerly() and not caller.startswith(_NOT_BY_HAND):
                self.count += 1
                self.tell()
        return self._method(*args, **kwargs)


def assignments(variable: tf.Variable) -> int:
    """How often `assign`, `set_weights` or loading set it eagerly since this was asked first.

    Updates by an optimizer of Keras don't count, nor does a variable that takes no attributes.
    """
    return sum(method.count for method in _counted(variable))


def tell_assignments(variable: tf.Variable, tell: Callable[[], None]) -> None:
    """Calls a function before each of these from now on."""
    for method in _counted(variable):
        method.tell = tell


def _counted(variable: tf.Variable) -> Iterator[_Counted]:
    for name in _METHODS:
        method = getattr(variable, name, None)
        if method is not None and not isinstance(method, _Counted):
            method = _Counted(method)
            with suppress(AttributeError):
                setattr(variable, name, method)
        if method is not None:
            yield method
