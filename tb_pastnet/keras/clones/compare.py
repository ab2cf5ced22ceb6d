"""Traces a network of Keras and its copy, also what they add to the loss."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import keras
import tensorflow as tf

from tb_pastnet.keras.clones.proof import Pair, traced, variables_of
from tb_pastnet.keras.clones.symbolic import Part
from tb_pastnet.keras.graphs.callable_network import Arguments
from tb_pastnet.keras.graphs.losses import own_losses

_MODES = (None, True)
"""The values of `training` that a network is called with."""


class Between(keras.layers.Layer):
    """A part of a network, called as a model of it would be. Making one would change its layers.

    Args:
        part: of the network.
    """

    def __init__(self, part: Part) -> None:
        super().__init__(name="network", autocast=False, dtype="float32")
        self._part = (part,)
        self.built = True

    def call(self, inputs: Any, training: Any = None) -> Any:
        """Computes the outputs of the part."""

        def call(operation: Any, args: Any, kwargs: Any) -> Any:
            if training is not None and _takes_training(operation):
                kwargs = {**kwargs, "training": training}
            return operation(*args, **kwargs)

        return self._part[0].run(inputs, call)


def used_variables(
    networks: Pair, layers: Sequence[Pair], arguments: Arguments, name: str
) -> list[Pair]:
    """The tf.Variables that a network uses, each with that in its place in a copy.

    Args:
        networks: the original and the copy.
        layers: of them, whose losses count as results.
        arguments: what they are called with.
        name: of the network in errors.

    Raises:
        InvalidArgument: they don't compute the same, or the copy uses state of the original.
    """
    args, kwargs = arguments
    found = []
    for training in _MODES:
        traces = [
            traced(
                _results(networks[at], [pair[at] for pair in layers], training), args, kwargs, name
            )
            for at in (0, 1)
        ]
        found += variables_of(traces[0], traces[1], name)
    return found


def _results(network: Any, layers: Sequence[Any], training: bool | None) -> Callable[..., Any]:
    def called(*args: Any, **kwargs: Any) -> Any:
        with own_losses([network, *layers]):
            outputs = network(*args, training=training, **kwargs)
            graph = tf.compat.v1.get_default_graph()
            losses = [loss for layer in layers for loss in layer.losses]
            # One of a loop's inside can't be had.
            return outputs, [loss for loss in losses if getattr(loss, "graph", graph) is graph]

    return called


def _takes_training(operation: Any) -> bool:
    return isinstance(operation, keras.layers.Layer) and (
        "training" in inspect.signature(operation.call).parameters
    )
