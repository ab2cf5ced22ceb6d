"""The calls of a network: their traces, and the state that these take."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import tensorflow as tf

from tb_pastnet.errors import InvalidArgument
from tb_pastnet.keras.graphs.callable_network import CallableNetwork, free_name, variable_entry
from tb_pastnet.keras.graphs.trace import STATE, Capture, Trace, Tracer
from tb_pastnet.keras.model.walk import Found, tf_variable
from tb_pastnet.keras.past.replicas import copies, primary


class NetworkCalls:
    """Traces a network and sorts what it captures. TensorFlow doesn't save it.

    Raises:
        InvalidArgument: what is shared isn't state.
    """

    def __init__(self, network: CallableNetwork, share: Iterable[Any] = ()) -> None:
        self.name = network.name
        self._network = network
        self._tracer = Tracer(network.call, network.name)
        # The tensors themselves too, so that no other can get their `id`.
        self._shared = {id(handle): handle for owner in share for handle in _handles(owner)}
        # Of a variable in several replicas the first has the past, and no other is read.
        for entry in network.variables.values():
            self._shared |= {id(copy.handle): copy.handle for copy in copies(entry.variable)[1:]}

    def trace(
        self, args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> tuple[Trace, list[tf.Tensor]]:
        """As `Tracer.trace`, with the network's own defaults."""
        called = {**self._network.defaults, **kwargs}
        for name, default in self._network.defaults.items():
            called[name] = default if called[name] is None else called[name]
        return self._tracer.trace(args, called)

    def first_trace(self, example: Any = None) -> Trace | None:
        """A trace for the user's example, or for the inputs of the network where it knows them."""
        if example is not None:
            return self.trace(example if isinstance(example, tuple) else (example,), {})[0]
        return None if self._network.inputs is None else self.trace(*self._network.inputs)[0]

    def variables(self, trace: Trace | None) -> dict[str, Found]:
        """All variables that are seen so far, by name, without those that are shared."""
        named = {
            name: entry
            for name, entry in self._network.variables.items()
            if id(primary(entry.variable).handle) not in self._shared
        }
        listed = {id(primary(entry.variable)) for entry in named.values()}
        for capture in self.state_of(trace) if trace is not None else ():
            if id(capture.variable) not in listed and not self.shares(capture):
                entry = variable_entry(capture.variable)
                named[free_name(entry.id, named)] = entry
        return named

    def handles(self, trace: Trace | None) -> set[int]:
        """By `id`, the handles of all variables that are seen so far."""
        return {id(primary(entry.variable).handle) for entry in self.variables(trace).values()}

    def state_of(self, trace: Trace) -> list[Capture]:
        """The variables that a trace captures.

        Raises:
            InvalidArgument: it captures other state, which isn't shared.
        """
        state = []
        for capture in trace.captures:
            if not capture.is_state:
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


def _handles(shared: object) -> list[tf.Tensor]:
    variable = tf_variable(shared)
    handles = list(_resources(shared)) if variable is None else [primary(variable).handle]
    if not handles:
        shown = " ".join(repr(shared).split())
        raise InvalidArgument(
            f"Could not share a {type(shared).__name__}: expected a variable, a lookup table, an "
            f"iterator, or a layer that owns one, got {shown:.80}. Pass the object that owns the "
            f"state."
        )
    return handles


def _resources(owner: object, depth: int = 2) -> Iterator[tf.Tensor]:
    """The handles among an object's attributes, also of what a layer owns."""
    for value in getattr(owner, "__dict__", {}).values() if depth else ():
        if isinstance(value, tf.Tensor):
            if value.dtype in STATE:
                yield value
        else:
            yield from _resources(value, depth - 1)
