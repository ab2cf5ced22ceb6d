"""How often a variable was set by hand, and not by an update."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from types import FrameType
from typing import Any

import tensorflow as tf

_METHODS = (
    *("assign", "assign_add", "assign_sub", "scatter_update", "scatter_nd_update"),
    *("_strided_slice_assign", "_restore_from_tensors"),
)
_NOT_BY_HAND = ("keras.src.optimizers", "keras.src.backend.tensorflow.optimizer", "tb_pastnet.")
_ON_THE_WAY = ("keras.src.backend.common.", "keras.src.backend.tensorflow.core", __name__)


class _Counted:
    """Wraps a method of one variable. An object, so a deep copy binds to its own variable."""

    def __init__(self, method: Any) -> None:
        self._method = method
        self.count = self.users = 0
        self.tell: Callable[[], None] | None = None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        assigned = self._method(*args, **kwargs)
        # A failure here must not break the user's assignment.
        with suppress(Exception):
            if tf.executing_eagerly() and _by_hand(sys._getframe(1)):
                self.count += 1
                if self.tell is not None:
                    self.tell()
        return assigned

    def remove_from(self, variable: tf.Variable) -> None:
        """Makes the method of its class visible again."""
        for name in [name for name, value in vars(variable).items() if value is self]:
            delattr(variable, name)


def _by_hand(caller: FrameType | None) -> bool:
    """Whether a user's or layer's code called, possibly through a keras.Variable."""
    while caller is not None:
        module = str(caller.f_globals.get("__name__"))
        if not module.startswith(_ON_THE_WAY):
            return not module.startswith(_NOT_BY_HAND)
        caller = caller.f_back
    return True


class Assignments:
    """How often variables were set by hand, as one audit asks. `close` removes what counts.

    Until then the methods of a variable are wrapped, in its `__dict__`.
    """

    def __init__(self) -> None:
        self._asked: dict[int, tuple[tf.Variable, list[_Counted]]] = {}

    def of(self, variable: tf.Variable) -> int:
        """How often assignments, `set_weights` or loading set it eagerly since the first call.

        Updates by a Keras optimizer don't count, nor does a variable that takes no attributes.
        """
        if id(variable) not in self._asked:
            methods = list(_counted(variable))
            for method in methods:
                method.users += 1
            self._asked[id(variable)] = variable, methods
        return sum(method.count for method in self._asked[id(variable)][1])

    def close(self) -> None:
        """Leaves each variable as it was, unless others count, too."""
        for variable, methods in self._asked.values():
            for method in methods:
                method.users -= 1
                if not method.users and method.tell is None:
                    method.remove_from(variable)
        self._asked.clear()


def tell_assignments(variable: tf.Variable, tell: Callable[[], None]) -> None:
    """Calls a function after each later assignment."""
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
