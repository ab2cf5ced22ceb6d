"""Traces a network, and calls the trace with other state."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from threading import RLock
from typing import TYPE_CHECKING, Any, NamedTuple

import keras
import numpy as np
import tensorflow as tf

from tb_pastnet.errors import InvalidArgument, PastNetError
from tb_pastnet.keras.graphs.nodes import READS, uses
from tb_pastnet.keras.graphs.reason import reason
from tb_pastnet.keras.model.tf_variable import tf_variable
from tb_pastnet.keras.strategies import outside_strategy

if TYPE_CHECKING:
    from tensorflow.types.experimental import ConcreteFunction

STATE = (tf.resource,)
"""The dtype of variables, lookup tables and iterators."""

_AS_WRITTEN = tf.compat.v1.ConfigProto()
_AS_WRITTEN.graph_options.rewrite_options.disable_meta_optimizer = True
"""Eager operations aren't rewritten either: the results of both are bit-identical."""

_KINDS = {
    "LookupTable": "a lookup table",
    "InitializeTable": "a lookup table",
    "Iterator": "an iterator",
    "Queue": "a queue",
    "Write": "a summary writer",
}
"""Kinds of other state, by the beginning of the names of operations that take it."""

_MASK = "_keras_mask"
"""The attribute in which Keras passes a mask on with its tensor."""

_LIMIT = 64
"""The maximum number of traces for one signature, and of signatures."""


class Capture(NamedTuple):
    """A tensor that a trace took from outside."""

    tensor: Any  # for a variable, its handle
    variable: tf.Variable | None
    name: str  # of the variable; for other state its kind, and the operation that takes it
    uses: frozenset[str]  # the types of operations that take it

    @property
    def is_state(self) -> bool:
        """Whether it isn't a constant."""
        return self.tensor.dtype in STATE

    @property
    def written(self) -> bool:
        """Whether calling the trace may change it."""
        return not self.uses <= READS


class Trace:
    """A network as a graph, for inputs of one signature: a ConcreteFunction with flat inputs."""

    def __init__(self, concrete: ConcreteFunction) -> None:
        self._concrete = concrete
        try:
            variables = {id(variable.handle): variable for variable in concrete.graph.variables}
        except AssertionError:
            # TensorFlow raises this if a variable is gone.
            raise _deleted() from None
        captured = list(zip(concrete.captured_inputs, uses(concrete), strict=True))
        self.captures = tuple(
            Capture(
                tensor,
                variables.get(id(tensor)),
                _name_of(variables.get(id(tensor)), taken),
                frozenset(taken),
            )
            for tensor, taken in captured
        )

    @property
    def written(self) -> list[str]:
        """The names of the variables that calling it may change."""
        return [capture.name for capture in self.captures if capture.written]

    def call(self, inputs: Sequence[Any], state: Mapping[int, Any]) -> Any:
        """What the network returns for flat inputs, without gradients.

        `state` has replacements for captures, by `id`; other captures stay.
        """
        own = [state.get(id(capture.tensor), capture.tensor) for capture in self.captures]
        # Gradients would need the function's backward pass, which it doesn't have.
        arguments = [tf.stop_gradient(tensor) for tensor in inputs] + own
        expected = self._concrete.outputs
        outputs = tf.raw_ops.StatefulPartitionedCall(
            args=arguments,
            Tout=[tensor.dtype for tensor in expected],
            f=self._concrete,
            config_proto=_AS_WRITTEN.SerializeToString() if tf.executing_eagerly() else "",
        )
        results = iter([_shaped(a, b) for a, b in zip(outputs, expected, strict=True)])
        structure = self._concrete.structured_outputs
        flat = tf.nest.flatten(structure, expand_composites=True)
        values = [next(results) if isinstance(leaf, tf.Tensor) else leaf for leaf in flat]
        return tf.nest.pack_sequence_as(structure, values, expand_composites=True)


