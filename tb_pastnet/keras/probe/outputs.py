"""What each layer of a network returns, heard while the network is traced."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import keras
import tensorflow as tf

from tb_pastnet.format.function_change import LAYER, OUTPUT
from tb_pastnet.keras.graphs.callable_network import callable_network, free_name
from tb_pastnet.keras.graphs.trace import Trace, Tracer
from tb_pastnet.keras.model.walk import named_children
from tb_pastnet.keras.probe.classes import classes_of, loss_of
from tb_pastnet.keras.probe.measures import Classes


class Told(NamedTuple):
    """A place that a trace tells of.

    Attributes:
        kind: of `core.function_change`.
        name: which one.
        classes: of an output that decides between classes.
    """

    kind: str
    name: str
    classes: Classes | None = None


class Outputs:
    """Traces a network so that it also tells what its layers return.

    While tracing, `call` of each Keras layer is one that listens. What a layer returns within a
    function of its own (the body of a loop, as of the cells of an RNN, or a nested tf.function)
    can't be had outside of it: such a layer is left out.

    Args:
        network: a Keras model or layer, or a tf.Module that can be called.
        layers: the layers to tell of, by id.

    Attributes:
        places: of the last trace: the layers, then the outputs.

    Raises:
        InvalidArgument: the network isn't built, or can't be called.
    """

    def __init__(self, network: Any, layers: Mapping[str, Any]) -> None:
        self.places: tuple[Told, ...] = ()
        self._network = network
        # What the network itself returns are the outputs.
        self._layers = {name: one for name, one in layers.items() if one is not network}
        source = callable_network(network)
        self.name = source.name
        self._heard = _Heard()
        begin = tf.autograph.experimental.do_not_convert(self._heard.begin)
        finish = tf.autograph.experimental.do_not_convert(self._finish)
        keras_own = isinstance(network, keras.layers.Layer)
        call = source.call if keras_own else network

        def tell(*args: Any, **kwargs: Any) -> Any:
            begin()
            return finish(call(*args, **kwargs))

        # Python's own `if` on tensors works in a module as under tf.function.
        self._tracer = Tracer(tell if keras_own else tf.function(tell), source.name)

    def trace(self, arguments: Sequence[Any]) -> tuple[Trace, list[Any]]:
        """Traces the network.

        Args:
            arguments: what it is called with.

        Returns:
            The trace, which returns a list of tensors for each of `places`, and its own inputs.

        Raises:
            InvalidArgument: the network doesn't take these.
        """
        with self._heard.listening(_all_layers(self._network, self._layers.values())):
            return self._tracer.trace(arguments, {})

    def _finish(self, result: Any) -> list[list[Any]]:
        """Sorts what was heard: the tensors of each place."""
        told = []
        for name, layer in self._layers.items():
            tensors = self._heard.of(layer)
            if tensors:
                told.append((Told(LAYER, name), tensors))
        told += self._outputs(result)
        self._heard.begin()
        self.places = tuple(place for place, _ in told)
        return [tensors for _, tensors in told]

    def _outputs(self, result: Any) -> list[tuple[Told, list[Any]]]:
        leaves = tf.nest.flatten(result)
        keys = _keys(result, leaves)
        told: dict[str, tuple[Told, list[Any]]] = {}
        for index, (leaf, key) in enumerate(zip(leaves, keys, strict=True)):
            if not _numeric(leaf):
                continue
            chain = self._heard.by(leaf, but=self._network)
            own = free_name(key or self._name(chain), told)
            known = [own, *(layer.name for layer in chain)]
            loss = loss_of(self._network, index, known, len(leaves))
            classes = classes_of(chain, loss) if leaf.shape.rank != 0 else None
            told[own] = (Told(OUTPUT, own, classes), [leaf])
        return list(told.values())

    def _name(self, chain: Sequence[Any]) -> str:
        """Of an output: that of the layer which returns it, numbered as everywhere."""
        if not chain:
            return "output"
        last, network = chain[-1], self._network
        below = named_children(network) if isinstance(network, keras.layers.Layer) else []
        return next((name for layer, name in below if layer is last), str(last.name))


class _Heard:
    """Remembers what layers return."""

    def __init__(self) -> None:
        self._graph: Any = None
        self._returned: list[tuple[Any, list[Any]]] = []

    def begin(self) -> None:
        """Forgets what was heard, and listens in the graph that is traced now."""
        self._graph = tf.compat.v1.get_default_graph()
        self._returned = []

    @contextmanager
    def listening(self, layers: Sequence[Any]) -> Iterator[None]:
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

    def of(self, layer: Any) -> list[Any]:
        """All tensors that a layer returned; none where one of them can't be had."""
        tensors = [one for heard, found in self._returned if heard is layer for one in found]
        inside = all(getattr(tensor, "graph", None) is self._graph for tensor in tensors)
        return [one for one in tensors if _numeric(one)] if inside else []

    def by(self, tensor: Any, *, but: Any) -> list[Any]:
        """The layers that returned a tensor, the innermost first, without one of them."""
        told = [layer for layer, found in self._returned if any(one is tensor for one in found)]
        return [layer for layer in told if layer is not but]

    def _listener(self, layer: Any, call: Any) -> Any:
        @functools.wraps(call)
        def listener(*args: Any, **kwargs: Any) -> Any:
            result = call(*args, **kwargs)
            self._returned.append((layer, tf.nest.flatten(result)))
            return result

        return listener


def _all_layers(network: Any, others: Any) -> list[Any]:
    """Also those without weights: they may be what an output comes from."""
    roots = (network, *others)
    layers = [layer for layer in roots if isinstance(layer, keras.layers.Layer)]
    # As in `model.walk`: there is no public name for all of them.
    flat = {id(one): one for layer in layers for one in layer._flatten_layers()}
    return list(flat.values())


def _numeric(leaf: Any) -> bool:
    if not isinstance(leaf, tf.Tensor):
        return False
    return bool(leaf.dtype.is_floating or leaf.dtype.is_integer or leaf.dtype.is_bool)


def _keys(result: Any, leaves: Sequence[Any]) -> list[str]:
    """Names of a mapping of outputs; empty where they have none of their own."""
    if not isinstance(result, Mapping) or len(result) != len(leaves):
        return [""] * len(leaves)
    # In the order of `tf.nest`.
    return [str(key) for key in sorted(result)]
