"""The calls of a network: their traces, and the state that these take."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import tensorflow as tf

from tb_pastnet.errors import InvalidArgument
from tb_pastnet.keras.graphs.callable_network import Source, found_of, free_name
from tb_pastnet.keras.graphs.trace import STATE, Capture, Trace, Tracer
from tb_pastnet.keras.model.walk import Found, tf_variable
from tb_pastnet.keras.past.replicas import copies, primary


class Calls:
    """Traces a network and sorts what it captures. TensorFlow doesn't save it.

    Args:
        source: the network.
        share: state that is used as it is.

    Attributes:
        name: of the network in errors.

    Raises:
        InvalidArgument: what is shared isn't state.
    """

    def __init__(self, source: Source, share: Iterable[Any] = ()) -> None:
        self.name = source.name
        self._source = source
        self._tracer = Tracer(source.call, source.name)
        # The tensors themselves too, so that no other can get their `id`.
        self._shared = {id(one): one for shared in share for one in _handles(shared)}
        # Of a variable in several replicas the first has the past, and no other is read.
        for found in source.variables.values():
            self._shared |= {id(one.handle): one.handle for one in copies(found.variable)[1:]}

    def trace(self, args: Any, kwargs: Any) -> tuple[Trace, list[Any]]:
        """As `Tracer.trace`, with the network's own defaults."""
        called = {**self._source.defaults, **kwargs}
        for name, default in self._source.defaults.items():
            called[name] = default if called[name] is None else called[name]
        return self._tracer.trace(args, called)

    def first_trace(self, example: Any) -> Trace | None:
        """What is found before the network is called, where its inputs are known.

        Args:
            example: of the user; None for none.
        """
        if example is not None:
            return self.trace(example if isinstance(example, tuple) else (example,), {})[0]
        return None if self._source.inputs is None else self.trace(*self._source.inputs)[0]

    def variables(self, trace: Trace | None) -> dict[str, Found]:
        """All variables that are known so far, by name, without those that are shared."""
        named = {
            name: found
            for name, found in self._source.variables.items()
            if id(primary(found.variable).handle) not in self._shared
        }
        known = {id(primary(found.variable)) for found in named.values()}
        for capture in self.state_of(trace) if trace is not None else ():
            if id(capture.variable) not in known and not self.shares(capture):
                found = found_of(capture.variable)
                named[free_name(found.id, named)] = found
        return named

    def handles(self, trace: Trace | None) -> set[int]:
        """By `id`, the handles of all variables that are known so far."""
        return {id(primary(one.variable).handle) for one in self.variables(trace).values()}

    def state_of(self, trace: Trace) -> list[Capture]:
        """The variables that a trace captures.

        Raises:
            InvalidArgument: it captures other state, which isn't shared.
        """
        state = []
        for capture in trace.captures:
            if capture.tensor.dtype not in STATE:
                continue
            if capture.variable is not None:
                state.append(capture)
            elif not self.shares(capture):
                raise InvalidArgument(
                    f"Could not take {self.name} as a network: expected variables as its state, "
                    f"got {capture.name}. Call it before the network, or pass the object in "
                    f"share= to use it as it is."
                )
        return state

    def shares(self, capture: Capture) -> bool:
        """Whether the network is to take this as it is."""
        return id(capture.tensor) in self._shared


def _handles(shared: Any) -> list[Any]:
    variable = tf_variable(shared)
    found = list(_resources(shared)) if variable is None else [primary(variable).handle]
    if not found:
        shown = " ".join(repr(shared).split())
        raise InvalidArgument(
            f"Could not share a {type(shared).__name__}: expected a variable, a lookup table, an "
            f"iterator, or a layer that owns one, got {shown:.80}. Pass the object that owns the "
            f"state."
        )
    return found


def _resources(owner: Any, depth: int = 2) -> Iterator[Any]:
    """The handles among an object's attributes, also of what a layer owns."""
    for value in getattr(owner, "__dict__", {}).values() if depth else ():
        if isinstance(value, tf.Tensor):
            if value.dtype in STATE:
                yield value
        else:
            yield from _resources(value, depth - 1)