class Tracer:
    """Traces a network again if none of its traces fits the inputs.

    A trace is made for the first shapes, because many layers need them. If only batch sizes differ,
    the next one is for any size, if the network allows that. Specs with None in their shapes are
    traced as they are.
    """

    def __init__(self, function: Callable[..., Any], name: str) -> None:
        self._function = function
        self._name = name
        self._of_signature = lru_cache(_LIMIT)(lambda _key: _Traces())
        self._lock = RLock()

    def trace(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[Trace, list[Any]]:
        """The trace for some arguments, and their tensors."""
        signature, tensors = _take_apart(args, kwargs)
        with self._lock:
            traces = self._of_signature(signature.key)
            specs = [tf.TensorSpec(tensor.shape, tensor.dtype) for tensor in tensors]
            trace = traces.serving(specs) or self._added(signature, specs, traces)
        return trace, tensors

    def _added(self, signature: _Signature, specs: _Specs, traces: _Traces) -> Trace:
        any_batch, entry = traces.any_batch(specs), None
        if any_batch is not None:
            # It may need the size, or not accept these inputs at all.
            with suppress(InvalidArgument):
                entry = self._traced(signature, any_batch), any_batch
        if entry is None:
            entry = self._traced(signature, specs), specs
            traces.relaxes = traces.relaxes and any_batch is None
        traces.entries.insert(0, entry)
        del traces.entries[_LIMIT:]
        return entry[0]

    def _traced(self, signature: _Signature, specs: _Specs) -> Trace:
        def flat(*inputs: Any) -> Any:
            args, kwargs = signature.arguments(inputs)
            return self._function(*args, **kwargs)

        try:
            with tf.init_scope():
                function = tf.function(flat, input_signature=specs, autograph=False)
                return Trace(function.get_concrete_function())
        except PastNetError:
            raise
        except Exception as error:
            if isinstance(error, AssertionError) and "deleted" in str(error):
                raise _deleted() from None
            shown = ", ".join(f"{spec.dtype.name} {spec.shape}" for spec in specs) or "no tensors"
            raise InvalidArgument(
                f"Could not trace {self._name}: expected valid inputs, got {shown}. {reason(error)}"
            ) from error


_Specs = Sequence[tf.TensorSpec]


class _Traces:
    """The traces for one signature, each with the tensors that it takes."""

    def __init__(self) -> None:
        self.entries: list[tuple[Trace, _Specs]] = []
        self.relaxes = True

    def serving(self, specs: _Specs) -> Trace | None:
        """A trace that takes these tensors."""
        for trace, traced in self.entries:
            if all(spec.is_subtype_of(own) for own, spec in zip(traced, specs, strict=True)):
                return trace
        return None

    def any_batch(self, specs: _Specs) -> _Specs | None:
        """The specs for batches of any size, if batches of other sizes were traced before."""
        for _, traced in self.entries if self.relaxes else ():
            if all(map(_alike, traced, specs)):
                return list(map(_opened, traced, specs))
        return None


def _alike(traced: tf.TensorSpec, spec: tf.TensorSpec) -> bool:
    """Whether only the sizes of the batches may differ."""
    if traced.shape.rank is None or traced.shape.rank != spec.shape.rank:
        return False
    return bool(traced.shape.as_list()[1:] == spec.shape.as_list()[1:])


def _opened(traced: tf.TensorSpec, spec: tf.TensorSpec) -> tf.TensorSpec:
    return tf.TensorSpec(traced.shape.most_specific_compatible_shape(spec.shape), spec.dtype)


def _name_of(variable: tf.Variable | None, taken: Mapping[str, str]) -> str:
    if variable is not None:
        return str(variable.name).partition(":")[0]
    kinds = [kind for kind in _KINDS if any(kind in operation for operation in taken)]
    kind = _KINDS[kinds[0]] if kinds else "state"
    return f"{kind}, used by {next(iter(taken.values()))!r}" if taken else kind


def _shaped(result: tf.Tensor, expected: tf.Tensor) -> tf.Tensor:
    # In a graph the operation lacks the shapes of the function's results.
    if not tf.executing_eagerly():
        result.set_shape(expected.shape)
    return tf.stop_gradient(result) if result.dtype not in STATE else result


def _deleted() -> InvalidArgument:
    return InvalidArgument(
        "Could not trace a network: expected its variables to exist, got one that was deleted. "
        "Keep the object that owns the variables for as long as the network is used."
    )


class _Signature(NamedTuple):
    """The arguments of a call, except for the shapes of dense tensors."""

    key: Hashable  # equal for equivalent arguments
    pattern: Any  # the nest of the arguments, without them
    parts: tuple[Any, ...]  # the arguments in its order, each tensor as its spec
    masked: tuple[int, ...]  # the numbers of those with a mask of Keras

    def arguments(self, tensors: Sequence[Any]) -> tuple[Sequence[Any], Mapping[str, Any]]:
        """The arguments again, with these tensors in them."""
        left = iter(tensors)
        leaves = [_joined(part, left) for part in self.parts]
        for number in self.masked:
            setattr(leaves[number], _MASK, next(left))
        args, kwargs = tf.nest.pack_sequence_as(self.pattern, leaves)
        return args, kwargs


def _take_apart(args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[_Signature, list[Any]]:
    """Splits arguments into a signature, and tensors or TensorSpecs: several for a ragged one."""
    structure = (tuple(args), dict(kwargs))
    leaves = [_tensor_of(leaf) for leaf in tf.nest.flatten(structure)]
    parts = tuple(_part(leaf) for leaf in leaves)
    tensors, masks = [], {}
    for number, (leaf, part) in enumerate(zip(leaves, parts, strict=True)):
        if isinstance(part, tf.TypeSpec):
            tensors += tf.nest.flatten(leaf, expand_composites=True)
        if isinstance(part, tf.TensorSpec) and getattr(leaf, _MASK, None) is not None:
            masks[number] = getattr(leaf, _MASK)
    # The pattern holds no tensor, or the first batch would never be freed.
    pattern = tf.nest.pack_sequence_as(structure, [0] * len(parts))
    # By type too: 1, 1.0 and True are equal, but not to a network.
    key = (repr(pattern), tuple((type(part), part) for part in parts), tuple(masks))
    return _Signature(key, pattern, parts, tuple(masks)), [*tensors, *masks.values()]


def _tensor_of(leaf: object) -> Any:
    if isinstance(leaf, keras.KerasTensor):
        raise InvalidArgument(
            f"Could not call a past network: expected values, got {leaf!r:.80}. Inside of a "
            f"functional model, call it in the `call` of a layer."
        )
    if (variable := tf_variable(leaf)) is not None:
        return tf.convert_to_tensor(variable)
    return tf.convert_to_tensor(leaf) if isinstance(leaf, np.ndarray | np.generic) else leaf


def _part(leaf: object) -> Any:
    if isinstance(leaf, tf.Tensor | tf.TensorSpec):
        return tf.TensorSpec(None, leaf.dtype)
    if isinstance(leaf, tf.TypeSpec):
        return _any_batch(leaf)
    if tf.is_tensor(leaf) or isinstance(leaf, tf.experimental.ExtensionType):
        return _any_batch(tf.type_spec_from_value(leaf))
    try:
        hash(leaf)
    except TypeError:
        raise InvalidArgument(
            f"Could not call a past network: expected tensors and hashable values, got "
            f"{leaf!r:.80}. Pass a {type(leaf).__name__} as a tensor, or as a tuple."
        ) from None
    return leaf


def _any_batch(spec: tf.TypeSpec) -> tf.TypeSpec:
    """With the batch size left open, if it has one."""
    if isinstance(spec, tf.RaggedTensorSpec) and spec.shape.rank:
        shape = [None, *spec.shape[1:]]
        return tf.RaggedTensorSpec(
            shape, spec.dtype, spec.ragged_rank, spec.row_splits_dtype, spec.flat_values_spec
        )
    if isinstance(spec, tf.SparseTensorSpec) and spec.shape.rank:
        return tf.SparseTensorSpec([None, *spec.shape[1:]], spec.dtype)
    return spec


def _joined(part: object, left: Iterator[tf.Tensor]) -> Any:
    if not isinstance(part, tf.TypeSpec):
        return part
    components = [next(left) for _ in tf.nest.flatten(part, expand_composites=True)]
    return tf.nest.pack_sequence_as(part, components, expand_composites=True)


class TemporaryVariable:
    """Replaces a variable; without memory between calls, unless it is kept.

    XLA can't compile filling an empty one: it can't change the shape of a variable.
    """

    def __init__(
        self, variable: tf.Variable, name: str = "pastnet_stand_in", *, kept: bool = False
    ) -> None:
        self.current = variable
        self._kept = kept
        with tf.init_scope():
            self._nothing = tf.zeros([0], variable.dtype)
            initial = variable.read_value() if kept else self._nothing
            # Only without its own shape can it be emptied.
            shape = variable.shape if kept else tf.TensorShape(None)

            def make() -> tf.Variable:
                with tf.device(variable.device):
                    return tf.Variable(initial, trainable=False, shape=shape, name=name)

            self.variable = outside_strategy(make)

    def fill(self, value: tf.Tensor) -> Any:
        """Sets the value; returns the operation, None when eager."""
        return self.variable.assign(value, read_value=False)

    def empty(self) -> None:
        """Frees the memory that isn't kept."""
        if not self._kept:
            self.variable.assign(self._nothing, read_value=False)


class Scratch:
    """Receives a network's writes, so current values stay; TensorFlow doesn't save it."""

    def __init__(self, *, kept: bool) -> None:
        self._kept = kept
        self._copies: dict[int, TemporaryVariable] = {}

    @property
    def nbytes(self) -> int:
        """Bytes that the copies take."""
        copies = [copy.variable for copy in self._copies.values()]
        return sum(int(tf.size(copy)) * copy.dtype.size for copy in copies)

    def add(self, variable: tf.Variable) -> None:
        """Adds a copy of a tf.Variable."""
        copy = TemporaryVariable(variable, "scratch", kept=self._kept)
        self._copies[id(variable.handle)] = copy

    def filled(self, trace: Trace) -> dict[int, Any]:
        """Handles of filled copies, by `id` of the current handles that a trace writes to."""
        handles = {}
        for capture in trace.captures:
            if capture.written and id(capture.tensor) in self._copies:
                copy = self._copies[id(capture.tensor)]
                copy.fill(copy.current.read_value())
                handles[id(capture.tensor)] = copy.variable.handle
        return handles

    def empty(self) -> None:
        """Frees the memory that isn't kept."""
        for copy in self._copies.values():
            copy.empty()
