"""Reads the variables of a Keras model on JAX or PyTorch."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np

from tb_pastnet.keras.types import Model, Variable
from tb_pastnet.record.weight import Array


class Values:
    """Finds the values of a model's variables, as arrays that are released at once.

    On JAX, `fit` takes them out of the variables for an epoch, and donates them to each step.
    `Callback.model` would put all of them back at each access, which doubles the time of a small
    step; here only requested values are read, in place.
    """

    def __init__(self, model: Model) -> None:
        self._model = model
        self._apart: dict[int, tuple[str, int]] = {}

    def note(self) -> None:
        """Before a step: notes the order in which Keras takes out the remaining variables."""
        model = self._model
        if keras.backend.backend() != "jax" or not getattr(model, "_jax_state_synced", False):
            return
        optimizer = getattr(model, "optimizer", None)
        self._apart = {
            id(variable): (kind, number)
            for kind, variables in (
                ("trainable_variables", model.trainable_variables),
                ("non_trainable_variables", model.non_trainable_variables),
                ("optimizer_variables", getattr(optimizer, "variables", ())),
            )
            for number, variable in enumerate(variables)
        }

    def read(self, variable: Variable) -> Array:
        """The current values of a keras.Variable: a view if they are in this machine's memory."""
        model = self._model
        state = getattr(model, "_jax_state", None)
        if state and not model._jax_state_synced and id(variable) in self._apart:
            kind, number = self._apart[id(variable)]
            return np.asarray(state[kind][number])
        return _array(variable.value)


def _array(value: Any) -> Array:
    if not hasattr(value, "detach"):  # an array of JAX
        return np.asarray(value)
    value = value.detach()
    if value.device.type == "cpu" and str(value.dtype) != "torch.bfloat16":
        array: Array = value.numpy()
        return array
    converted: Array = keras.ops.convert_to_numpy(value)
    return converted
