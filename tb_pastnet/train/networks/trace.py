"""Traces a network, and calls the trace with other state in the place of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from tb_pastnet.errors import InvalidArgument
from tb_pastnet.train.networks.uses import READS, uses

STATE = (tf.resource,)
"""The dtype of variables, lookup tables and iterators."""


class Capture(NamedTuple):
    """A tensor that a trace took from outside.

    Attributes:
        tensor: what was taken: of a variable its handle.
        variable: the tf.Variable, or None.
        name: of the variable, or of the place in the graph.
        uses: the operations that take it.
    """

    tensor: Any
    variable: Any
    name: str
    uses: frozenset[str]

    @property
    def written(self) -> bool:
        """Whether calling the trace may change it."""
        return not self.uses <= READS


class Trace:
    """A network as a graph, for inputs of one signature.

    Args:
        concrete: the ConcreteFunction, whose inputs are flat.

    Attributes:
        captures: what it takes from outside, in its own order.

    Raises:
        InvalidArgument: one of its variables was deleted.
    """

    def __init__(self, concrete: Any) -> None:
        self._concrete = concrete
        try:
            variables = {id(variable.handle): variable for variable in concrete.graph.variables}
        except AssertionError:
            # What TensorFlow raises where a variable is gone.
            raise _deleted() from None
        captured = list(zip(concrete.captured_inputs, uses(concrete), strict=True))
        places = concrete.inputs[len(concrete.inputs) - len(captured) :]
        self.captures = tuple(
            _capture(tensor, variables.get(id(tensor)), place, found)
            for (tensor, found), place in zip(captured, places, strict=True)
        )

    def call(self, inputs: Sequence[Any], state: Mapping[int, Any]) -> Any:
        """Calls it without gradients.

        Args:
            inputs: the tensors of the signature, flat.
            state: by `id` of what was captured, what takes its place; a capture that isn't in here
                stays as it is.

        Returns:
            What the network returns.
        """
        own = [state.get(id(capture.tensor), capture.tensor) for capture in self.captures]
        # Gradients would ask for the function's backward pass, which it doesn't have.
        arguments = [tf.stop_gradient(tensor) for tensor in inputs] + own
        expected = self._concrete.outputs
        found = tf.raw_ops.StatefulPartitionedCall(
            args=arguments, Tout=[tensor.dtype for tensor in expected], f=self._concrete
        )
        results = iter([_shaped(a, b) for a, b in zip(found, expected, strict=True)])
        structure = self._concrete.structured_outputs
        flat = tf.nest.flatten(structure, expand_composites=True)
        values = [next(results) if isinstance(leaf, tf.Tensor) else leaf for leaf in flat]
        return tf.nest.pack_sequence_as(structure, values, expand_composites=True)


class Tracer:
    """Traces a network anew for each signature of its inputs.

    Args:
        function: the network, called with the arguments of `trace`.
        name: of the network in errors.
    """

    def __init__(self, function: Callable[..., Any], name: str) -> None:
        self._function = function
        self._name = name
        self._functions: dict[Any, Any] = {}
        self._traces: dict[int, Trace] = {}

    def trace(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[Trace, list[Any]]:
        """The trace for some arguments, and their tensors.

        Args:
            args: tensors, arrays, TensorSpecs, nests of them, or values that are part of the
                signature.
            kwargs: likewise.

        Raises:
            InvalidArgument: the network doesn't take these, or a variable of it was deleted.
        """
        structure = (tuple(args), dict(kwargs))
        leaves = [_tensor_of(leaf) for leaf in tf.nest.flatten(structure)]
        parts = [_part(leaf) for leaf in leaves]
        tensors = [
            tensor
            for leaf, part in zip(leaves, parts, strict=True)
            if isinstance(part, tf.TypeSpec)
            for tensor in tf.nest.flatten(leaf, expand_composites=True)
        ]
        try:
            function = self._flat(structure, parts)
            with tf.init_scope():
                specs = [tf.TensorSpec(tensor.shape, tensor.dtype) for tensor in tensors]
                concrete = function.get_concrete_function(*specs)
        except AssertionError as error:
            raise (_deleted() if "deleted" in str(error) else error) from None
        except (TypeError, ValueError) as error:
            shown = ", ".join(f"{one.dtype.name} {one.shape}" for one in tensors) or "none"
            raise InvalidArgument(
                f"Could not trace {self._name}: expected inputs that it takes, got {shown}. {error}"
            ) from error
        if id(concrete) not in self._traces:
            self._traces[id(concrete)] = Trace(concrete)
        return self._traces[id(concrete)], tensors

    def _flat(self, structure: Any, parts: Sequence[Any]) -> Any:
        # The pattern holds no tensor, or the first batch would never be freed.
        pattern = tf.nest.pack_sequence_as(structure, [0] * len(parts))
        # By type too: 1, 1.0 and True are equal, but not to a network.
        key = (repr(pattern), tuple((type(part), part) for part in parts))
        if key not in self._functions:

            def flat(*tensors: Any) -> Any:
                rest = iter(tensors)
                leaves = [_packed(part, rest) for part in parts]
                args, kwargs = tf.nest.pack_sequence_as(pattern, leaves)
                return self._function(*args, **kwargs)

            self._functions[key] = tf.function(flat, autograph=False, reduce_retracing=True)
        return self._functions[key]


_DENSE = tf.TensorSpec(None)
"""Stands for any tensor: its dtype and shape are up to the tf.function."""


def _tensor_of(leaf: Any) -> Any:
    return tf.convert_to_tensor(leaf) if isinstance(leaf, np.ndarray | np.generic) else leaf


def _part(leaf: Any) -> Any:
    """The part of a signature that an argument is."""
    if isinstance(leaf, tf.Tensor | tf.TensorSpec | tf.Variable):
        return _DENSE
    if isinstance(leaf, tf.RaggedTensor | tf.SparseTensor):
        return tf.type_spec_from_value(leaf)
    return leaf


def _packed(part: Any, rest: Iterator[Any]) -> Any:
    """The argument again: the next tensors, or the value itself."""
    if part is _DENSE:
        return next(rest)
    if isinstance(part, tf.TypeSpec):
        components = [next(rest) for _ in tf.nest.flatten(part, expand_composites=True)]
        return tf.nest.pack_sequence_as(part, components, expand_composites=True)
    return part


def _capture(tensor: Any, variable: Any, place: Any, found: frozenset[str]) -> Capture:
    name = place.op.name if variable is None else variable.name.partition(":")[0]
    return Capture(tensor, variable, name, found)


def _shaped(result: Any, expected: Any) -> Any:
    # In a graph the operation doesn't know the shapes of what the function returns.
    if not tf.executing_eagerly():
        result.set_shape(expected.shape)
    return tf.stop_gradient(result) if result.dtype not in STATE else result


def _deleted() -> InvalidArgument:
    return InvalidArgument(
        "Could not trace a network: expected its variables to exist, got one that was deleted. "
        "Keep the object that owns the variables for as long as the network is used."
    )
