"""Weights that variables of TensorFlow hold."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tb_pastnet.keras.model.modules import find_variables
from tb_pastnet.keras.model.weights import AxisOverrides, FoundWeight, network_of, shown
from tb_pastnet.keras.strategies import differs
from tb_pastnet.keras.types import Model, Variable
from tb_pastnet.record.weight import Array, Network


class TFWeight(FoundWeight):
    """A weight that a variable of TensorFlow holds, or a `GraphWeight`."""

    @staticmethod
    def refusal(variable: Variable) -> str | None:
        """See `FoundWeight`."""
        reason = FoundWeight.refusal(variable)
        if reason is None and differs(variable):
            return "it has another value in each replica"
        return reason

    def read(self) -> Array:
        """See `Weight`. For a layer that owns its masks, the effective value."""
        value: Array = self.variable.numpy()
        return value


def network(
    model: Model,
    variables: Iterable[Any] | None = None,
    channel_axes: AxisOverrides | None = None,
) -> Network[TFWeight]:
    """Lists what is recorded of a model."""
    return network_of(TFWeight, find_variables(model), shown(model), variables, channel_axes)
