"""Clones a network of a graph from its tensors."""

from __future__ import annotations

import zlib
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import tensorflow.compat.v1 as tf
from tensorflow import Variable  # the base of all; tf.compat.v1.Variable isn't that of a resource

from tb_pastnet.core.arguments import answered
from tb_pastnet.errors import InvalidArgument
from tb_pastnet.keras.graphs.nodes import Nest
from tb_pastnet.v1.clones.clone_arguments import (
    DOING,
    flat,
    free_scope,
    graph_of,
    refuse_unneeded,
    replacements,
    shared_names,
)
from tb_pastnet.v1.clones.graph_copy import Copied, copy_part, storage
from tb_pastnet.v1.clones.graph_part import GraphPart, Pair, take_followers
from tb_pastnet.v1.graph.graph_variables import graph_variables, slice_in

_ASSIGNS = ("Assign", "AssignVariableOp")


@dataclass(frozen=True, eq=False)
class ClonedGraph:
    """A network in the graph of its original, with its own variables.

    Attributes:
        inputs: its inputs, in the structure of the original's.
        outputs: its outputs, in the structure of the original's.
        variables: its tf.Variables, in the order of their originals; the parts of a partitioned
            one.
        initializer: the operation that initializes them: with initial="copy" with the originals'
            values at that time.
        sync_op: the operation that copies the values of the originals.
        mapping: the names of the `variables` by the names of the originals, in order.

    Example:
        >>> from tb_pastnet import v1
        >>> with tf.Graph().as_default():
        ...     x = tf.placeholder(tf.float32, (None, 4))
        ...     clone = v1.clone_network(x, tf.matmul(x, tf.get_variable("w", (4, 2))))
        >>> clone.mapping
        {'w': 'clone/w'}
    """

    inputs: Nest
    outputs: Nest
    variables: Sequence[Any]
    initializer: Any
    sync_op: Any
    mapping: Mapping[str, str]


@answered
def clone_network(
    inputs: Nest,
    outputs: Nest,
    scope: str = "clone",
    new_inputs: Nest = None,
    share: Nest = (),
    initial: str = "copy",
    session: tf.Session | None = None,
) -> ClonedGraph:
    """Clones the part of a graph between some tensors and others, with new variables.

    The copy is in the same graph. It computes the same, has gradients, and shares no state with its
    original. Its variables are in the same collections, so `tf.global_variables_initializer`, a
    Saver and an optimizer find them. Updates of statistics (`UPDATE_OPS`) and losses
    (`REGULARIZATION_LOSSES`) are copied into the collections that list them, if they depend only on
    the network.

    Everything between the inputs and the outputs is copied, including branches and loops of control
    flow v1 and v2.

    Args:
        inputs: one tensor or a nest of them, such as placeholders or intermediate tensors.
        outputs: one tensor or a nest of them.
        scope: the full name scope of the copy: the copy of "net/w" is named "clone/net/w".
        new_inputs: the inputs of the copy, in the structure of `inputs`; None: the same inputs.
        share: variables, tensors, operations and lookup tables that both use, or their names.
        initial: "copy": the initial values are those of the originals. If all variables of the
            graph are initialized in one run, both get the same. "initializer": drawn again, with
            other seeds, the same in each process.
        session: a tf.Session in which the copy is initialized at once. None: initialize it
            yourself.

    Returns:
        Tensors, variables and operations of the copy.

    Raises:
        UnknownName: the graph has nothing of a name in `share`.
        InvalidArgument: an input is missing or unused, there are no outputs, a tensor isn't of this
            graph, or a new input has another dtype or shape. Also if the scope is taken, if
            unshared Python code or state other than variables is used, if the graph is finalized,
            or if the session is of another one.

    Example:
        >>> with tf.Graph().as_default(), tf.Session() as session:
        ...     x = tf.placeholder(tf.float32, [None, 2], name="x")
        ...     weight = tf.get_variable("net/weight", initializer=[[1.0], [2.0]])
        ...     copy = clone_network(x, x @ weight)
        ...     session.run(tf.global_variables_initializer())
        ...     _ = session.run(weight.assign([[0.0], [0.0]]))
        ...     session.run(copy.outputs, {x: [[1.0, 1.0]]}).tolist()
        ...     copy.mapping
        [[3.0]]
        {'net/weight': 'clone/net/weight'}
    """
    graph = graph_of(inputs, outputs)
    scope = free_scope(scope, graph)
    _check(initial, session, graph)
    replaced = replacements(inputs, new_inputs, graph)
    shared = shared_names(share, graph, DOING)
    starts = [old.name for old, _ in replaced]
    part = GraphPart(graph, {*starts, *shared}, flat(outputs))
    refuse_unneeded(starts, part)
    followers = take_followers(part)
    part.check(DOING)

    fresh = initial == "initializer"
    twins = _twin_variables(part, scope, fresh=fresh)
    storages = [(held.outputs[0], storage(twin)) for held, twin in twins]
    copied = copy_part(part, [*replaced, *storages], scope)
    for key, element in followers:
        graph.add_to_collection(key, copied(element))
    ends = [copied(tensor) for tensor in flat(outputs)]
    sync, init = _sync_and_init(twins, graph, scope, fresh=fresh)
    clone = ClonedGraph(
        inputs=inputs if new_inputs is None else new_inputs,
        outputs=tf.nest.pack_sequence_as(outputs, ends, expand_composites=True),
        variables=[twin for _, twin in twins],
        initializer=init,
        sync_op=sync,
        mapping={held.name: twin.op.name for held, twin in twins},
    )
    if session is not None:
        _initialize(clone, session)
    return clone


