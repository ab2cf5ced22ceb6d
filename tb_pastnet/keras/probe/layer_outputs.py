"""What each layer of a network returns, collected while the network is traced."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import keras
import tensorflow as tf

from tb_pastnet.format.function_change import LAYER, OUTPUT
from tb_pastnet.keras.graphs.callable_network import callable_network
from tb_pastnet.keras.graphs.trace import Trace, Tracer
from tb_pastnet.keras.model.walk import named_children
from tb_pastnet.keras.model.weights import free_name
from tb_pastnet.keras.probe.measures import Classes, classes_of, loss_of


class TracedPlace(NamedTuple):
    """A place at which a trace returns tensors, as in `format.function_change`."""

    kind: str
    name: str
    classes: Classes | None = None


class OutputTracer:
    """Traces a network so that it also returns what its layers return.

    While tracing, `call` of each Keras layer is one that listens. What a layer returns within a
    function of its own (the body of a loop, as of the cells of an RNN, or a nested tf.function)
    can't be had outside of it: such a layer is left out. `places` are the layers of the last trace,
    then its outputs.
    """

    def __init__(self, network: Any, layers: Mapping[str, keras.layers.Layer]) -> None:
        self.places: tuple[TracedPlace, ...] = ()
        self._network = network
        # What the network itself returns are the outputs.
        self._layers = {name: layer for name, layer in layers.items() if layer is not network}
        source = callable_network(network)
        self.name = source.name
        self._returned = _Returned()
        begin = tf.autograph.experimental.do_not_convert(self._returned.begin)
        finish = tf.autograph.experimental.do_not_convert(self._finish)
        keras_own = isinstance(network, keras.layers.Layer)
        call = source.call if keras_own else network

        def listening(*args: Any, **kwargs: Any) -> Any:
            begin()
            return finish(call(*args, **kwargs))

        # Python's own `if` on tensors works in a module as under tf.function.
        self._tracer = Tracer(listening if keras_own else tf.function(listening), source.name)

    def trace(self, arguments: Sequence[Any]) -> tuple[Trace, list[tf.Tensor]]:
        """The trace for some arguments, which returns a list of tensors a place, and its inputs."""
        roots = [self._network, *self._layers.values()]
        layers = [layer for layer in roots if isinstance(layer, keras.layers.Layer)]
        # As in `model.walk` there is no public name for all of them. Also those without weights
        # may be what an output comes from.
        flat = {id(inner): inner for layer in layers for inner in layer._flatten_layers()}
        with self._returned.listening(list(flat.values())):
            return self._tracer.trace(arguments, {})

    def _finish(self, result: Any) -> list[list[tf.Tensor]]:
        """Sorts what was returned: the tensors of each place."""
        places = []
        for name, layer in self._layers.items():
            tensors = self._returned.of(layer)
            if tensors:
                places.append((TracedPlace(LAYER, name), tensors))
        places += self._outputs(result)
        self._returned.begin()
        self.places = tuple(place for place, _ in places)
        return [tensors for _, tensors in places]

    def _outputs(self, result: Any) -> list[tuple[TracedPlace, list[tf.Tensor]]]:
        leaves = tf.nest.flatten(result)
        keys = _keys(result, leaves)
        outputs: dict[str, tuple[TracedPlace, list[tf.Tensor]]] = {}
        for index, (leaf, key) in enumerate(zip(leaves, keys, strict=True)):
            if not _numeric(leaf):
                continue
            chain = self._returned.by(leaf, but=self._network)
            name = free_name(key or self._name(chain), outputs)
            names = [name, *(layer.name for layer in chain)]
            loss = loss_of(self._network, index, names, len(leaves))
            classes = classes_of(chain, loss) if leaf.shape.rank != 0 else None
            outputs[name] = (TracedPlace(OUTPUT, name, classes), [leaf])
        return list(outputs.values())

    def _name(self, chain: Sequence[keras.layers.Layer]) -> str:
        """Of an output: that of the layer which returns it, numbered as everywhere."""
        if not chain:
            return "output"
        last, network = chain[-1], self._network
        below = named_children(network) if isinstance(network, keras.layers.Layer) else []
        return next((name for layer, name in below if layer is last), str(last.name))


class _Returned:
    """Remembers what layers return."""

    def __init__(self) -> None:
        self._graph: tf.Graph | None = None
        self._calls: list[tuple[keras.layers.Layer, list[Any]]] = []

    def begin(self) -> None:
        """Forgets all, and listens in the graph that is traced now."""
        self._graph = tf.compat.v1.get_default_graph()
        self._calls = []

    @contextmanager
    def listening(self, layers: Sequence[keras.layers.Layer]) -> Iterator[None]:
        """Replaces `call` of the layers for a while."""
        own = [vars(layer).get("call") for layer in layers]
        for layer in layers:
            # Keras would track a wrapper that is set in its own way.
            object.__setattr__(layer, "call", self._listener(layer, layer.call))
        try:
            yield
        finally:
            for layer, call in zip(layers, own, strict=True):
                if call is None:
                    object.__delattr__(layer, "call")
                else:
                    object.__setattr__(layer, "call", call)

    def of(self, layer: keras.layers.Layer) -> list[tf.Tensor]:
        """All tensors that a layer returned; none where one of them can't be had."""
        tensors = [leaf for caller, leaves in self._calls if caller is layer for leaf in leaves]
        inside = all(getattr(tensor, "graph", None) is self._graph for tensor in tensors)
        return [tensor for tensor in tensors if _numeric(tensor)] if inside else []

    def by(self, tensor: tf.Tensor, *, but: object) -> list[keras.layers.Layer]:
        """The layers that returned a tensor, the innermost first, without one of them."""
        return [
            layer
            for layer, leaves in self._calls
            if layer is not but and any(leaf is tensor for leaf in leaves)
        ]

    def _listener(self, layer: keras.layers.Layer, call: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(call)
        def listener(*args: Any, **kwargs: Any) -> Any:
            result = call(*args, **kwargs)
            self._calls.append((layer, tf.nest.flatten(result)))
            return result

        return listener


def _numeric(leaf: object) -> bool:
    if not isinstance(leaf, tf.Tensor):
        return False
    return bool(leaf.dtype.is_floating or leaf.dtype.is_integer or leaf.dtype.is_bool)


def _keys(result: object, leaves: Sequence[object]) -> list[str]:
    """Names of a mapping of outputs; empty where they have none of their own."""
    if not isinstance(result, Mapping) or len(result) != len(leaves):
        return [""] * len(leaves)
    # In the order of `tf.nest`.
    return [str(key) for key in sorted(result)]
