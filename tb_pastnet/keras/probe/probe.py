"""Evaluates a network and its past on a probe batch."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import keras
import numpy as np
import numpy.typing as npt
import tensorflow as tf

from tb_pastnet.core.narrow import narrow
from tb_pastnet.core.probe_inputs import named_leaves, refused, sample_count
from tb_pastnet.errors import InvalidArgument
from tb_pastnet.format.function_change import Input, Place
from tb_pastnet.keras.graphs.nodes import READS, Nest
from tb_pastnet.keras.graphs.trace import Scratch, TemporaryVariable, Trace
from tb_pastnet.keras.model.weights import TFWeight
from tb_pastnet.keras.probe.layer_outputs import OutputTracer
from tb_pastnet.keras.probe.measures import Pair, changes
from tb_pastnet.keras.strategies import primary
from tb_pastnet.record.failures import reason_of
from tb_pastnet.record.weight import Network

_HARMLESS = READS | {"LookupTableFindV2", "LookupTableSizeV2", "LookupTableExportV2"}


class ProbeBatch(NamedTuple):
    """A batch to evaluate a network on: copies of its arguments, what they are, and samples."""

    arguments: tuple[Any, ...]
    inputs: tuple[Input, ...]
    samples: int


class Probe:
    """Measures how far the outputs of a network are from those with past values.

    The network is traced once. Both evaluations are that trace, called as in inference, with
    other variables in the place of what is past and of what the network writes: it never changes.
    What isn't recorded has no past: it is as it is now.
    """

    def __init__(
        self,
        model: keras.layers.Layer | tf.Module | Callable[..., Any],
        network: Network[TFWeight],
        batch: Nest,
    ) -> None:
        if isinstance(model, Mapping) or not callable(model):
            raise InvalidArgument(
                f"Could not probe a {type(model).__name__}: expected a model that can be called, "
                f"got one without __call__. Pass the model itself, or leave out probe=."
            )
        fixed = probe_batch(batch)
        owners = ((weight.text.layer, weight.found.owner) for weight in network.weights)
        tracer = OutputTracer(model, {path: owner for path, owner in owners if owner is not None})
        self.inputs = fixed.inputs
        self._samples = fixed.samples
        self._scratch = Scratch(kept=False)
        self._measure = tf.function(self._measured, autograph=False)
        try:
            elements = self._try_out(network, tracer, fixed)
        except InvalidArgument:
            raise
        except Exception as error:
            got = ", ".join(f"{each.dtype} {each.shape}" for each in fixed.inputs)
            raise InvalidArgument(
                f"Could not probe {tracer.name}: expected a batch that it takes, got {got}, which "
                f"raised {reason_of(error)}. Pass a batch as for predict."
            ) from error
        self.places = tuple(
            Place(place.kind, place.name, int(number))
            for place, number in zip(self._traced, elements, strict=True)
        )

    def values(self, past: Sequence[tf.Tensor]) -> npt.NDArray[np.float32]:
        """Compares with these values of the recorded weights: `MEASURES`, float32 (4, places)."""
        tensors = [tf.convert_to_tensor(value) for value in past]
        return narrow(self._measure(tensors)[0].numpy().T)

    def _try_out(
        self, network: Network[TFWeight], tracer: OutputTracer, batch: ProbeBatch
    ) -> list[int]:
        """Traces the network and compares it once; how many numbers a sample has at each place."""
        trace, inputs = tracer.trace(batch.arguments)
        self._trace, self._inputs, self._traced = trace, list(inputs), tracer.places
        variables = [weight.variable for weight in network.weights]
        self._stand_ins = [TemporaryVariable(_sources(each)[0]) for each in variables]
        self._past = {
            id(source.handle): stand_in.variable.handle
            for variable, stand_in in zip(variables, self._stand_ins, strict=True)
            for source in _sources(variable)
        }
        for variable in _written(trace, tracer.name):
            self._scratch.add(variable)
        if not self._traced:
            raise InvalidArgument(
                f"Could not probe {tracer.name}: expected outputs of numbers, got none. Leave out "
                f"probe=."
            )
        current = [tf.convert_to_tensor(variable) for variable in variables]
        elements: list[int] = self._measure(current)[1].numpy().tolist()
        return elements

    def _measured(self, past: Sequence[tf.Tensor]) -> tuple[tf.Tensor, tf.Tensor]:
        """The measures, float64 (places, 4), and how many numbers a sample has at each place."""
        for stand_in, value in zip(self._stand_ins, past, strict=True):
            stand_in.fill(value)
        past_outputs = self._called(self._past)
        outputs = self._called({})
        sides = zip(outputs, past_outputs, self._traced, strict=True)
        values = changes([Pair(own, past, place.classes) for own, past, place in sides])
        elements = tf.stack([self._elements(tensors) for tensors in outputs])
        for stand_in in self._stand_ins:
            stand_in.empty()
        self._scratch.empty()
        return values, elements

    def _called(self, past: Mapping[int, tf.Tensor]) -> list[list[tf.Tensor]]:
        state = {**self._scratch.filled(self._trace), **past}
        outputs: list[list[tf.Tensor]] = self._trace.call(self._inputs, state)
        return outputs

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


def probe_batch(batch: Nest) -> ProbeBatch:
    """Checks a probe batch; what is neither an array nor a tensor goes to the network as it is."""
    arguments = batch if isinstance(batch, tuple) else (batch,)
    fixed = tf.nest.map_structure(_fixed, arguments)
    leaves = named_leaves(fixed[0] if len(fixed) == 1 else fixed)
    tensors = [(name, leaf) for name, leaf in leaves if isinstance(leaf, tf.Tensor)]
    shapes = [(name, tuple(tensor.shape)) for name, tensor in tensors]
    samples = sample_count(shapes, type(batch).__name__)
    inputs = tuple(
        Input(name, tuple(tensor.shape), tensor.dtype.name, _digest(tensor))
        for name, tensor in tensors
    )
    return ProbeBatch(fixed, inputs, samples)


def _fixed(leaf: object) -> object:
    """A tensor that nobody else writes to; TensorFlow may share the memory of an array."""
    if isinstance(leaf, np.ndarray | np.generic):
        if leaf.dtype == object:
            raise refused("arrays of numbers or strings", "one of objects")
        return tf.convert_to_tensor(np.array(leaf))
    return tf.convert_to_tensor(leaf) if isinstance(leaf, tf.Variable) else leaf


def _digest(tensor: tf.Tensor) -> str:
    """Another one for another batch of the same shape."""
    # The array of a tensor of strings holds pointers.
    strings = tensor.dtype == tf.string
    data = tf.io.serialize_tensor(tensor).numpy() if strings else tensor.numpy().tobytes()
    return hashlib.blake2b(data, digest_size=8).hexdigest()
