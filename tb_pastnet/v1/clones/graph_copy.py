"""Copies a part of a graph inside of that graph."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import tensorflow.compat.v1 as tf

from tb_pastnet.errors import InvalidArgument
from tb_pastnet.v1.clones.control_flow import contexts, copy_contexts
from tb_pastnet.v1.clones.copied_functions import closes_over, own_functions, own_gradient
from tb_pastnet.v1.clones.graph_part import GraphPart

Pair = tuple[Any, Any]
"""What is in an original, and that in its place in a copy."""


class Copied(NamedTuple):
    """What is in the place of tensors that were replaced, and of operations, by name."""

    tensors: Mapping[str, tf.Tensor]
    operations: dict[str, tf.Operation]

    def __call__(self, element: tf.Tensor | tf.Operation) -> Any:
        """Gives the copy of a tensor or operation; itself, where the copy uses the same one."""
        if isinstance(element, tf.Operation):
            return self.operations.get(element.name, element)
        if element.name in self.tensors:
            return self.tensors[element.name]
        operation = self.operations.get(element.op.name)
        return element if operation is None else operation.outputs[element.value_index]


def storage(variable: tf.Variable) -> tf.Tensor:
    """The tensor that stands for a tf.Variable of a graph: its reference, or its handle."""
    return variable.op.outputs[0]


def copy_part(
    part: GraphPart,
    replaced: Iterable[Pair],
    scope: str,
    change: Callable[[tf.NodeDef], None] | None = None,
) -> Copied:
    """Copies the operations of a part of a graph, once it has been checked.

    The copy takes from outside what the part takes, but for what is replaced. It has gradients
    where the part has, also through branches and loops. It waits for no control dependencies of the
    caller, and is in none of its branches and loops.

    Args:
        part: what `take` and `check` have looked at.
        replaced: pairs of a tensor that the part takes from outside and of one for the copy,
            of the same dtype; for a variable its `storage`, for that of one of the same kind.
        scope: the full name scope of the copy. Names that are taken get a number.
        change: may change the definition of each operation before it is made.
    """
    pairs = list(replaced)
    copied = Copied({old.name: new for old, new in pairs}, {})
    graph = part.graph
    definition = _definition(part, scope, copied)
    if change is not None:
        for node in definition.node:
            change(node)
    with graph.as_default(), graph.control_dependencies(None), tf.name_scope(scope + "/"):
        imported = tf.import_graph_def(
            definition,
            _from_outside(part, copied),
            return_elements=list(part.operations),
            name=scope + "/",
        )
        copied.operations.update(zip(part.operations, imported, strict=True))
        copy_contexts(graph, lambda name: _renamed(name, graph, copied), scope)
    if all(new.shape.is_subtype_of(old.shape) for old, new in pairs):
        _take_shapes(part, copied)
    return copied


def _take_shapes(part: GraphPart, copied: Copied) -> None:
    # An import infers shapes. Those of `set_shape` it doesn't know.
    for operation in part.operations.values():
        for old, new in zip(operation.outputs, copied(operation).outputs, strict=True):
            if not new.shape.is_subtype_of(old.shape):
                new.set_shape(old.shape)


def _definition(part: GraphPart, scope: str, copied: Copied) -> tf.GraphDef:
    """What is imported. It holds no name that would tie it to the original."""
    nodes = [operation.node_def for operation in part.operations.values()]
    within_flow = {name for context in contexts(part.graph) for name in context.inside}
    for node, operation in zip(nodes, part.operations.values(), strict=True):
        in_flow = node.name in within_flow
        rewire = partial(_rewired, operation, part, copied, in_flow)
        own_gradient(operation, node, in_flow, rewire)
        if "frame_name" in node.attr:  # of a loop of control flow v1
            node.attr["frame_name"].s = f"{scope}/{node.attr['frame_name'].s.decode()}".encode()
        if "_class" in node.attr:
            places = node.attr["_class"].list
            own = [
                place
                for place in places.s
                if place.decode().removeprefix("loc:@") in part.operations
            ]
            places.s[:] = own
            if not own:
                del node.attr["_class"]
    return tf.GraphDef(
        node=nodes,
        library=own_functions(part.functions, part.operations.values(), nodes),
        versions=part.graph.graph_def_versions,
    )


def _from_outside(part: GraphPart, copied: Copied) -> dict[str, Any]:
    """By the names that an import doesn't find, or isn't to take, the tensors in their place."""
    tensors = {}
    for operation in part.operations.values():
        for tensor in operation.inputs:
            if tensor.name in copied.tensors or tensor.op.name not in part.operations:
                tensors[tensor.name] = copied(tensor)
        for control in operation.control_inputs:
            if control.name not in part.operations:
                tensors["^" + control.name] = _done(control, copied)
    return tensors


def _done(operation: tf.Operation, copied: Copied) -> tf.Tensor:
    """A tensor that is there when an operation is done."""
    if operation.outputs:
        return copied(operation.outputs[0])
    with tf.control_dependencies([operation]):
        return tf.constant(0, name="done")


def _renamed(name: str, graph: tf.Graph, copied: Copied) -> str | None:
    tensor = graph.as_graph_element(name)
    copy = copied(tensor)
    return None if copy is tensor and name not in copied.tensors else str(copy.name)


def _rewired(
    operation: tf.Operation,
    part: GraphPart,
    copied: Copied,
    in_flow: bool,
    results: Sequence[Any],
    upstream: Sequence[Any],
) -> Sequence[Any]:
    """The gradients of a copied operation, where its original's close over the original network."""
    leaves = tf.nest.flatten(results, expand_composites=True)
    originals = {*copied.operations, *copied.tensors}
    values = (*upstream, *copied.tensors.values())
    ends = (value.name for value in values if isinstance(value, tf.Tensor))
    copies = (copy.name for copy in copied.operations.values())
    gradient = GraphPart(part.graph, frozenset({*originals, *part.starts, *ends, *copies}))
    gradient.take(leaf for leaf in leaves if isinstance(leaf, tf.Tensor))
    foreign = gradient.variables.keys() - part.variables.keys()
    uses = gradient.reached & originals
    if not uses and not foreign:
        return results
    if in_flow:
        raise closes_over(copied(operation).name)
    if foreign:
        raise InvalidArgument(
            f"Could not take a gradient through the copy of {operation.name!r}: expected a custom "
            f"gradient that uses variables of the network, got {', '.join(sorted(foreign))}, which "
            f"its outputs don't use. Use it in the function itself as well, or add it to share."
        )
    gradient.check(f"take a gradient through the copy of {operation.name!r}")
    outside = [(tensor, copied(tensor)) for tensor in gradient.outside()]
    pairs = [(tensor, copy) for tensor, copy in outside if copy is not tensor]
    own = copy_part(gradient, pairs, copied(operation).name + "_gradient")
    rewired = [own(leaf) if isinstance(leaf, tf.Tensor) else leaf for leaf in leaves]
    return tuple(tf.nest.pack_sequence_as(results, rewired, expand_composites=True))
