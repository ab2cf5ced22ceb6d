"""Calling a layer with other values in the place of its weights."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import keras
import tensorflow as tf

from tb_pastnet.errors import InvalidArgument


class EffectiveScope(keras.StatelessScope):
    """Lets layers read given values for some variables, and write all others."""

    def __init__(self, values: Sequence[tuple[Any, Any]], name: str) -> None:
        super().__init__(values, collect_losses=True, initialize_variables=False)
        self._own = {id(variable) for variable, _ in values}
        self._name = name

    def get_current_value(self, variable: tf.Variable) -> Any:
        """The value that is read for a variable: ours, or that of a scope around."""
        value = super().get_current_value(variable)
        if value is None and self.original_scope is not None:
            return self.original_scope.get_current_value(variable)
        return value

    def add_update(self, update: tuple[Any, Any]) -> None:
        """Writes a variable at once, as without the scope: statistics, and states of seeds.

        Raises:
            InvalidArgument: it is one of the masked weights.
        """
        variable, value = update
        if id(variable) in self._own:
            raise InvalidArgument(
                f"Could not hold the weights of {self._name!r}: expected a layer that leaves them "
                f"to the optimizer, got one that writes {variable.name!r} in call. Mask the layers "
                f"around it."
            )
        self.__exit__()
        try:
            variable.assign(value)
        finally:
            self.__enter__()

    def own_losses(self) -> list[Any]:
        """The losses that layers added in the scope, each once."""
        flat = {id(loss): loss for losses in self.losses for loss in _flat(losses)}
        # Copies: by identity the layers inside would count them a second time.
        return [tf.identity(loss) for loss in flat.values()]


def _flat(losses: Any) -> list[Any]:
    return list(losses) if isinstance(losses, list | tuple) else [losses]
