"""A graph and its variables: reference, resource, and partitioned ones, which count as one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import tensorflow.compat.v1 as tf
from tensorflow import Variable  # the base of all; tf.compat.v1.Variable isn't that of a resource

from tb_pastnet.core import names
from tb_pastnet.errors import InvalidArgument

VARIABLES = frozenset({"Variable", "VariableV2", "VarHandleOp"})
"""Types of the operations that hold variables."""

MASK_VARIABLES = "pastnet_mask_variables"
"""The collection of the variables that store masks."""

PAST_VARIABLES = "pastnet_past_variables"
"""The collection of shadow variables, in addition to LOCAL_VARIABLES."""


@dataclass(frozen=True, eq=False)
class GraphVariable:
    """A variable of a graph: one tf.Variable, or the parts of a partitioned one in their order.

    Its `name` is without ":0", and its key in a Saver's checkpoint.
    """

    name: str
    parts: tuple[tf.Variable, ...]
    trainable: bool

    @property
    def graph(self) -> tf.Graph:
        """Its graph."""
        return self.parts[0].graph

    @property
    def holders(self) -> list[str]:
        """The names of the operations that hold its parts."""
        return [part.op.name for part in self.parts]

    @property
    def dtype(self) -> tf.DType:
        """The dtype of its values, never a reference dtype."""
        return self.parts[0].dtype.base_dtype

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the whole; raises InvalidArgument if TensorFlow doesn't know it."""
        piece = _slice(self.parts[0])
        if piece is not None:
            return tuple(piece.full_shape)
        shape = self.parts[0].shape
        if not shape.is_fully_defined():
            raise InvalidArgument(
                f"Could not use variable {self.name!r}: expected a fixed shape, got {shape}. Make "
                f"it without validate_shape=False."
            )
        return tuple(shape.as_list())

    def tensor(self) -> tf.Tensor:
        """Builds a read of the whole. It may alias the storage of a reference variable."""
        return self.join([part.read_value() for part in self.parts])

    def assign(self, value: tf.Tensor) -> tf.Operation:
        """Builds the operation that writes a value of the whole shape."""
        pairs = zip(self.parts, self.split(value), strict=True)
        done = [part.assign(piece, read_value=False) for part, piece in pairs]
        return done[0] if len(done) == 1 else tf.group(*done)

    def join(self, values: Sequence[tf.Tensor]) -> tf.Tensor:
        """Builds a tensor of the whole shape from one per part."""
        return values[0] if len(values) == 1 else tf.concat(values, self._axis)

    def split(self, value: tf.Tensor) -> list[tf.Tensor]:
        """Builds one tensor per part from one of the whole shape."""
        if len(self.parts) == 1:
            return [value]
        sizes = [_slice(part).var_shape[self._axis] for part in self.parts]
        return list(tf.split(value, sizes, self._axis))

    @property
    def _axis(self) -> int:
        # TensorFlow partitions along one axis only.
        part = _slice(self.parts[0])
        return next(i for i, n in enumerate(part.full_shape) if part.var_shape[i] != n)


def graph_variables(graph: tf.Graph | None = None, scope: str | None = None) -> list[GraphVariable]:
    """The variables of a graph's collections, each once, in order of creation: first global ones.

    A scope matches whole parts from the root: "net" has "net/w", but neither "net_2/w" nor
    "other/net/w".
    """
    graph = tf.get_default_graph() if graph is None else graph
    return [variable for variable in _all(graph) if within(variable.name, scope)]


def graph_variable(variable: object) -> GraphVariable:
    """The variable behind a tf.Variable of a graph, a partitioned one, or a part of one."""
    if isinstance(variable, GraphVariable):
        return variable
    parts = _parts(variable)
    if not all(isinstance(part, Variable) and hasattr(part, "graph") for part in parts):
        raise InvalidArgument(
            f"Could not use {getattr(variable, 'name', variable)!r:.80}: expected a tf.Variable of "
            f"a graph, got {type(variable).__name__}. Make it inside of the graph."
        )
    name = _name(parts[0])
    listed = (each for each in _all(parts[0].graph) if each.name == name)
    return next(listed, GraphVariable(name, parts, any(part.trainable for part in parts)))


