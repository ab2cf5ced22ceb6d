"""The graph that Keras keeps of its symbolic tensors: from some of them to others."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import keras

from tb_pastnet.errors import InvalidArgument


class Part(NamedTuple):
    """A part of a network between symbolic tensors.

    Attributes:
        inputs: one KerasTensor, or a nest of them.
        outputs: likewise.
        calls: of layers and operations, in an order in which they can be made.
    """

    inputs: Any
    outputs: Any
    calls: tuple[Any, ...]

    def run(self, inputs: Any, call: Callable[[Any, Any, Any], Any]) -> Any:
        """Computes the outputs from other inputs.

        Args:
            inputs: a nest like that of the part's own inputs.
            call: gets an operation, and args and kwargs in which each symbolic tensor is replaced.

        Returns:
            A nest like that of the part's own outputs.
        """
        made = dict(
            zip(map(id, keras.tree.flatten(self.inputs)), keras.tree.flatten(inputs), strict=True)
        )

        def replaced(leaf: Any) -> Any:
            return made.get(id(leaf), leaf)

        for one in self.calls:
            args = keras.tree.map_structure(replaced, one.arguments.args)
            kwargs = keras.tree.map_structure(replaced, one.arguments.kwargs)
            results = keras.tree.flatten(call(one.operation, args, kwargs))
            made.update(zip(map(id, one.outputs), results, strict=True))
        return keras.tree.map_structure(replaced, self.outputs)


def part_between(inputs: Any, outputs: Any, *, unused: bool = False) -> Part:
    """Finds the calls that lead from some symbolic tensors to others.

    Args:
        inputs: one KerasTensor, or a nest of them.
        outputs: likewise.
        unused: whether an input may be one that no output needs.

    Raises:
        InvalidArgument: one isn't a KerasTensor, the outputs need more than these inputs, or less.
    """
    given = _checked(inputs, "inputs")
    wanted = _checked(outputs, "outputs")
    _refuse_twice(given)
    calls, reached, lacking = _walk(given, wanted)
    if lacking:
        raise _cut(given, wanted, lacking)
    left = [_shown(tensor) for tensor in given if id(tensor) not in reached]
    if left and not unused:
        raise InvalidArgument(
            f"Could not clone a network: expected inputs that its outputs need, got "
            f"{', '.join(left)}, which none of them does. Leave it out, or add the output that it "
            f"leads to."
        )
    return Part(inputs, outputs, calls)


def origin(tensor: Any) -> Any:
    """The call that made a KerasTensor; None of one that is made by hand."""
    # No public name tells how Keras's symbolic tensors hang together.
    history = getattr(tensor, "_keras_history", None)
    if history is None or history.operation is None:
        return None
    return history.operation._inbound_nodes[history.node_index]


def _walk(
    given: Sequence[Any], wanted: Sequence[Any]
) -> tuple[tuple[Any, ...], set[int], dict[int, Any]]:
    """The calls in order, which inputs they take, and the inputs that are lacking."""
    known = {id(tensor) for tensor in given}
    reached: set[int] = set()
    lacking: dict[int, Any] = {}
    calls: dict[int, Any] = {}
    stack = list(reversed(wanted))
    # Not by recursion: networks may be deeper than Python's stack.
    while stack:
        tensor = stack[-1]
        call = origin(tensor)
        if id(tensor) in known:
            reached.add(id(tensor))
        elif call is None or call.is_input:
            lacking[id(tensor)] = tensor
        elif id(call) not in calls:
            before = [one for one in call.input_tensors if not _done(one, known, lacking, calls)]
            if before:
                stack.extend(reversed(before))
                continue
            reached.update(id(one) for one in call.input_tensors if id(one) in known)
            calls[id(call)] = call
        stack.pop()
    return tuple(calls.values()), reached, lacking


def _done(tensor: Any, *known: Iterable[int]) -> bool:
    inputs, lacking, calls = known
    return id(tensor) in inputs or id(tensor) in lacking or id(origin(tensor)) in calls


def _checked(tensors: Any, word: str) -> list[Any]:
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


def _refuse_twice(given: Sequence[Any]) -> None:
    seen: set[int] = set()
    for tensor in given:
        if id(tensor) in seen:
            raise InvalidArgument(
                f"Could not clone a network: expected each input once, got {_shown(tensor)} twice. "
                f"Leave one out."
            )
        seen.add(id(tensor))


def _cut(given: Sequence[Any], wanted: Sequence[Any], lacking: dict[int, Any]) -> InvalidArgument:
    for output in wanted:
        _, reached, needed = _walk(given, [output])
        if needed and not reached:
            return InvalidArgument(
                f"Could not clone a network: expected outputs that are computed from the inputs "
                f"{', '.join(map(_shown, given))}, got {_shown(output)}, which needs only "
                f"{', '.join(map(_shown, needed.values()))}. Pass tensors of one network."
            )
    return InvalidArgument(
        f"Could not clone a network: expected all inputs that its outputs need, got none for "
        f"{', '.join(map(_shown, lacking.values()))}. Add it to inputs."
    )


def _shown(tensor: Any) -> str:
    call = origin(tensor)
    name = tensor.name if call is None else call.operation.name
    return f"{name!r} of shape {tuple(tensor.shape)}"
