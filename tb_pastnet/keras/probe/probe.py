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
from tb_pastnet.keras.graphs.temporary import Scratch, TemporaryVariable
from tb_pastnet.keras.graphs.trace import Trace
from tb_pastnet.keras.model.weights import TFWeight
from tb_pastnet.keras.past.replicas import primary
from tb_pastnet.keras.probe.layer_outputs import OutputTracer
from tb_pastnet.keras.probe.measures import Pair, changes
from tb_pastnet.keras.probe.probe_batch import ProbeBatch, probe_batch
from tb_pastnet.record.failures import reason_of
from tb_pastnet.record.weight import Network

_HARMLESS = READS | {"LookupTableFindV2", "LookupTableSizeV2", "LookupTableExportV2"}


class Probe:
    """Measures how far the outputs of a network are from those with past values.

    The network is traced once. Both evaluations are that trace, called as in inference, with
    other variables in the place of what is past and of what the network writes: it never changes.
    What isn't recorded has no past: it is as it is now.

    Attributes:
        inputs: the probe batch.
        places: what is compared.

    Raises:
        InvalidArgument: the model can't be called, or not with this batch, it returns no numbers,
            or it holds state that a call would change for the training.

    Example:
        >>> import keras
        >>> from tb_pastnet.keras.model.weights import network
        >>> model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1, use_bias=False)])
        >>> model.set_weights([np.array([[3.0]])])
        >>> probe = Probe(model, network(model), np.ones((5, 1), np.float32))
        >>> [(place.kind, place.name) for place in probe.places]
        [('layer', 'dense'), ('output', 'dense')]
        >>> probe.values([tf.constant([[2.0]])])[:2].tolist()
        [[0.5, 0.5], [1.0, 1.0]]
    """

    def __init__(self, model: Any, network: Network[TFWeight], batch: Any) -> None:
        if isinstance(model, Mapping) or not callable(model):
            raise InvalidArgument(
                f"Could not probe a {type(model).__name__}: expected a model that can be called, "
                f"got one without __call__. Pass the model itself, or leave out probe=."
            )
        fixed = probe_batch(batch)
        layers = {
            record.text.layer: record.found.owner
            for record in network.weights
            if record.found.owner is not None
        }
        tracer = OutputTracer(model, layers)
        self.inputs: tuple[Input, ...] = fixed.inputs
        try:
            trace, tensors = tracer.trace(fixed.arguments)
            self._comparison = _Comparison(trace, tensors, _Past(network), tracer, fixed.samples)
            elements = self._comparison.try_out()
        except InvalidArgument:
            raise
        except Exception as error:
            raise _unusable(tracer.name, fixed, error) from error
        self.places = tuple(
            Place(place.kind, place.name, int(number))
            for place, number in zip(tracer.places, elements, strict=True)
        )

    def values(self, past: Sequence[tf.Tensor]) -> npt.NDArray[np.float32]:
        """Compares the current network with one that has these values of the recorded variables.

        Returns:
            float32 (4, places), see `format.function_change.MEASURES`.
        """
        return narrow(self._comparison.values(past).T)


class _Past:
    """The recorded variables, and what stands in for them."""

    def __init__(self, network: Network[TFWeight]) -> None:
        self.variables = [record.found.variable for record in network.weights]
        self.stand_ins = [TemporaryVariable(_sources(each)[0]) for each in self.variables]
        self.state = {
            id(source.handle): stand_in.variable.handle
            for variable, stand_in in zip(self.variables, self.stand_ins, strict=True)
            for source in _sources(variable)
        }


class _Comparison:
    """Both evaluations and the measures, compiled into one function."""

    def __init__(
        self,
        trace: Trace,
        inputs: Sequence[tf.Tensor],
        past: _Past,
        tracer: OutputTracer,
        samples: int,
    ) -> None:
        self._trace = trace
        self._inputs = list(inputs)
        self._past = past
        self._places = tracer.places
        self._samples = samples
        self._scratch = Scratch(kept=False)
        for variable in _written(trace, tracer.name):
            self._scratch.add(variable)
        if not self._places:
            raise InvalidArgument(
                f"Could not probe {tracer.name}: expected outputs of numbers, got none. Leave out "
                f"probe=."
            )
        self._measure = tf.function(self._measured, autograph=False)

    def values(self, past: Sequence[tf.Tensor]) -> npt.NDArray[np.float64]:
        """float64 (places, 4)."""
        tensors = [tf.convert_to_tensor(value) for value in past]
        values: npt.NDArray[np.float64] = self._measure(tensors)[0].numpy()
        return values

    def try_out(self) -> list[int]:
        """Runs it once; returns how many numbers a sample has at each place."""
        current = [tf.convert_to_tensor(variable) for variable in self._past.variables]
        elements: list[int] = self._measure(current)[1].numpy().tolist()
        return elements

    def _measured(self, past: Sequence[tf.Tensor]) -> tuple[tf.Tensor, tf.Tensor]:
        for stand_in, value in zip(self._past.stand_ins, past, strict=True):
            stand_in.fill(value)
        past_outputs = self._called(self._past.state)
        outputs = self._called({})
        sides = zip(outputs, past_outputs, self._places, strict=True)
        values = changes([Pair(own, past, place.classes) for own, past, place in sides])
        elements = tf.stack([self._elements(tensors) for tensors in outputs])
        for stand_in in self._past.stand_ins:
            stand_in.empty()
        self._scratch.empty()
        return values, elements

    def _called(self, past: Mapping[int, Any]) -> Any:
        return self._trace.call(self._inputs, {**self._scratch.filled(self._trace), **past})

    def _elements(self, tensors: Sequence[tf.Tensor]) -> tf.Tensor:
        counts = []
        for tensor in tensors:
            fixed = tensor.shape.num_elements()
            size = tf.size(tensor, tf.int64) if fixed is None else fixed
            # What doesn't depend on the samples, such as an embedding of places, is there once.
            by_sample = tensor.shape.rank and tensor.shape[0] in (None, self._samples)
            counts.append(size // self._samples if by_sample else size)
        return tf.cast(sum(counts), tf.int64)


def _sources(variable: object) -> tuple[tf.Variable, ...]:
    """What holds a variable: of a weight whose layer owns its masks, several."""
    # With its past value in all of them, the current masks don't matter.
    return tuple(primary(source) for source in getattr(variable, "sources", (variable,)))


def _written(trace: Trace, name: str) -> list[tf.Variable]:
    """The variables that calling the trace may change."""
    state = [capture for capture in trace.captures if capture.is_state]
    for capture in state:
        if capture.variable is None and not capture.uses <= _HARMLESS:
            raise InvalidArgument(
                f"Could not probe {name}: expected variables as its state, got {capture.name!r}, "
                f"which a call might change for the training. Leave out probe=."
            )
    return [each.variable for each in state if each.variable is not None and each.written]


def _unusable(name: str, batch: ProbeBatch, error: Exception) -> InvalidArgument:
    got = ", ".join(f"{each.dtype} {each.shape}" for each in batch.inputs)
    return InvalidArgument(
        f"Could not probe {name}: expected a batch that it takes, got {got}, which raised "
        f"{reason_of(error)}. Pass a batch as for predict."
    )
