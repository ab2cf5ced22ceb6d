"""The past of a network, called like the network itself."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any
from weakref import WeakSet

import keras
import tensorflow as tf

from tb_pastnet.core.arguments import answered
from tb_pastnet.core.subject import KERAS, check_subject
from tb_pastnet.errors import InvalidArgument
from tb_pastnet.keras.graphs.callable_network import (
    CallableNetwork,
    callable_network,
    variable_entry,
)
from tb_pastnet.keras.graphs.trace import STATE, Capture, Scratch, Trace, Tracer
from tb_pastnet.keras.model.tf_variable import tf_variable
from tb_pastnet.keras.model.walk import Found
from tb_pastnet.keras.model.weights import free_name, names_in
from tb_pastnet.keras.past.past_deltas import PastDeltas
from tb_pastnet.keras.past.past_variables import PastVariables, Shadows
from tb_pastnet.keras.strategies import copies, primary, replicated


@answered
class PastNetwork(tf.Module):
    """A network as it was at the last sync, next to the current one, on the same input.

    `past(x)` is what the network would return with its past values. No gradient flows through it,
    and it leaves the network unchanged, including BatchNormalization statistics, seeds and RNN
    states. It works eagerly, in a tf.function, under XLA and in mixed precision, inside a training
    step, and with a `tf.train.Checkpoint`. See
    https://tb-pastnet.github.io/tb_pastnet/how_to/past_networks.html.

    The network is traced once for each signature of its inputs, and that trace is called with
    shadow variables instead of those that it captured. Its writes (with `training=True` the
    statistics) go to the past's own copies, until the next sync; for variables whose past isn't
    kept they are lost after the call.

    A trace is for one shape of inputs at first, and for batches of any size after a second size. A
    functional model is traced for all its valid shapes, and so is an `example` with a
    tf.TensorSpec: `tf.TensorSpec([None, None, 8])` serves sequences of any length. Eagerly, outputs
    are bit-identical to the network's; in a tf.function TensorFlow may round differently.

    Args:
        network: a built keras.Model or layer, a tf.Module, a tf.function, a ConcreteFunction, or a
            function of a loaded SavedModel.
        past: the shadow variables to use, for example `PastVariables` of some of the network's
            variables, or `PastDeltas`. None: its own.
        variables: the variables whose past is kept, as names, patterns such as `"*/kernel"`, or
            variables; for others, current values are used. None: all.
        example: a batch, or a tuple of arguments, as tensors or tf.TensorSpecs: finds at once the
            variables that a function or subclassed model reads but doesn't list.
        share: variables, and other state such as a lookup table, or the layer, model or
            FeatureSpace that owns it, to use as they are. Reading from a shared iterator advances
            it.

    Attributes:
        past: the shadow variables.

    Raises:
        InvalidArgument: the model isn't built, the network can't be called, a variable was deleted,
            it has other state than variables, or none, or the past is of another network.
        UnknownName: a name fits no variable, or several.

    Example:
        >>> import keras, numpy as np
        >>> model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1, use_bias=False)])
        >>> model.set_weights([np.array([[2.0]])])
        >>> past = PastNetwork(model)
        >>> model.set_weights([np.array([[5.0]])])
        >>> x = tf.constant([[10.0]])
        >>> model(x).numpy().item(), past(x).numpy().item()
        (50.0, 20.0)
        >>> past.sync()
        >>> past(x).numpy().item()
        50.0
    """

    def __init__(
        self,
        network: Any,
        past: PastVariables | PastDeltas | None = None,
        *,
        variables: Iterable[Any] | None = None,
        example: Any = None,
        share: Iterable[Any] = (),
    ) -> None:
        super().__init__()
        check_subject(network, KERAS, "keep the past of", "network")
        if past is not None and variables is not None:
            raise InvalidArgument(
                "Could not make a past network: expected past= or variables=, got both. "
                "PastVariables already have their variables."
            )
        if not isinstance(past, Shadows | None):
            raise InvalidArgument(
                f"Could not make a past network: expected past= PastVariables or PastDeltas, got "
                f"{type(past).__name__}. Leave past= out, and it makes its own."
            )
        self._calls = _Calls(callable_network(network), share)
        self._complete = past is None and variables is None
        self._unproven = False
        self._scratch = Scratch(kept=True)
        self._checked: WeakSet[Trace] = WeakSet()
        trace = self._calls.first_trace(example)
        self.past = self._own_past(trace, variables) if past is None else self._past_of(trace, past)
        if any(isinstance(each, tf.distribute.DistributedValues) for each in self.past.variables):
            raise InvalidArgument(
                f"Could not make a past network of {self._calls.name}: expected one copy of its "
                f"variables, got one a replica. Make it, or its PastVariables, outside of "
                f"strategy.scope()."
            )
        if trace is not None:
            self._check(trace)

    @property
    def nbytes(self) -> int:
        """Bytes that the past takes."""
        return self.past.nbytes + self._scratch.nbytes

    @tf.autograph.experimental.do_not_convert
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Returns what the network would return with its past values, without gradients.

        For a Keras model `training` is False unless it is given.

        Raises:
            InvalidArgument: the network doesn't accept these inputs, or turns out to have state
                without a past.
        """
        trace, tensors = self._calls.trace(args, kwargs)
        self._check(trace)
        if trace.written and replicated():
            raise InvalidArgument(
                f"Could not call the past of {self._calls.name} in a replica: expected one that "
                f"writes nothing, got one that writes {trace.written[0]!r}, which replicas share. "
                "Call it with training=False, or outside of strategy.run."
            )
        with self.past.standing_in() as state:
            return trace.call(tensors, {**self._scratch.filled(trace), **state})

    @tf.autograph.experimental.do_not_convert
    def sync(self, tau: float | Any = 1.0, *, statistics: bool = False) -> None:
        """Moves the past values towards the current ones, like `PastVariables.sync`.

        Raises:
            InvalidArgument: a number outside of 0 to 1, or called in one of several replicas.
        """
        self._check_alone()
        self.past.sync(tau, statistics=statistics)

    @contextmanager
    def step(self) -> Iterator[None]:
        """A context for an update: afterwards the past is the network before it."""
        self._check_alone()
        with self.past.step():
            yield

    def __reduce__(self) -> tuple[Any, ...]:
        raise InvalidArgument(
            f"Could not copy or pickle the past of {self._calls.name}: expected the network, got "
            "its PastNetwork. Make a PastNetwork of the copied network, and assign the past values."
        )

    def __repr__(self) -> str:
        return f"<PastNetwork of {self._calls.name}, {self.nbytes:,} bytes>"

    def _own_past(self, trace: Trace | None, variables: Iterable[Any] | None) -> PastVariables:
        named = self._calls.variables(trace)
        if not named:
            got = "no example to find them by" if trace is None else "none"
            raise InvalidArgument(
                f"Could not make a past network of {self._calls.name}: expected variables, got "
                f"{got}. Pass example=, a batch or a tuple of its arguments."
            )
        if variables is not None:
            named = {name: named[name] for name in names_in(named).all(variables)}
        return PastVariables({name: primary(each.given) for name, each in named.items()})

    def _past_of(
        self, trace: Trace | None, past: PastVariables | PastDeltas
    ) -> PastVariables | PastDeltas:
        entries = self._calls.variables(trace).values()
        handles = {id(primary(entry.variable).handle) for entry in entries}
        self._unproven = not handles
        foreign = past.handles - handles
        if foreign and handles:
            raise InvalidArgument(
                f"Could not make a past network of {self._calls.name}: expected the past of its "
                f"own variables, got {len(foreign)} of {len(past.handles)} that it doesn't list. "
                "Pass example=, a batch, if it has them, or the past of model.variables."
            )
        return past

    def _check(self, trace: Trace) -> None:
        """Refuses state without a past, and makes copies for the network's writes."""
        if trace in self._checked:
            return
        handles, state = self.past.handles, self._calls.state_of(trace)
        if self._unproven and handles.isdisjoint(id(capture.tensor) for capture in state):
            raise InvalidArgument(
                f"Could not call the past of {self._calls.name}: expected the past of its own "
                f"variables, got one of {len(handles)} others, none of which it reads. Make "
                "PastVariables for it."
            )
        for capture in state:
            if id(capture.tensor) in handles:
                continue
            # Keras makes a seed when a layer without one first draws. It has no past.
            seed = capture.name.rpartition("/")[2].startswith("seed_generator_state")
            if self._complete and not self._calls.shares(capture) and not seed:
                raise InvalidArgument(
                    f"Could not call the past of {self._calls.name}: expected variables that it "
                    f"lists, got {capture.name!r}, whose past is unknown. Pass example=, a batch, "
                    "to find it when the past network is made, or share= to use it as it is."
                )
            if capture.written:
                self._scratch.add(capture.variable)
        self._checked.add(trace)

    def _check_alone(self) -> None:
        if replicated():
            raise InvalidArgument(
                f"Could not sync the past of {self._calls.name} in a replica: expected to be "
                f"called once for all replicas, got one of several. Sync it outside of "
                f"strategy.run."
            )


