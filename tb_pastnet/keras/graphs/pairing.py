"""Whether two traced functions compute the same, read from their graphs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import tensorflow as tf

from tb_pastnet.keras.graphs.nodes import READS, data_inputs, library_of, node_of, references

if TYPE_CHECKING:
    from tensorflow.core.framework.attr_value_pb2 import AttrValue
    from tensorflow.core.framework.function_pb2 import FunctionDef
    from tensorflow.core.framework.node_def_pb2 import NodeDef
    from tensorflow.types.experimental import ConcreteFunction

    Libraries: TypeAlias = Sequence[Mapping[str, FunctionDef]]

_BESIDES = frozenset({"config_proto", "container", "executor_type", "seed", "seed2", "shared_name"})
"""Attributes that say how and where, or that TensorFlow numbers anew for each graph."""


class Differs(Exception):
    """Two functions that compute something else, from a node of the first one on."""

    def __init__(self, node: str) -> None:
        super().__init__(node)
        self.node = node


def pair_captures(first: ConcreteFunction, second: ConcreteFunction) -> list[tuple[int, int]]:
    """Which of what one function captures takes the place of what the other captures.

    The graphs are followed from their results and side effects back to the inputs, in both at once:
    types, settings, constants and wiring of all operations have to be equal, also in called
    functions; names and seeds of operations don't count. What no result depends on is left out.
    They come as numbers in `captured_inputs` of both.
    """
    bodies = [_of_concrete(concrete) for concrete in (first, second)]
    libraries = [library_of(concrete.graph.as_graph_def()) for concrete in (first, second)]
    twins = _Pairing(bodies[0], bodies[1], libraries, set()).run()
    numbers = [{name: n for n, name in enumerate(body.arguments)} for body in bodies]
    return sorted(
        (numbers[0][name] - bodies[0].bound, numbers[1][twin] - bodies[1].bound)
        for name, twin in twins.items()
        if numbers[0].get(name, -1) >= bodies[0].bound
    )


class _Body(NamedTuple):
    """A graph: its nodes by name in the order of creation, and names of nodes and tensors."""

    nodes: dict[str, NodeDef]
    arguments: list[str]
    bound: int  # arguments that stand at the same place in both graphs
    results: list[str]
    effects: list[str]  # nodes that run for what they do


def _of_concrete(concrete: ConcreteFunction) -> _Body:
    graph = concrete.graph
    structure = tf.nest.flatten(concrete.structured_outputs, expand_composites=True)
    # After its results comes what a gradient that was taken of it keeps.
    count = sum(isinstance(leaf, tf.Tensor | tf.TensorSpec) for leaf in structure)
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


def _of_function(function: FunctionDef) -> _Body:
    nodes = {node.name: node for node in function.node_def}
    signature = function.signature
    arguments = [argument.name for argument in signature.input_arg]
    results = [function.ret[result.name] for result in signature.output_arg]
    effects = set(function.control_ret.values())
    return _Body(
        nodes, arguments, len(arguments), results, [name for name in nodes if name in effects]
    )


class _Pairing:
    """Goes through two graphs in step, and through each pair of functions that they call, once."""

    def __init__(
        self, first: _Body, second: _Body, libraries: Libraries, same: set[tuple[str, str]]
    ) -> None:
        # By the names of the first, the nodes and arguments in their place in the second.
        self.twins: dict[str, str] = {}
        self._taken: dict[str, str] = {}
        self._first, self._second = first, second
        self._libraries, self._same = libraries, same

    def run(self) -> dict[str, str]:
        """The names of nodes and arguments of the first, and of those in their place."""
        first, second = self._first, self._second
        if len(first.results) != len(second.results) or len(first.effects) != len(second.effects):
            raise Differs("its results")
        self._follow(zip(first.results, second.results, strict=True))
        left = list(second.effects)
        for name in first.effects:
            twin = next((effect for effect in left if self._fits(name, effect)), None)
            if twin is None:
                raise Differs(name)
            left.remove(twin)
            self._follow([(name, twin)])
        return self.twins

    def _follow(self, tensors: Iterable[tuple[str, str]]) -> None:
        """Goes from pairs of tensors back to the inputs."""
        stack = list(tensors)
        while stack:
            tensor, twin_tensor = stack.pop()
            name, _, port = tensor.partition(":")
            twin, _, twin_port = twin_tensor.partition(":")
            paired = self.twins.get(name, twin) == twin and self._taken.get(twin, name) == name
            if port != twin_port or not paired:
                raise Differs(name)
            if name in self.twins:
                continue
            self.twins[name], self._taken[twin] = twin, name
            if not self._same_place(name, twin):
                raise Differs(name)
            if name in self._first.nodes:
                stack.extend(self._inputs(name, twin))

    def _fits(self, name: str, twin: str) -> bool:
        """Whether a node may be the twin of another, as far as their inputs have twins."""
        if name in self.twins:
            return self.twins[name] == twin
        node, candidate = self._first.nodes[name], self._second.nodes[twin]
        inputs = zip(data_inputs(node), data_inputs(candidate), strict=False)
        return node.op == candidate.op and all(
            self.twins.get(node_of(a), node_of(b)) == node_of(b) for a, b in inputs
        )

    def _same_place(self, name: str, twin: str) -> bool:
        places = [
            body.arguments.index(each) if each in body.arguments else len(body.arguments)
            for body, each in ((self._first, name), (self._second, twin))
        ]
        return min(places) >= self._first.bound or places[0] == places[1]

    def _inputs(self, name: str, twin: str) -> Iterator[tuple[str, str]]:
        """The inputs of a node and of its twin, which are equal but for these."""
        node, twin_node = self._first.nodes[name], self._second.nodes.get(twin)
        if twin_node is None or not self._equal(node, twin_node):
            raise Differs(name)
        inputs, twin_inputs = data_inputs(node), data_inputs(twin_node)
        if len(inputs) != len(twin_inputs):
            raise Differs(name)
        return zip(inputs, twin_inputs, strict=True)

    def _equal(self, node: NodeDef, twin: NodeDef) -> bool:
        """Whether two nodes are the same but for their inputs."""
        if node.op != twin.op:
            return False
        if node.op == "Placeholder":
            # A loaded function doesn't know the shapes of what it captures.
            return bool(node.attr["dtype"].type == twin.attr["dtype"].type)
        names = _attributes(node)
        return names == _attributes(twin) and all(
            self._equal_values(node.attr[name], twin.attr[name]) for name in names
        )

    def _equal_values(self, value: AttrValue, twin: AttrValue) -> bool:
        functions, twins = references(value), references(twin)
        if not functions and not twins:
            return bool(value.SerializeToString() == twin.SerializeToString())
        return len(functions) == len(twins) and all(
            self._equal_functions(a.name, b.name) for a, b in zip(functions, twins, strict=True)
        )

    def _equal_functions(self, name: str, twin: str) -> bool:
        if (name, twin) not in self._same:
            functions = [
                library.get(key) for library, key in zip(self._libraries, (name, twin), strict=True)
            ]
            if None in functions:
                return name == twin
            self._same.add((name, twin))  # first: a function may call itself
            own, other = map(_of_function, functions)
            _Pairing(own, other, self._libraries, self._same).run()
        return True


def _attributes(node: NodeDef) -> list[str]:
    return sorted(name for name in node.attr if name[0] != "_" and name not in _BESIDES)