def choose(wanted: str | Iterable[Any], among: Sequence[GraphVariable]) -> list[GraphVariable]:
    """Chooses variables by names, their ends, scopes, patterns (`"*/kernel"`), or themselves."""
    named = {variable.name: variable for variable in among}

    def name_of(variable: object) -> str:
        if isinstance(variable, str):
            return variable
        name = graph_variable(variable).name
        if name not in named:
            raise InvalidArgument(
                f"Could not choose {name!r}: expected a variable that the network uses, got a "
                "different one. Correct variables=."
            )
        return name

    def below(want: object) -> list[Any]:
        return [each for each in among if isinstance(want, str) and within(each.name, want)]

    wants = (wanted,) if isinstance(wanted, str | Variable) else wanted
    expanded = [name_of(each) for want in wants for each in below(want) or [want]]
    chosen = names.Names({name: names.Called() for name in named}).all(expanded)
    return [variable for name, variable in named.items() if name in chosen]


def within(name: str, scope: str | None) -> bool:
    """Whether a name is in a scope, by whole parts of the path; everything is in "" or None."""
    scope = (scope or "").rstrip("/")
    return not scope or name.startswith(scope + "/")


def slice_in(scope: str, part: tf.Variable) -> Any:
    """The slice info with which a Saver treats the copy of a part as a part; else None."""
    piece = _slice(part)
    if piece is None:
        return None
    name = f"{scope}/{piece.full_name}"
    return Variable.SaveSliceInfo(name, piece.full_shape, piece.var_offset, piece.var_shape)


def _all(graph: tf.Graph) -> list[GraphVariable]:
    # The order of a graph's collections differs from process to process.
    first = [tf.GraphKeys.GLOBAL_VARIABLES, tf.GraphKeys.LOCAL_VARIABLES]
    keys = [*first, *sorted({*graph.collections} - {*first}, key=str)]
    # Each collection of an imported graph has separate objects for the same variables.
    parts = {part.op.name: part for key in keys for part in _listed(graph, key)}
    trained = {part.op.name for part in _listed(graph, tf.GraphKeys.TRAINABLE_VARIABLES)}
    wholes: dict[str, list[tf.Variable]] = {}
    for part in parts.values():
        wholes.setdefault(_name(part), []).append(part)
    return [
        GraphVariable(
            name,
            tuple(sorted(members, key=_offset)),
            any(part.trainable or part.op.name in trained for part in members),
        )
        for name, members in wholes.items()
    ]


def _listed(graph: tf.Graph, key: Any) -> Iterable[tf.Variable]:
    return (each for each in graph.get_collection(key) if isinstance(each, Variable))


def _parts(variable: Any) -> tuple[Any, ...]:
    # TensorFlow has no public name for the class of partitioned variables.
    single = isinstance(variable, Variable | tf.Tensor | str) or not isinstance(variable, Iterable)
    return (variable,) if single else tuple(variable)


def _name(part: tf.Variable) -> str:
    piece = _slice(part)
    return str(part.op.name if piece is None else piece.full_name)


def _offset(part: tf.Variable) -> tuple[int, ...]:
    piece = _slice(part)
    return () if piece is None else tuple(piece.var_offset)


def _slice(part: tf.Variable) -> Any:
    # Its public form, `to_proto()`, fails with eager execution.
    return part._get_save_slice_info()


def open_graph(graph: tf.Graph | None, doing: str) -> tf.Graph:
    """The graph, or the default one; raises InvalidArgument if it is finalized."""
    graph = tf.get_default_graph() if graph is None else graph
    if not isinstance(graph, tf.Graph):
        raise InvalidArgument(
            f"Could not {doing}: expected graph= a tf.Graph, got {type(graph).__name__}. Leave it "
            f"out for the default graph."
        )
    if graph.finalized:
        raise InvalidArgument(
            f"Could not {doing}: expected a graph that accepts operations, got a finalized one. "
            f"Build them before the session: a MonitoredTrainingSession finalizes its graph."
        )
    return graph


def one_graph(elements: Iterable[Any], graph: tf.Graph, doing: str) -> None:
    """Raises InvalidArgument for tensors, operations and variables of another graph."""
    for element in elements:
        if _outermost(getattr(element, "graph", graph)) is not _outermost(graph):
            raise InvalidArgument(
                f"Could not {doing}: expected tensors and variables of one graph, got "
                f"{element.name!r} of another one. Build everything in the same tf.Graph."
            )


def innermost(graph: tf.Graph) -> tf.Graph:
    """The graph to build in: that of the body while a branch or loop of this graph is built."""
    current = tf.get_default_graph()
    return current if _outermost(current) is graph else graph


def _outermost(graph: tf.Graph) -> tf.Graph:
    while graph.building_function:
        graph = graph.outer_graph
    return graph
