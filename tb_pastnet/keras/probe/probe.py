"""Evaluates a network, with the outputs of its layers, and its past on a probe batch."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import keras
import numpy as np
import numpy.typing as npt
import tensorflow as tf

from tb_pastnet.core.probe_inputs import named_leaves, refused, sample_count
from tb_pastnet.errors import InvalidArgument
from tb_pastnet.format.function_change import LAYER, OUTPUT, Input, Place, check_places, narrow
from tb_pastnet.keras.graphs.callable_network import callable_network
from tb_pastnet.keras.graphs.nodes import READS, Nest
from tb_pastnet.keras.graphs.trace import Scratch, TemporaryVariable, Trace, Tracer
from tb_pastnet.keras.model.tf_weights import TFWeight
from tb_pastnet.keras.model.walk import named_children
from tb_pastnet.keras.model.weights import free_name
from tb_pastnet.keras.probe.measures import Classes, Pair, changes, classes_of, loss_of
from tb_pastnet.keras.strategies import primary
from tb_pastnet.record.failures import reason_of
from tb_pastnet.record.weight import Network

_HARMLESS = READS | {"LookupTableFindV2", "LookupTableSizeV2", "LookupTableExportV2"}


class ProbeBatch(NamedTuple):
    """A batch to evaluate a network on: copies of its arguments, their description, and samples."""

    arguments: tuple[Any, ...]
    inputs: tuple[Input, ...]
    samples: int


class Probe:
    """Measures how far a network's outputs are from those with past values.

    The network is traced once. Both evaluations call that trace in inference mode, with other
    variables for past values and for the network's writes: the network never changes. Variables
    that aren't recorded have no past: their current values are used.
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
        tracer = _OutputTracer(model, {path: owner for path, owner in owners if owner is not None})
        self.inputs = fixed.inputs
        self._samples = fixed.samples
        self._scratch = Scratch(kept=False)
        self._measure = tf.function(self._measured, autograph=False)
        try:
            elements = self._try_out(network, tracer, fixed)
        except InvalidArgument as error:
            if len(fixed.arguments) == 1:
                raise
            raise InvalidArgument(
                f"{str(error).rstrip('.')}. Each element of a tuple is an argument: pass probe=x, "
                "without labels."
            ) from error
        except Exception as error:
            got = ", ".join(f"{each.dtype} {each.shape}" for each in fixed.inputs)
            raise InvalidArgument(
                f"Could not probe {tracer.name}: expected a valid batch, got {got}, which "
                f"raised {reason_of(error)}. Pass a batch as for predict."
            ) from error
        self.places = tuple(
            Place(place.kind, place.name, int(number))
            for place, number in zip(self._traced, elements, strict=True)
        )
        check_places(self.inputs, self.places)

    def values(self, past: Sequence[tf.Tensor]) -> npt.NDArray[np.float32]:
        """Compares with these values of the recorded weights: `MEASURES`, float32 (4, places)."""
        tensors = [tf.convert_to_tensor(past[place]) for place in self._stored]
        return narrow(self._measure(tensors)[0].numpy().T)

    def _try_out(
        self, network: Network[TFWeight], tracer: _OutputTracer, batch: ProbeBatch
    ) -> list[int]:
        """Traces the network and compares once; returns the values per sample of each place."""
        trace, inputs = tracer.trace(batch.arguments)
        self._trace, self._inputs, self._traced = trace, list(inputs), tracer.places
        weights = network.weights
        # Computed weights follow from their parts.
        self._stored = [n for n, weight in enumerate(weights) if not weight.found.computed]
        variables = [weights[place].variable for place in self._stored]
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
        """The measures, float64 (places, 4), and the number of values per sample at each place."""
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
            # Outputs independent of the samples, such as an embedding of positions, occur once.
            by_sample = tensor.shape.rank and tensor.shape[0] in (None, self._samples)
            counts.append(size // self._samples if by_sample else size)
        return tf.cast(sum(counts), tf.int64)


def _sources(variable: object) -> tuple[tf.Variable, ...]:
    """The storage of a variable: several variables for a weight whose layer owns its masks."""
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
    """Checks a probe batch; other leaves than arrays and tensors go to the network as they are."""
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
    """A tensor that no one else writes to; TensorFlow may share the memory of an array."""
    if isinstance(leaf, np.ndarray | np.generic):
        if leaf.dtype == object:
            raise refused("arrays of numbers or strings", "one of objects")
        return tf.convert_to_tensor(np.array(leaf))
    return tf.convert_to_tensor(leaf) if isinstance(leaf, tf.Variable) else leaf


def _digest(tensor: tf.Tensor) -> str:
    """Different for different batches of the same shape."""
    # The array of a tensor of strings holds pointers.
    strings = tensor.dtype == tf.string
    data = tf.io.serialize_tensor(tensor).numpy() if strings else tensor.numpy().tobytes()
    return hashlib.blake2b(data, digest_size=8).hexdigest()


class _TracedPlace(NamedTuple):
    """A place at which a trace returns tensors, as in `format.function_change`."""

    kind: str
    name: str
    classes: Classes | None = None


class _OutputTracer:
    """Traces a network with the outputs of its layers as additional results.

    While tracing, `call` of each Keras layer is wrapped. Outputs inside an inner function (the body
    of a loop, as for RNN cells, or a nested tf.function) aren't accessible outside of it: such a
    layer is left out. `places` are the layers of the last trace, then its outputs.
    """

    def __init__(self, network: Any, layers: Mapping[str, keras.layers.Layer]) -> None:
        self.places: tuple[_TracedPlace, ...] = ()
        self._network = network
        # The network's own results are the outputs.
        self._layers = {name: layer for name, layer in layers.items() if layer is not network}
        self._graph: tf.Graph | None = None
        self._calls: list[tuple[keras.layers.Layer, list[Any]]] = []
        source = callable_network(network)
        self.name = source.name
        begin = tf.autograph.experimental.do_not_convert(self._begin)
        finish = tf.autograph.experimental.do_not_convert(self._finish)
        keras_own = isinstance(network, keras.layers.Layer)
        call = source.call if keras_own else network

        def listening(*args: Any, **kwargs: Any) -> Any:
            begin()
            return finish(call(*args, **kwargs))

        # Python's `if` on tensors works in a module as under tf.function.
        self._tracer = Tracer(listening if keras_own else tf.function(listening), source.name)

    def trace(self, arguments: Sequence[Any]) -> tuple[Trace, list[tf.Tensor]]:
        """The trace for some arguments, which returns the tensors of each place, and its inputs."""
        roots = [self._network, *self._layers.values()]
        layers = [layer for layer in roots if isinstance(layer, keras.layers.Layer)]
        # As in `model.walk` there is no public name for all of them. Layers without weights may
        # also produce an output.
        flat = {id(inner): inner for layer in layers for inner in layer._flatten_layers()}
        with self._listening(list(flat.values())):
            return self._tracer.trace(arguments, {})

    def _begin(self) -> None:
        """Starts again, in the graph that is being traced."""
        self._graph = tf.compat.v1.get_default_graph()
        self._calls = []

    @contextmanager
    def _listening(self, layers: Sequence[keras.layers.Layer]) -> Iterator[None]:
        """Wraps `call` of the layers inside the context."""
        own = [vars(layer).get("call") for layer in layers]
        for layer in layers:
            # Keras would track a wrapper that is set normally.
            object.__setattr__(layer, "call", self._listener(layer, layer.call))
        try:
            yield
        finally:
            for layer, call in zip(layers, own, strict=True):
                if call is None:
                    object.__delattr__(layer, "call")
                else:
                    object.__setattr__(layer, "call", call)

    def _listener(self, layer: keras.layers.Layer, call: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(call)
        def listener(*args: Any, **kwargs: Any) -> Any:
            result = call(*args, **kwargs)
            self._calls.append((layer, tf.nest.flatten(result)))
            return result

        return listener

    def _finish(self, result: Any) -> list[list[tf.Tensor]]:
        """Sorts the results: the tensors of each place."""
        inner = [
            (_TracedPlace(LAYER, name), self._returned(layer))
            for name, layer in self._layers.items()
        ]
        places = [*(place for place in inner if place[1]), *self._outputs(result)]
        self._calls = []
        self.places = tuple(place for place, _ in places)
        return [tensors for _, tensors in places]

    def _returned(self, layer: keras.layers.Layer) -> list[tf.Tensor]:
        """All tensors that a layer returned; none if one of them isn't accessible."""
        tensors = [leaf for caller, leaves in self._calls if caller is layer for leaf in leaves]
        inside = all(getattr(tensor, "graph", None) is self._graph for tensor in tensors)
        return [tensor for tensor in tensors if _numeric(tensor)] if inside else []

    def _outputs(self, result: Any) -> list[tuple[_TracedPlace, list[tf.Tensor]]]:
        leaves = tf.nest.flatten(result)
        keys = _keys(result, leaves)
        outputs: dict[str, tuple[_TracedPlace, list[tf.Tensor]]] = {}
        for index, (leaf, key) in enumerate(zip(leaves, keys, strict=True)):
            if not _numeric(leaf):
                continue
            # The layers that returned it, the innermost first.
            chain = [
                layer
                for layer, results in self._calls
                if layer is not self._network and any(each is leaf for each in results)
            ]
            name = free_name(key or self._name(chain), outputs)
            names = [name, *(layer.name for layer in chain)]
            loss = loss_of(self._network, index, names, len(leaves))
            classes = classes_of(chain, loss) if leaf.shape.rank != 0 else None
            outputs[name] = (_TracedPlace(OUTPUT, name, classes), [leaf])
        return list(outputs.values())

    def _name(self, chain: Sequence[keras.layers.Layer]) -> str:
        """The name of the layer that returns an output, numbered as everywhere."""
        if not chain:
            return "output"
        last, network = chain[-1], self._network
        below = named_children(network) if isinstance(network, keras.layers.Layer) else []
        return next((name for layer, name in below if layer is last), str(last.name))


def _numeric(leaf: object) -> bool:
    if not isinstance(leaf, tf.Tensor):
        return False
    return bool(leaf.dtype.is_floating or leaf.dtype.is_integer or leaf.dtype.is_bool)


def _keys(result: object, leaves: Sequence[object]) -> list[str]:
    """Names of a mapping of outputs; empty if they have no names."""
    if not isinstance(result, Mapping) or len(result) != len(leaves):
        return [""] * len(leaves)
    # In the order of `tf.nest`.
    return [str(key) for key in sorted(result)]