def _check(initial: str, session: tf.Session | None, graph: tf.Graph) -> None:
    if initial not in ("copy", "initializer"):
        raise InvalidArgument(
            f"Could not {DOING}: expected initial 'copy' or 'initializer', got {initial!r}. Choose "
            f"one of them."
        )
    if session is not None and session.graph is not graph:
        raise InvalidArgument(
            f"Could not {DOING}: expected a session of its graph, got one of another graph. Make "
            f"it with tf.Session(graph=...)."
        )


def _initialize(clone: ClonedGraph, session: tf.Session) -> None:
    try:
        session.run(clone.initializer)
    except tf.errors.FailedPreconditionError as error:
        raise InvalidArgument(
            f"Could not {DOING}: expected its variables to have values in the session, got one "
            f"that isn't initialized. Initialize or restore the original first, or leave session "
            f"out."
        ) from error


def _twin_variables(part: GraphPart, scope: str, *, fresh: bool) -> list[Pair]:
    """Pairs of an operation that holds a variable, and a copy of that, in the same collections.

    One without a collection, as in a graph imported without them, counts as a global variable, and
    as trainable if it is floating. `fresh` initial values are drawn by copies of the originals'
    initializers; otherwise both get the originals' values.
    """
    graph = part.graph
    originals = {
        each.op.name: each for variable in graph_variables(graph) for each in variable.parts
    }
    listed = _collections(graph)
    held = [each for each in graph.get_operations() if each.name in part.variables]
    values = {each.name: _initial_value(each, originals.get(each.name)) for each in held}
    draw = _Draw(part, scope)
    for operation in held if fresh else ():
        draw.check(operation, values[operation.name])
    pairs: list[Pair] = []
    with graph.as_default(), graph.control_dependencies(None), tf.name_scope(None):
        for operation in held:
            original, value = originals.get(operation.name), values[operation.name]
            if fresh:
                value = draw(value, pairs)
            elif value is None:
                value = _read(operation)
            keys = listed[operation.name] if original is not None else _usual(operation)
            with tf.device(operation.device or None):
                pairs.append((operation, _twin(operation, original, value, keys, scope)))
    return pairs


def _sync_and_init(
    pairs: Sequence[Pair], graph: tf.Graph, scope: str, *, fresh: bool
) -> tuple[tf.Operation, tf.Operation]:
    """Builds the operations that copy the originals' values, and that initialize the twins."""
    with graph.as_default(), graph.control_dependencies(None):
        with tf.name_scope(f"{scope}/sync/"):
            copies = (twin.assign(_read(held), read_value=False) for held, twin in pairs)
            sync = tf.group(*copies)
        if not fresh:
            return sync, sync
        with tf.name_scope(f"{scope}/init/"):
            return sync, tf.group(*(twin.initializer for _, twin in pairs))


def _read(operation: tf.Operation) -> tf.Tensor:
    """Builds a read of the variable that an operation holds."""
    held = operation.outputs[0]
    if held.dtype != tf.resource:
        return tf.identity(held)
    return tf.raw_ops.ReadVariableOp(resource=held, dtype=operation.get_attr("dtype"))


