"""Counts how often a variable is set by hand: by `assign`, `set_weights` or loading, eagerly.

What a compiled step does isn't counted, nor what an optimizer of Keras does eagerly.
"""

from __future__ import annotations

import sys
from contextlib import suppress
from typing import Any

import tensorflow as tf

_METHODS = ("assign", "_restore_from_tensors")
_OPTIMIZERS = ("keras.src.optimizers", "keras.src.backend.tensorflow.optimizer")


class _Counted:
    """Stands for a method of one variable. An object, so that a deep copy binds to its own."""

    def __init__(self, method: Any) -> None:
        self._method = method
        self.count = 0

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        # Whatever fails here, it isn't the user's assignment.
        with suppress(Exception):
            caller = str(sys._getframe(1).f_globals.get("__name__"))
            if tf.executing_eagerly() and not caller.startswith(_OPTIMIZERS):
                self.count += 1
        return self._method(*args, **kwargs)


def assignments(variable: tf.Variable) -> int:
    """How often it was set by hand since this was asked first, whoever asked.

    A variable that takes no attributes isn't counted.
    """
    return sum(_counted(variable, name) for name in _METHODS)


def _counted(variable: tf.Variable, name: str) -> int:
    method = getattr(variable, name, None)
    if isinstance(method, _Counted):
        return method.count
    if method is not None:
        with suppress(AttributeError):
            setattr(variable, name, _Counted(method))
    return 0
