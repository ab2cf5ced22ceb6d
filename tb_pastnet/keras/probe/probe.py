"""Evaluates a network and its past on a probe batch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from tb_pastnet.core.narrow import narrow
from tb_pastnet.errors import InvalidArgument
from tb_pastnet.format.function_change import Input, Place
from tb_pastnet.keras.graphs.nodes import READS
from tb_pastnet.keras.graphs.reason import class_and_reason
from tb_pastnet.keras.graphs.temporary import Scratch, TemporaryVariable
from tb_pastnet.keras.graphs.trace import STATE, Capture, Trace
from tb_pastnet.keras.layers.weight import MaskedWeight
from tb_pastnet.keras.model.variables import Network
from tb_pastnet.keras.past.replicas import primary
from tb_pastnet.keras.probe.measures import Pair, changes
from tb_pastnet.keras.probe.outputs import Outputs
from tb_pastnet.keras.probe.probed import Probed, probed

_HARMLESS = READS | {"LookupTableFindV2", "LookupTableSizeV2", "LookupTableExportV2"}


class Probe:
    """Says how far the outputs of a network are from those with past values.

    The network is traced once. Both evaluations are that trace, called as in inference, with
    other variables in the place of what is past and of what the network writes: it never changes.

    Args:
        model: a built Keras model or layer, or a tf.Module that can be called.
        network: what is recorded of it; only that has a past, all else is as it is now.
        batch: as of `probed`.

    Attributes:
        inputs: the probe batch.
        places: what is compared.

    Raises:
        InvalidArgument: the model can't be called, or not with this batch, it returns no numbers,
            or it holds state that a call would change for the training.

    Example:
        >>> import keras
        >>> from tb_pastnet.keras.model.variables import network
        >>> model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1, use_bias=False)])
        >>> model.set_weights([np.array([[3.0]])])
        >>> probe = Probe(model, network(model), np.ones((5, 1), np.float32))
        >>> [(place.kind, place.name) for place in probe.places]
        [('layer', 'dense'), ('output', 'dense')]
        >>> probe.values([tf.constant([[2.0]])])[:2].tolist()
        [[0.5, 0.5], [1.0, 1.0]]
    """

    def __init__(self, model: Any, network: Network, batch: Any) -> None:
        if isinstance(model, Mapping) or not callable(model):
            raise InvalidArgument(
                f"Could not probe a {type(model).__name__}: expected a model that can be called, "
                f"got one without __call__. Pass the model itself, or leave out probe=."
            )
        fixed = probed(batch)
        layers = {
            record.text.layer: record.found.owner
            for record in network.variables
            if record.found.owner is not None
        }
        outputs = Outputs(model, layers)
        self.inputs: tuple[Input, ...] = fixed.inputs
        try:
            trace, tensors = outputs.trace(fixed.arguments)
            self._run = _Run(trace, tensors, _Past(network), outputs, fixed.samples)
            elements = self._run.try_out()
        except InvalidArgument:
            raise
        except Exception as error:
            raise _unusable(outputs.name, fixed, error) from error
        self.places = tuple(
            Place(told.kind, told.name, int(number))
            for told, number in zip(outputs.places, elements, strict=True)
        )

    def values(self, past: Sequence[Any]) -> npt.NDArray[np.float32]:
        """Compares the current network with a past one.

        Args:
            past: the past values of the recorded variables, as tensors.

        Returns:
            float32 (4, places), see `core.function_change.MEASURES`.
        """
        return narrow(self._run(past).T)


class _Past:
    """The recorded variables, and what stands in for them."""

    def __init__(self, network: Network) -> None:
        self.variables = [record.found.variable for record in network.variables]
        self.stand_ins = [TemporaryVariable(_sources(variable)[0]) for variable in self.variables]
        self.state = {
            id(source.handle): stand_in.variable.handle
            for variable, stand_in in zip(self.variables, self.stand_ins, strict=True)
            for source in _sources(variable)
        }


class _Run:
    """Both evaluations and the measures, compiled into one function."""

    def __init__(
        self, trace: Trace, inputs: Sequence[Any], past: _Past, outputs: Outputs, samples: int
    ) -> None:
        self._trace = trace
        self._inputs = list(inputs)
        self._past = past
        self._places = outputs.places
        self._samples = samples
        self._scratch = Scratch(kept=False)
        for variable in _written(trace, outputs.name):
            self._scratch.add(variable)
        if not self._places:
            raise InvalidArgument(
                f"Could not probe {outputs.name}: expected outputs of numbers, got none. Leave out "
                f"probe=."
            )
        self._measure = tf.function(self._measured, autograph=False)

    def __call__(self, past: Sequence[Any]) -> npt.NDArray[np.float64]:
        values: npt.NDArray[np.float64] = self._measure(list(past))[0].numpy()
        return values

    def try_out(self) -> list[int]:
        """Runs it once, and says how many numbers a sample has at each place."""
        now = [tf.convert_to_tensor(variable) for variable in self._past.variables]
        elements: list[int] = self._measure(now)[1].numpy().tolist()
        return elements

    def _measured(self, past: Sequence[Any]) -> tuple[Any, Any]:
        for stand_in, value in zip(self._past.stand_ins, past, strict=True):
            stand_in.fill(value)
        past_outputs = self._called(self._past.state)
        outputs = self._called({})
        sides = zip(outputs, past_outputs, self._places, strict=True)
        values = changes([Pair(now, past, place.classes) for now, past, place in sides])
        elements = tf.stack([self._elements(tensors) for tensors in outputs])
        for stand_in in self._past.stand_ins:
            stand_in.empty()
        self._scratch.empty()
        return values, elements

    def _called(self, past: Mapping[int, Any]) -> Any:
        return self._trace.call(self._inputs, {**self._scratch.filled(self._trace), **past})

    def _elements(self, tensors: Sequence[Any]) -> Any:
        counts = []
        for tensor in tensors:
            fixed = tensor.shape.num_elements()
            whole = tf.size(tensor, tf.int64) if fixed is None else fixed
            # What doesn't depend on the samples, such as an embedding of places, is there once.
            by_sample = tensor.shape.rank and tensor.shape[0] in (None, self._samples)
            counts.append(whole // self._samples if by_sample else whole)
        return tf.cast(sum(counts), tf.int64)


def _sources(variable: Any) -> tuple[Any, ...]:
    # With its past value in all of them, the masks of now don't matter.
    sources = variable.sources if isinstance(variable, MaskedWeight) else (variable,)
    return tuple(primary(source) for source in sources)


def _written(trace: Trace, name: str) -> list[Any]:
    """The variables that calling the trace may change."""
    state: list[Capture] = [one for one in trace.captures if one.tensor.dtype in STATE]
    for capture in state:
        if capture.variable is None and not set(capture.uses) <= _HARMLESS:
            raise InvalidArgument(
                f"Could not probe {name}: expected variables as its state, got {capture.name!r}, "
                f"which a call might change for the training. Leave out probe=."
            )
    return [one.variable for one in state if one.variable is not None and one.written]


def _unusable(name: str, fixed: Probed, error: Exception) -> InvalidArgument:
    got = ", ".join(f"{one.dtype} {one.shape}" for one in fixed.inputs)
    return InvalidArgument(
        f"Could not probe {name}: expected a batch that it takes, got {got}, which raised "
        f"{class_and_reason(error)}. Pass a batch as for predict."
    )