def _collections(graph: tf.Graph) -> dict[str, list[Any]]:
    """The keys of the collections that list a variable, by the name of its operation."""
    keys: dict[str, list[Any]] = defaultdict(list)
    for key in graph.collections:
        for each in graph.get_collection(key):
            if isinstance(each, Variable) and key not in keys[each.op.name]:
                keys[each.op.name].append(key)
    return keys


def _usual(operation: tf.Operation) -> list[Any]:
    trained = operation.get_attr("dtype").is_floating
    more = [tf.GraphKeys.TRAINABLE_VARIABLES] if trained else []
    return [tf.GraphKeys.GLOBAL_VARIABLES, *more]


def _initial_value(operation: tf.Operation, original: tf.Variable | None) -> Any:
    """The tensor that a variable is initialized with, or None."""
    initializer = getattr(original, "initializer", None)
    if initializer is None:  # TensorFlow's own name for it
        try:
            initializer = operation.graph.get_operation_by_name(f"{operation.name}/Assign")
        except KeyError:
            return None
    return initializer.inputs[1] if initializer.type in _ASSIGNS else None


def _twin(
    operation: tf.Operation,
    original: tf.Variable | None,
    value: tf.Tensor,
    keys: list[Any],
    scope: str,
) -> tf.Variable:
    shape = tf.TensorShape(operation.get_attr("shape"))
    twin = tf.Variable(
        value if value.shape.is_subtype_of(shape) else tf.ensure_shape(value, shape),
        trainable=tf.GraphKeys.TRAINABLE_VARIABLES in keys,
        collections=keys,
        validate_shape=shape.is_fully_defined(),
        name=f"{scope}/{operation.name}",
        use_resource=operation.type == "VarHandleOp",
        constraint=getattr(original, "constraint", None),
    )
    if original is not None:  # without it a Saver would mistake a part for a whole
        twin._set_save_slice_info(slice_in(scope, original))
    return twin


class _Draw:
    """Copies initial values with other seeds. Common parts are copied once."""

    def __init__(self, network: GraphPart, scope: str) -> None:
        self._network = network
        self._scope = scope
        self._copied: dict[str, tf.Operation] = {}

    def check(self, operation: tf.Operation, value: tf.Tensor | None) -> None:
        """Raises InvalidArgument for an initial value that can't be copied."""
        if value is None:
            raise InvalidArgument(
                f"Could not draw an initial value for the copy of {operation.name!r}: expected an "
                f"initializer in the graph, got none. Pass initial='copy'."
            )
        self._part(value).check(f"draw an initial value for the copy of {operation.name!r}")

    def __call__(self, value: tf.Tensor, pairs: Iterable[Pair]) -> tf.Tensor:
        """Copies an initial value, which may depend on the variables of earlier pairs."""
        part = self._part(value)
        storages = {held.outputs[0].name: storage(twin) for held, twin in pairs}
        earlier = Copied(storages, self._copied)
        with tf.name_scope(self._scope + "/"):
            seeds = self._other_seeds(part)
        copied = copy_part(part, [*part.outside(earlier), *seeds], self._scope, self._reseed)
        self._copied |= copied.operations
        return earlier(copied(value))

    def _part(self, value: tf.Tensor) -> GraphPart:
        starts = self._network.starts | self._copied.keys()
        return GraphPart(self._network.graph, starts, [value])

    def _reseed(self, node: tf.NodeDef) -> None:
        """Changes the seed of a random operation, if it has one, the same in every process."""
        seeds = [node.attr[key] for key in ("seed", "seed2") if key in node.attr]
        if any(seed.i for seed in seeds):
            seeds[-1].i = (seeds[-1].i ^ self._number(node.name)) or 1

    def _other_seeds(self, part: GraphPart) -> list[Pair]:
        """The seeds of stateless random operations, which are tensors, each with another one."""
        seeds = {}
        for operation in part.operations.values():
            for argument, tensor in zip(operation.op_def.input_arg, operation.inputs, strict=False):
                if argument.type_attr == "Tseed":
                    seeds[tensor.name] = tensor
        return [
            (seed, tf.bitwise.bitwise_xor(seed, tf.constant(self._number(name), seed.dtype)))
            for name, seed in seeds.items()
        ]

    def _number(self, name: str) -> int:
        return zlib.crc32(f"{self._scope}/{name}".encode()) & 0x7FFFFFFF
