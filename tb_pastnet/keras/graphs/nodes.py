"""The nodes of a graph: their inputs, the functions that they call, and their use of state.

Variables, lookup tables and iterators all come into a graph as resource handles. Only the
operations that take a handle show its kind, and whether they write to it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping
from operator import itemgetter
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import tensorflow as tf

if TYPE_CHECKING:
    from tensorflow.core.framework.attr_value_pb2 import AttrValue, NameAttrList
    from tensorflow.core.framework.function_pb2 import FunctionDef
    from tensorflow.core.framework.graph_pb2 import GraphDef
    from tensorflow.core.framework.node_def_pb2 import NodeDef
    from tensorflow.types.experimental import ConcreteFunction

Item = TypeVar("Item")

Nest: TypeAlias = Any
"""One tensor, or a nest of them."""

READS = frozenset(
    {
        "DisableCopyOnRead",
        "ReadVariableOp",
        "ResourceGather",
        "ResourceGatherNd",
        "VarIsInitializedOp",
        "VariableShape",
    }
)
"""Operations that read a variable and leave it as it is."""

PYTHON = frozenset({"EagerPyFunc", "PyFunc", "PyFuncStateless"})
"""Operations that run Python code."""

_PASSES_ON = frozenset({"Identity", "IdentityN"})

_CALLS = frozenset({"PartitionedCall", "StatefulPartitionedCall", "While", "StatelessWhile"})
_BRANCHES = frozenset({"If", "StatelessIf", "Case", "StatelessCase"})
"""Their first input chooses the function, and isn't passed on."""


def reach(
    starts: Iterable[Item],
    following: Callable[[Item], Iterable[Item]],
    key: Callable[[Item], Hashable],
) -> dict[Hashable, Item]:
    """All items reachable from some, including these: by key, in the order of the walk."""
    reached: dict[Hashable, Item] = {}
    pending = list(starts)
    while pending:
        item = pending.pop()
        identity = key(item)
        if identity not in reached:
            reached[identity] = item
            pending += following(item)
    return reached


def operation_of(element: tf.Tensor | tf.Operation) -> Any:
    """The operation that a tensor comes from, or the operation itself."""
    return element if isinstance(element, tf.Operation) else element.op


def needed(elements: Iterable[tf.Tensor | tf.Operation]) -> dict[Any, tf.Operation]:
    """The operations that have to run for tensors and operations, including these, by name."""
    return reach(
        map(operation_of, elements),
        lambda operation: map(operation_of, (*operation.inputs, *operation.control_inputs)),
        key=lambda operation: operation.name,
    )


def data_inputs(node: NodeDef) -> list[str]:
    """Names of a node's input tensors, without control inputs."""
    return [text for text in node.input if not text.startswith("^")]


def node_of(tensor: str) -> str:
    """The name of the node that outputs a tensor of this name."""
    return tensor.partition(":")[0]


def references(value: AttrValue) -> list[NameAttrList]:
    """The functions that an attribute names."""
    return [reference for reference in (value.func, *value.list.func) if reference.name]


def called(node: NodeDef) -> list[NameAttrList]:
    """The functions that a node names in its attributes."""
    return [reference for value in node.attr.values() for reference in references(value)]


def first_argument(node: NodeDef) -> int:
    """The number of the input that is the first argument of the functions that a node calls."""
    return 1 if node.op in _BRANCHES else 0


def library_of(definition: GraphDef) -> dict[str, FunctionDef]:
    """The functions of a graph by name."""
    return {function.signature.name: function for function in definition.library.function}


def called_functions(graph: tf.Graph, operations: Iterable[tf.Operation]) -> dict[str, FunctionDef]:
    """The definitions of all functions that operations call, by name, even from within others."""
    names = [reference.name for each in operations for reference in called(each.node_def)]
    if not names:
        return {}
    library = library_of(graph.as_graph_def())

    def inner(name: str) -> list[str]:
        nodes = library[name].node_def
        return [each.name for node in nodes for each in called(node) if each.name in library]

    reached = reach([name for name in names if name in library], inner, key=str)
    return {name: library[name] for name in reached.values()}


def operation_types(concrete: ConcreteFunction) -> frozenset[str]:
    """The types of all operations of a function, even in the functions that it may call."""
    definition = concrete.graph.as_graph_def()
    bodies = (definition.node, *(each.node_def for each in definition.library.function))
    return frozenset(node.op for nodes in bodies for node in nodes)


def uses(concrete: ConcreteFunction) -> list[dict[str, str]]:
    """The types of operations, and one's name, that take each captured tensor, even in functions.

    An operation that calls functions in an unknown way is listed itself.
    """
    definition = concrete.graph.as_graph_def()
    placeholders = [tensor.op.name for tensor in concrete.inputs]
    first = len(placeholders) - len(concrete.captured_inputs)
    taken = Uses(library_of(definition)).of(definition.node, placeholders)
    return [taken[name] for name in placeholders[first:]]


class Uses:
    """Follows tensors into the functions that they are passed to, each function once."""

    def __init__(self, library: Mapping[str, FunctionDef]) -> None:
        self._library = library
        self._arguments: dict[str, list[dict[str, str]]] = {}

    def of(self, nodes: Iterable[NodeDef], names: Iterable[str]) -> dict[str, dict[str, str]]:
        """The users of each tensor, by the name of its node: dicts like those of `uses`."""
        inputs = defaultdict(list)
        for number, node in enumerate(nodes):
            for index, tensor in enumerate(data_inputs(node)):
                inputs[node_of(tensor)].append((number, index, node))

        def passed_on(name: str) -> list[str]:
            return [node.name for _, _, node in inputs.get(name, ()) if node.op in _PASSES_ON]

        takers: dict[str, dict[str, str]] = {}
        for name in names:
            takers[name] = {}
            tensors = reach([name], passed_on, key=str).values()
            taken = [each for tensor in tensors for each in inputs.get(tensor, ())]
            for _, index, node in sorted(taken, key=itemgetter(0, 1)):
                if node.op not in _PASSES_ON:
                    takers[name] = {**self._takers(node, index), **takers[name]}
        return takers

    def _takers(self, node: NodeDef, index: int) -> dict[str, str]:
        """The users of a node's input: the node, or operations in the functions that it calls."""
        names = [each.name for each in called(node) if each.name in self._library]
        if not names or node.op not in _CALLS | _BRANCHES:
            return {node.op: node.name}
        position = index - first_argument(node)
        takers: dict[str, str] = {}
        for name in names:
            arguments = self._taken_in(name)
            if 0 <= position < len(arguments):
                takers |= arguments[position]
        return takers

    def _taken_in(self, name: str) -> list[dict[str, str]]:
        """The users of each argument of a function."""
        if name not in self._arguments:
            function = self._library[name]
            names = [argument.name for argument in function.signature.input_arg]
            # A recursive function adds nothing.
            self._arguments[name] = [{} for _ in names]
            takers = self.of(function.node_def, names)
            self._arguments[name] = [takers[argument] for argument in names]
        return self._arguments[name]
