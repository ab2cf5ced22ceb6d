"""Proves that a copy computes the same as its original, with its own state."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import keras
import numpy as np
import tensorflow as tf

from tb_pastnet.errors import InvalidArgument
from tb_pastnet.keras.graphs.callable_network import Arguments, own_losses
from tb_pastnet.keras.graphs.nodes import (
    PYTHON,
    READS,
    data_inputs,
    library_of,
    node_of,
    operation_types,
    references,
)
from tb_pastnet.keras.graphs.reason import reason
from tb_pastnet.keras.graphs.trace import Capture, Trace

if TYPE_CHECKING:
    from tensorflow.core.framework.attr_value_pb2 import AttrValue
    from tensorflow.core.framework.function_pb2 import FunctionDef
    from tensorflow.core.framework.node_def_pb2 import NodeDef
    from tensorflow.types.experimental import ConcreteFunction

    Libraries: TypeAlias = Sequence[Mapping[str, FunctionDef]]

Pair = tuple[Any, Any]
"""A layer or variable of an original, and its counterpart in a copy."""

CLONE_FUNCTION = "clone a function: clone_network(tf.function(model), example=batch)."
"""The way that works without configs."""

CONFIG_HINT = (
    f"Return everything that affects the layer's results from its get_config, or {CLONE_FUNCTION}"
)

_SHARING_HINT = (
    f"Layers that share a layer through their configs each make a new one: {CLONE_FUNCTION}"
)

_ONE_COPY = "one copy, as layers share it"

_BESIDES = frozenset({"config_proto", "container", "executor_type", "seed", "seed2", "shared_name"})
"""Attributes for placement, or with numbers that differ in each graph."""

_MODES = (None, True)
"""The values of `training` for calls of a network."""


def used_variables(
    networks: Pair, layers: Sequence[Pair], arguments: Arguments, name: str
) -> list[Pair]:
    """The variables that a network of Keras uses, and a copy's; losses of `layers` are results."""
    args, kwargs = arguments
    sides = [pair[0] for pair in layers], [pair[1] for pair in layers]
    pairs = []
    for training in _MODES:
        original, copy = (
            _traced(_results(network, own, training), args, kwargs, name)
            for network, own in zip(networks, sides, strict=True)
        )
        pairs += _pairs_by_graph(original, copy, name)
    return pairs


def _results(
    network: keras.layers.Layer, layers: Sequence[keras.layers.Layer], training: bool | None
) -> Callable[..., Any]:
    def called(*args: Any, **kwargs: Any) -> Any:
        with own_losses([network, *layers]):
            outputs = network(*args, training=training, **kwargs)
            graph = tf.compat.v1.get_default_graph()
            losses = [loss for layer in layers for loss in layer.losses]
            # A tensor inside a loop isn't accessible.
            return outputs, [loss for loss in losses if getattr(loss, "graph", graph) is graph]

    return called


def _traced(
    call: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any], name: str
) -> ConcreteFunction:
    try:
        concrete = tf.function(call, autograph=False).get_concrete_function(*args, **kwargs)
    except (TypeError, ValueError) as error:
        raise InvalidArgument(
            f"Could not trace {name}: expected valid inputs, got {_specs(args, kwargs)}. "
            f"{reason(error).rstrip('.')}. Pass example=, a batch of its inputs."
        ) from error
    refuse_python(concrete, name)
    return concrete


def refuse_python(concrete: ConcreteFunction, name: str) -> None:
    """Refuses a function that runs Python code, which isn't in its graph."""
    python = operation_types(concrete) & PYTHON
    if python:
        raise InvalidArgument(
            f"Could not clone {name}: expected TensorFlow operations, got Python code "
            f"({', '.join(sorted(python))}), whose use of state is unknown. Replace "
            f"tf.py_function and tf.numpy_function by TensorFlow operations."
        )


def _pairs_by_graph(original: ConcreteFunction, copy: ConcreteFunction, name: str) -> list[Pair]:
    captures = _own_captures(original, copy, name)
    try:
        numbers = pair_captures(original, copy)
    except Differs as difference:
        # One of these is read instead of another.
        variables = {
            tensor.op.name: capture.variable
            for tensor, capture in zip(
                reversed(original.inputs), reversed(captures[0]), strict=False
            )
            if capture.variable is not None
        }
        if (variable := variables.get(str(difference))) is not None:
            raise _unequal(name, variable, _ONE_COPY, "several", _SHARING_HINT) from None
        raise InvalidArgument(
            f"Could not clone {name}: expected a copy that computes the same, got one that differs "
            f"from {str(difference)!r} on. {CONFIG_HINT}"
        ) from None
    return _variable_pairs(((captures[0][a], captures[1][b]) for a, b in numbers), name)


