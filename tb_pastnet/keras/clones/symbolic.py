"""Keras's graph of symbolic tensors: from some of them to others."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import keras

from tb_pastnet.errors import InvalidArgument
from tb_pastnet.keras.graphs.nodes import Nest


class SymbolicPart(NamedTuple):
    """A part of a network: two nests of KerasTensors, and the calls between them in order."""

    inputs: Nest
    outputs: Nest
    calls: tuple[Any, ...]

    def run(self, inputs: Nest, call: Callable[[Any, Any, Any], Any]) -> Any:
        """Computes the outputs from other inputs; `call` gets operation, args and kwargs."""
        flat = (keras.tree.flatten(self.inputs), keras.tree.flatten(inputs))
        values = dict(zip(map(id, flat[0]), flat[1], strict=True))

        def replaced(leaf: object) -> Any:
            return values.get(id(leaf), leaf)

        for node in self.calls:
            args = keras.tree.map_structure(replaced, node.arguments.args)
            kwargs = keras.tree.map_structure(replaced, node.arguments.kwargs)
            results = keras.tree.flatten(call(node.operation, args, kwargs))
            values.update(zip(map(id, node.outputs), results, strict=True))
        return keras.tree.map_structure(replaced, self.outputs)


class PartLayer(keras.layers.Layer):
    """A part of a network, called like a model of it. Making a model would change its layers."""

    def __init__(self, part: SymbolicPart) -> None:
        super().__init__(name="network", autocast=False, dtype="float32")
        self._part = (part,)
        self.built = True

    def call(self, inputs: Nest, training: bool | None = None) -> Any:
        """Computes the outputs of the part."""

        def call(operation: keras.Operation, args: Any, kwargs: Any) -> Any:
            layer = isinstance(operation, keras.layers.Layer) and training is not None
            if layer and "training" in inspect.signature(operation.call).parameters:
                kwargs = {**kwargs, "training": training}
            return operation(*args, **kwargs)

        return self._part[0].run(inputs, call)


def part_between(inputs: Nest, outputs: Nest, *, unused: bool = False) -> SymbolicPart:
    """Finds the calls that lead from symbolic tensors to others; `unused` inputs may be allowed."""
    starts = _checked(inputs, "inputs")
    ends = _checked(outputs, "outputs")
    for number, tensor in enumerate(starts):
        if any(tensor is other for other in starts[:number]):
            raise InvalidArgument(
                f"Could not clone a network: expected each input once, got {_shown(tensor)} twice. "
                f"Leave one out."
            )
    calls, reached, lacking = _walk(starts, ends)
    if lacking:
        raise _cut(starts, ends, lacking)
    left = [_shown(tensor) for tensor in starts if id(tensor) not in reached]
    if left and not unused:
        raise InvalidArgument(
            "Could not clone a network: expected only inputs that its outputs need, got "
            f"{', '.join(left)}, which none needs. Leave it out, or add the output that it leads "
            "to."
        )
    return SymbolicPart(inputs, outputs, calls)


def origin(tensor: keras.KerasTensor) -> Any:
    """The call that made a KerasTensor; None for one made by hand."""
    # There is no public access to the connections of Keras's symbolic tensors.
    history = getattr(tensor, "_keras_history", None)
    if history is None or history.operation is None:
        return None
    return history.operation._inbound_nodes[history.node_index]


def _walk(
    starts: Sequence[keras.KerasTensor], ends: Sequence[keras.KerasTensor]
) -> tuple[tuple[Any, ...], set[int], dict[int, Any]]:
    """The calls in order, the inputs that they take, and the missing inputs."""
    inputs = {id(tensor) for tensor in starts}
    reached: set[int] = set()
    done: set[int] = set()
    lacking: dict[int, Any] = {}
    calls: dict[int, Any] = {}
    stack = list(reversed(ends))
    # Not by recursion: networks may be deeper than Python's stack.
    while stack:
        tensor = stack[-1]
        call = origin(tensor)
        if id(tensor) in inputs:
            reached.add(id(tensor))
        elif call is None or call.is_input:
            lacking[id(tensor)] = tensor
        else:
            missing = [each for each in call.input_tensors if id(each) not in done]
            if missing:
                stack.extend(reversed(missing))
                continue
            calls[id(call)] = call
        done.add(id(tensor))
        stack.pop()
    return tuple(calls.values()), reached, lacking


def _checked(tensors: Nest, word: str) -> list[Any]:
    flat: list[Any] = keras.tree.flatten(tensors)
    if not flat:
        raise InvalidArgument(
            f"Could not clone a network: expected KerasTensors as {word}, got none. Pass at least "
            f"one."
        )
    for tensor in flat:
        if not isinstance(tensor, keras.KerasTensor):
            raise InvalidArgument(
                f"Could not clone a network: expected KerasTensors as {word}, got a "
                f"{type(tensor).__name__}. Pass symbolic tensors, such as model.inputs and "
                f"layer.output, or a function."
            )
    return flat


def _cut(
    starts: Sequence[keras.KerasTensor],
    ends: Sequence[keras.KerasTensor],
    lacking: Mapping[int, keras.KerasTensor],
) -> InvalidArgument:
    for output in ends:
        _, reached, needed = _walk(starts, [output])
        if needed and not reached:
            return InvalidArgument(
                f"Could not clone a network: expected outputs that are computed from the inputs "
                f"{', '.join(map(_shown, starts))}, got {_shown(output)}, which needs only "
                f"{', '.join(map(_shown, needed.values()))}. Pass tensors of one network."
            )
    return InvalidArgument(
        f"Could not clone a network: expected all inputs that its outputs need, got none for "
        f"{', '.join(map(_shown, lacking.values()))}. Add it to inputs."
    )


def _shown(tensor: keras.KerasTensor) -> str:
    call = origin(tensor)
    name = tensor.name if call is None else call.operation.name
    return f"{name!r} of shape {tuple(tensor.shape)}"