class _Calls:
    """Traces a network and sorts what it captures. TensorFlow doesn't save it."""

    def __init__(self, network: CallableNetwork, share: Iterable[Any] = ()) -> None:
        self.name = network.name
        self._network = network
        self._tracer = Tracer(network.call, network.name)
        # The tensors themselves too, so no other can get their `id`.
        self._shared = {id(handle): handle for owner in share for handle in _handles(owner)}
        # For a variable in several replicas, the first has the past, and no other is read.
        for entry in network.variables.values():
            self._shared |= {id(copy.handle): copy.handle for copy in copies(entry.variable)[1:]}

    def trace(
        self, args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> tuple[Trace, list[tf.Tensor]]:
        """Like `Tracer.trace`, with the network's own defaults."""
        called = {**self._network.defaults, **kwargs}
        for name, default in self._network.defaults.items():
            called[name] = default if called[name] is None else called[name]
        return self._tracer.trace(args, called)

    def first_trace(self, example: Any = None) -> Trace | None:
        """A trace for the user's example, or for the network's known inputs."""
        if example is not None:
            return self.trace(example if isinstance(example, tuple) else (example,), {})[0]
        return None if self._network.inputs is None else self.trace(*self._network.inputs)[0]

    def variables(self, trace: Trace | None) -> dict[str, Found]:
        """All variables found so far, by name, without shared ones."""
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

    def state_of(self, trace: Trace) -> list[Capture]:
        """The variables that a trace captures; other state that isn't shared is refused."""
        state = [capture for capture in trace.captures if capture.is_state]
        for capture in state:
            if capture.variable is None and not self.shares(capture):
                raise InvalidArgument(
                    f"Could not use {self.name} as a network: expected variables as its state, "
                    f"got {capture.name}. Call it before the network, or pass the object in "
                    f"share= to use it as it is."
                )
        return [capture for capture in state if capture.variable is not None]

    def shares(self, capture: Capture) -> bool:
        """Whether the network uses this as it is."""
        return id(capture.tensor) in self._shared


def _handles(shared: object) -> list[tf.Tensor]:
    variable = tf_variable(shared)
    owned = (handle for owner in _owners(shared) for handle in _resources(owner))
    handles = list(owned) if variable is None else [primary(variable).handle]
    if not handles:
        shown = " ".join(repr(shared).split())
        raise InvalidArgument(
            f"Could not share a {type(shared).__name__}: expected a variable, a lookup table, an "
            f"iterator, or a layer that owns one, got {shown:.80}. Pass the object that owns the "
            f"state."
        )
    return handles


def _owners(shared: object) -> list[Any]:
    """An object that may own state: all layers in a layer or FeatureSpace, or another object."""
    if isinstance(shared, keras.utils.FeatureSpace):
        return [owner for each in shared.preprocessors.values() for owner in _owners(each)]
    return list(shared._flatten_layers()) if isinstance(shared, keras.layers.Layer) else [shared]


def _resources(owner: object, depth: int = 2) -> Iterator[tf.Tensor]:
    """The handles among an object's attributes, including those of a layer's objects."""
    for value in getattr(owner, "__dict__", {}).values() if depth else ():
        if isinstance(value, tf.Tensor):
            if value.dtype in STATE:
                yield value
        else:
            yield from _resources(value, depth - 1)