def captured_pairs(original: ConcreteFunction, copy: ConcreteFunction, name: str) -> list[Pair]:
    """The variables that a function and its reloaded copy capture, in their own order."""
    # Not by their graphs: taking a gradient has changed the loops of the original.
    captures = _own_captures(original, copy, name)
    if len(captures[0]) != len(captures[1]):
        raise InvalidArgument(
            f"Could not clone {name}: expected a copy that uses {len(captures[0])} values, got one "
            f"that uses {len(captures[1])}. Save it as a SavedModel, and load that instead."
        )
    return _variable_pairs(zip(*captures, strict=True), name)


def _own_captures(
    original: ConcreteFunction, copy: ConcreteFunction, name: str
) -> tuple[tuple[Capture, ...], tuple[Capture, ...]]:
    """The captures of two functions; a copy that uses state of its original is refused."""
    captures = Trace(original).captures, Trace(copy).captures
    state = {id(capture.tensor) for capture in captures[0] if capture.is_state}
    shared = [capture.name for capture in captures[1] if id(capture.tensor) in state]
    if shared:
        mend = f"Make it a weight of a layer, or {CLONE_FUNCTION}"
        if any("seed_generator" in each for each in shared):
            mend = f"Draw from a keras.random.SeedGenerator of the layer, or {CLONE_FUNCTION}"
        raise InvalidArgument(
            f"Could not clone {name}: expected its own variables, got {', '.join(shared)} of "
            f"the original: Python code that closes over it, such as a Lambda, keeps using it. "
            f"{mend}"
        )
    return captures


def check_pairs(pairs: Iterable[Pair], name: str) -> list[Pair]:
    """Checks that variables of an original and of its copy correspond one to one."""
    pairs = list(pairs)
    originals = {id(original) for original, _ in pairs}
    unique: dict[int, Pair] = {}
    owners: dict[int, Any] = {}
    for original, copy in pairs:
        if id(copy) in originals:
            raise _unequal(name, original, "its own variable", "the original's", _SHARING_HINT)
        if unique.setdefault(id(original), (original, copy))[1] is not copy:
            raise _unequal(name, original, _ONE_COPY, "several", _SHARING_HINT)
        if (original.shape.as_list(), original.dtype) != (copy.shape.as_list(), copy.dtype):
            shown = [f"{each.dtype.name} {each.shape}" for each in (original, copy)]
            raise _unequal(name, original, shown[0], shown[1], CONFIG_HINT)
        owner = owners.setdefault(id(copy), original)
        if owner is not original:
            got = f"that of {original.name!r}"
            raise _unequal(name, owner, "a separate copy", got, CONFIG_HINT)
    return list(unique.values())


def _variable_pairs(captures: Iterable[tuple[Capture, ...]], name: str) -> list[Pair]:
    pairs = []
    for original, copy in captures:
        if not original.is_state:
            if not _same_bytes(original.tensor, copy.tensor):
                raise InvalidArgument(
                    f"Could not clone {name}: expected a copy with the same constants, got a "
                    f"different value of {original.name!r}. {CONFIG_HINT}"
                )
        elif original.variable is not None and copy.variable is not None:
            pairs.append((original.variable, copy.variable))
    return pairs


def _same_bytes(original: tf.Tensor, copy: tf.Tensor) -> bool:
    first, second = np.asarray(original), np.asarray(copy)
    if first.dtype.hasobject or second.dtype.hasobject:
        return bool((first == second).all())
    alike = (first.shape, first.dtype) == (second.shape, second.dtype)
    return alike and first.tobytes() == second.tobytes()


def _unequal(
    name: str, variable: tf.Variable, expected: str, got: str, hint: str
) -> InvalidArgument:
    return InvalidArgument(
        f"Could not clone {name}: expected for {variable.name!r} {expected}, got {got}. {hint}"
    )


