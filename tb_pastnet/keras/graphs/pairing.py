"""Whether two traced functions compute the same, read from their graphs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import tensorflow as tf

from tb_pastnet.keras.graphs.nodes import READS

_BESIDES = frozenset({"config_proto", "container", "executor_type", "seed", "seed2", "shared_name"})
"""Attributes that say how and where, or that TensorFlow numbers anew for each graph."""


class Differs(Exception):
    """Two functions that compute something else.

    Attributes:
        node: of the first one, where it begins.
    """

    def __init__(self, node: str) -> None:
        super().__init__(node)
        self.node = node


def pair_captures(first: Any, second: Any) -> list[tuple[int, int]]:
    """Which of what the one function captures takes the place of what the other captures.

    The graphs are followed from their results and side effects back to the inputs, in both at once:
    types, settings, constants and wiring of all operations have to be equal, also in called
    functions; names and seeds of operations don't count. What no result depends on is left out.

    Args:
        first: a ConcreteFunction.
        second: another one.

    Returns:
        Numbers in `first.captured_inputs` and in `second.captured_inputs`.

    Raises:
        Differs: they don't compute the same.

    Example:
        >>> import tensorflow as tf
        >>> a, b, c = tf.Variable(1.0), tf.Variable(2.0), tf.Variable(3.0)
        >>> x = tf.TensorSpec([])
        >>> one = tf.function(lambda x: a * x + b).get_concrete_function(x)
        >>> two = tf.function(lambda x: b * x + c).get_concrete_function(x)
        >>> pair_captures(one, two)
        [(0, 0), (1, 1)]
    """
    bodies = [_of_concrete(concrete) for concrete in (first, second)]
    libraries = [_library(concrete) for concrete in (first, second)]
    paired = _Pairing(libraries[0], libraries[1]).of(bodies[0], bodies[1])
    start, other = (len(one.inputs) - len(one.captured_inputs) for one in (first, second))
    numbers = [{name: at for at, name in enumerate(body.arguments)} for body in bodies]
    return sorted(
        (numbers[0][name] - start, numbers[1][twin] - other)
        for name, twin in paired.items()
        if numbers[0].get(name, -1) >= start
    )


def operations(concrete: Any) -> frozenset[str]:
    """The types of all operations of a function, also in the functions that it may call."""
    graph = concrete.graph.as_graph_def()
    bodies = (graph.node, *(function.node_def for function in graph.library.function))
    return frozenset(node.op for body in bodies for node in body)


class _Body(NamedTuple):
    """A graph.

    Attributes:
        nodes: by name, in the order of creation.
        arguments: names of the inputs.
        bound: how many of them stand at the same place in both graphs.
        results: tensors.
        effects: names of nodes that run for what they do.
    """

    nodes: dict[str, Any]
    arguments: list[str]
    bound: int
    results: list[str]
    effects: list[str]


def _of_concrete(concrete: Any) -> _Body:
    graph = concrete.graph
    structure = tf.nest.flatten(concrete.structured_outputs, expand_composites=True)
    # Behind its results stands what a gradient that was taken of it keeps.
    count = sum(isinstance(one, tf.Tensor | tf.TensorSpec) for one in structure)
    nodes = {node.name: node for node in graph.as_graph_def().node}
    # A read that no result needs is none.
    effects = {each.name for each in graph.control_outputs if each.type not in READS}
    return _Body(
        nodes,
        [tensor.op.name for tensor in concrete.inputs],
        len(concrete.inputs) - len(concrete.captured_inputs),
        [tensor.name for tensor in graph.outputs[:count]],
        [name for name in nodes if name in effects],
    )


def _of_function(function: Any) -> _Body:
    nodes = {node.name: node for node in function.node_def}
    signature = function.signature
    arguments = [argument.name for argument in signature.input_arg]
    results = [function.ret[result.name] for result in signature.output_arg]
    effects = set(function.control_ret.values())
    return _Body(
        nodes, arguments, len(arguments), results, [name for name in nodes if name in effects]
    )


def _library(concrete: Any) -> dict[str, Any]:
    functions = concrete.graph.as_graph_def().library.function
    return {function.signature.name: function for function in functions}


class _Pairing:
    """Follows two graphs, and each pair of functions in them once."""

    def __init__(self, first: Mapping[str, Any], second: Mapping[str, Any]) -> None:
        self._libraries = (first, second)
        self._same: set[tuple[str, str]] = set()

    def of(self, first: _Body, second: _Body) -> dict[str, str]:
        """The names of nodes and arguments of the first, and of those in their place."""
        if len(first.results) != len(second.results) or len(first.effects) != len(second.effects):
            raise Differs("its results")
        twins: dict[str, str] = {}
        taken: dict[str, str] = {}
        self._follow(zip(first.results, second.results, strict=True), first, second, twins, taken)
        left = list(second.effects)
        for name in first.effects:
            twin = next((one for one in left if _fits(name, one, first, second, twins)), None)
            if twin is None:
                raise Differs(name)
            left.remove(twin)
            self._follow([(name, twin)], first, second, twins, taken)
        return twins

    def _follow(
        self,
        tensors: Iterable[tuple[str, str]],
        first: _Body,
        second: _Body,
        twins: dict[str, str],
        taken: dict[str, str],
    ) -> None:
        stack = list(tensors)
        while stack:
            tensor, other = stack.pop()
            name, _, port = tensor.partition(":")
            twin, _, other_port = other.partition(":")
            if port != other_port or twins.get(name, twin) != twin or taken.get(twin, name) != name:
                raise Differs(name)
            if name in twins:
                continue
            twins[name], taken[twin] = twin, name
            places = [
                body.arguments.index(one) if one in body.arguments else len(body.arguments)
                for body, one in ((first, name), (second, twin))
            ]
            if min(places) < first.bound and places[0] != places[1]:
                raise Differs(name)
            if name in first.nodes:
                stack.extend(self._inputs(first.nodes[name], second.nodes.get(twin)))

    def _inputs(self, node: Any, twin: Any) -> Iterator[tuple[str, str]]:
        """The inputs of a node and of its twin, which are found to be equal but for these."""
        if twin is None or node.op != twin.op or not self._equal(node, twin):
            raise Differs(node.name)
        inputs, others = _data(node), _data(twin)
        if len(inputs) != len(others):
            raise Differs(node.name)
        return zip(inputs, others, strict=True)

    def _equal(self, node: Any, twin: Any) -> bool:
        if node.op == "Placeholder":
            # A loaded function doesn't know the shapes of what it captures.
            return bool(node.attr["dtype"].type == twin.attr["dtype"].type)
        names = _attributes(node)
        return names == _attributes(twin) and all(
            self._equal_values(node.attr[name], twin.attr[name]) for name in names
        )

    def _equal_values(self, value: Any, other: Any) -> bool:
        functions, others = _called(value), _called(other)
        if not functions and not others:
            return bool(value.SerializeToString() == other.SerializeToString())
        return len(functions) == len(others) and all(
            self._equal_functions(one, two) for one, two in zip(functions, others, strict=True)
        )

    def _equal_functions(self, name: str, other: str) -> bool:
        if (name, other) not in self._same:
            bodies = [
                library.get(one)
                for library, one in zip(self._libraries, (name, other), strict=True)
            ]
            if None in bodies:
                return name == other
            self._same.add((name, other))  # before: a function may call itself
            self.of(_of_function(bodies[0]), _of_function(bodies[1]))
        return True


def _fits(name: str, other: str, first: _Body, second: _Body, twins: Mapping[str, str]) -> bool:
    """Whether the one node may stand for the other, as far as their inputs are known."""
    if name in twins:
        return twins[name] == other
    node, twin = first.nodes[name], second.nodes[other]
    inputs = zip(_data(node), _data(twin), strict=False)
    return node.op == twin.op and all(
        twins.get(one.partition(":")[0], two.partition(":")[0]) == two.partition(":")[0]
        for one, two in inputs
    )


def _data(node: Any) -> list[str]:
    return [text for text in node.input if not text.startswith("^")]


def _attributes(node: Any) -> list[str]:
    return sorted(name for name in node.attr if name[0] != "_" and name not in _BESIDES)


def _called(value: Any) -> Sequence[str]:
    functions = (value.func, *value.list.func)
    return [function.name for function in functions if function.name]