def _specs(args: Sequence[Any], kwargs: Mapping[str, Any]) -> str:
    leaves = [leaf for leaf in tf.nest.flatten((args, kwargs)) if hasattr(leaf, "shape")]
    return ", ".join(f"{leaf.dtype.name} {leaf.shape}" for leaf in leaves) or "none"


class Differs(Exception):
    """Two functions differ, from a node of the first one on: its name."""


def pair_captures(first: ConcreteFunction, second: ConcreteFunction) -> list[tuple[int, int]]:
    """Which captures of two functions correspond.

    They are numbers in `captured_inputs` of both. Types, settings, constants and wiring of all
    operations have to be equal, even in called functions. Names and seeds don't count, nor do
    operations that no result or side effect depends on.
    """
    bodies = [_of_concrete(concrete) for concrete in (first, second)]
    libraries = [library_of(concrete.graph.as_graph_def()) for concrete in (first, second)]
    twins = _Pairing(bodies[0], bodies[1], libraries, set()).run()
    numbers = [(bodies[0].capture(name), bodies[1].capture(twin)) for name, twin in twins.items()]
    return sorted(pair for pair in numbers if pair[0] >= 0)


class _Body(NamedTuple):
    """A graph: its nodes by name in the order of creation, and names of nodes and tensors."""

    nodes: dict[str, NodeDef]
    arguments: dict[str, int]  # their numbers
    bound: int  # arguments at the same position in both graphs: those before its captures
    results: list[str]
    effects: list[str]  # nodes that run for their side effects

    def capture(self, name: str) -> int:
        """The number of a capture; negative for all others."""
        return self.arguments.get(name, -1) - self.bound


def _of_concrete(concrete: ConcreteFunction) -> _Body:
    graph = concrete.graph
    structure = tf.nest.flatten(concrete.structured_outputs, expand_composites=True)
    # Values kept for a gradient follow its results.
    count = sum(isinstance(leaf, tf.Tensor | tf.TensorSpec) for leaf in structure)
    nodes = {node.name: node for node in graph.as_graph_def().node}
    # An unused read doesn't count.
    effects = {each.name for each in graph.control_outputs if each.type not in READS}
    return _Body(
        nodes,
        {tensor.op.name: number for number, tensor in enumerate(concrete.inputs)},
        len(concrete.inputs) - len(concrete.captured_inputs),
        [tensor.name for tensor in graph.outputs[:count]],
        [name for name in nodes if name in effects],
    )


def _of_function(function: FunctionDef) -> _Body:
    nodes = {node.name: node for node in function.node_def}
    signature = function.signature
    arguments = {argument.name: number for number, argument in enumerate(signature.input_arg)}
    results = [function.ret[result.name] for result in signature.output_arg]
    effects = set(function.control_ret.values())
    return _Body(
        nodes, arguments, len(arguments), results, [name for name in nodes if name in effects]
    )


class _Pairing:
    """Walks two graphs in parallel, and each pair of functions that they call once."""

    def __init__(
        self, first: _Body, second: _Body, libraries: Libraries, same: set[tuple[str, str]]
    ) -> None:
        # Nodes and arguments of the second graph, by the name of their counterpart in the first.
        self.twins: dict[str, str] = {}
        self._taken: dict[str, str] = {}
        self._first, self._second = first, second
        self._libraries, self._same = libraries, same

    def run(self) -> dict[str, str]:
        """The names of nodes and arguments of the first, and of their counterparts."""
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
        """Follows pairs of tensors back to the inputs."""
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
        places = self._first.arguments.get(name, -1), self._second.arguments.get(twin, -1)
        return min(places) >= self._first.bound or places[0] == places[1]

    def _inputs(self, name: str, twin: str) -> Iterator[tuple[str, str]]:
        """The inputs of a node and of its twin, which are equal except for these."""
        node, twin_node = self._first.nodes[name], self._second.nodes.get(twin)
        if twin_node is None or not self._equal(node, twin_node):
            raise Differs(name)
        inputs, twin_inputs = data_inputs(node), data_inputs(twin_node)
        if len(inputs) != len(twin_inputs):
            raise Differs(name)
        return zip(inputs, twin_inputs, strict=True)

    def _equal(self, node: NodeDef, twin: NodeDef) -> bool:
        """Whether two nodes are the same except for their inputs."""
        if node.op != twin.op:
            return False
        if node.op == "Placeholder":
            # A loaded function lacks the shapes of its captures.
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
