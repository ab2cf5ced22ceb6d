"""The past of a network, called like the network itself."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import tensorflow as tf

from tb_pastnet.errors import InvalidArgument
from tb_pastnet.train.model.variables import choose
from tb_pastnet.train.model.walk import Found, tf_variable
from tb_pastnet.train.networks.source import Source, found_of, free_name, source_of
from tb_pastnet.train.networks.trace import STATE, Capture, Trace, Tracer
from tb_pastnet.train.past import PastVariables


class PastNetwork(tf.Module):
    """A network as it was at the last sync, beside the current one and on the same input.

    `past(x)` is what the network would return with its past values. No gradient flows through it,
    and it leaves the network as it is: also the statistics of a BatchNormalization, seeds and the
    states of an RNN. It works eagerly, in a tf.function, under XLA and in mixed precision, and
    inside of a training step.

    The network is traced once for each signature of its inputs, and that trace is called with
    shadow variables in the place of those that it captured. So it need not be a Keras model. What
    it writes when it is called (with `training=True` the statistics) is written to the past's own
    copies, as in a network of its own; the next sync replaces them.

    A `tf.train.Checkpoint(past=past)` saves and restores the past values.

    Args:
        network: a built keras.Model or layer, a tf.Module, a tf.function, a ConcreteFunction, or a
            function of a loaded SavedModel.
        past: the shadow variables to use, for example `PastVariables` of some of the network's
            variables that are also looked at, or `PastDeltas`. None: its own.
        variables: those to keep the past of, as names, patterns such as "*/kernel", or variables;
            the others are the current ones. None: all.
        example: a batch, or a tuple of arguments, as tensors or tf.TensorSpecs: to find now what a
            function, or a subclassed model, reads besides the variables that it lists.
        share: state that is read from the current network as it is, such as a lookup table.

    Attributes:
        past: the shadow variables.

    Raises:
        InvalidArgument: the model isn't built, the network can't be called, a variable was deleted,
            or it holds other state than variables.
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
        past: PastVariables | None = None,
        *,
        variables: Iterable[Any] | None = None,
        example: Any = None,
        share: Iterable[Any] = (),
    ) -> None:
        super().__init__()
        if past is not None and variables is not None:
            raise InvalidArgument(
                "Could not make a past network: expected past= or variables=, got both. "
                "PastVariables already say which variables they are of."
            )
        source = source_of(network)
        self._calls = _Calls(source, share)
        trace = self._calls.first_trace(example)
        named = self._calls.variables(trace)
        if variables is not None:
            named = {name: named[name] for name in choose(variables, named)}
        self._complete = past is None and variables is None
        holders = {name: found.holders[-1] for name, found in named.items()}
        self.past = PastVariables(holders) if past is None else past
        self._states: list[PastVariables] = []
        if trace is not None:
            self._check(trace)

    @property
    def nbytes(self) -> int:
        """Bytes that the past takes."""
        return sum(one.nbytes for one in (self.past, *self._states))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """What the network would return with its past values.

        Args:
            *args: as of the network.
            **kwargs: as of the network; of a Keras model `training` is False unless it is given.

        Returns:
            As of the network; tensors without gradients.

        Raises:
            InvalidArgument: the network doesn't take these inputs, or it is now seen to hold state
                that has no past.
        """
        trace, tensors = self._calls.trace(args, kwargs)
        self._check(trace)
        with ExitStack() as stack:
            parts = [stack.enter_context(one.standing_in()) for one in (*self._states, self.past)]
            state = {number: handle for part in parts for number, handle in part.items()}
            return trace.call(tensors, state)

    def sync(self, tau: float | Any = 1.0) -> None:
        """Moves the past values towards the current ones: past = tau * current + (1 - tau) * past.

        Args:
            tau: as of `PastVariables.sync`.

        Raises:
            InvalidArgument: a number outside of 0 to 1.
        """
        for one in (self.past, *self._states):
            one.sync(tau)

    @contextmanager
    def step(self) -> Iterator[None]:
        """Around an update: the past is then the network from before it."""
        with ExitStack() as stack:
            for one in (self.past, *self._states):
                stack.enter_context(one.step())
            yield

    def __repr__(self) -> str:
        return f"<PastNetwork of {self._calls.name}, {self.nbytes:,} bytes>"

    def _check(self, trace: Trace) -> None:
        """Refuses state that has no past, and gives one to what the network writes."""
        followed = {number for one in (self.past, *self._states) for number in one.handles}
        for capture in self._calls.state_of(trace):
            if id(capture.tensor) in followed:
                continue
            if capture.written:
                with tf.init_scope():
                    self._states.append(PastVariables({capture.name: capture.variable}))
            elif self._complete:
                raise InvalidArgument(
                    f"Could not call the past of {self._calls.name}: expected variables that it "
                    f"lists, got {capture.name!r}, whose past is unknown. Pass example=, a batch, "
                    f"so that it is found when the past network is made, or share= to read it as "
                    f"it is."
                )


class _Calls:
    """Traces a network and sorts what it captures. TensorFlow doesn't save it with the past.

    Args:
        source: the network.
        share: state to be left as it is.
    """

    def __init__(self, source: Source, share: Iterable[Any]) -> None:
        self.name = source.name
        self._source = source
        self._tracer = Tracer(source.call, source.name)
        self._shared = {id(_handle(one)) for one in share}

    def trace(self, args: Any, kwargs: Any) -> tuple[Trace, list[Any]]:
        """As `Tracer.trace`."""
        return self._tracer.trace(args, kwargs)

    def first_trace(self, example: Any) -> Trace | None:
        """What is found before the network is called, where its inputs are known.

        Args:
            example: of the user; None for none.
        """
        if example is not None:
            return self.trace(example if isinstance(example, tuple) else (example,), {})[0]
        return None if self._source.inputs is None else self.trace(*self._source.inputs)[0]

    def variables(self, trace: Trace | None) -> dict[str, Found]:
        """All variables that are known so far, by name."""
        named = dict(self._source.variables)
        known = {id(found.variable) for found in named.values()} | self._shared
        for capture in self.state_of(trace) if trace is not None else ():
            if id(capture.variable) not in known:
                found = found_of(capture.variable)
                named[free_name(found.id, named)] = found
        return named

    def state_of(self, trace: Trace) -> list[Capture]:
        """The variables that a trace captures, without those that are shared.

        Raises:
            InvalidArgument: it captures other state.
        """
        state = []
        for capture in trace.captures:
            if capture.tensor.dtype not in STATE or id(capture.tensor) in self._shared:
                continue
            if capture.variable is None:
                raise InvalidArgument(
                    f"Could not take {self.name} as a network: expected variables as its state, "
                    f"got {capture.name!r}, which is used by {', '.join(sorted(capture.uses))}. "
                    f"Call it before the network, or pass the object in share= to use it as it is."
                )
            state.append(capture)
        return state


def _handle(shared: Any) -> Any:
    variable = tf_variable(shared)
    handle = getattr(shared, "resource_handle", None) if variable is None else variable.handle
    if handle is None:
        raise InvalidArgument(
            f"Could not share {shared!r:.80}: expected a variable or a lookup table, got a "
            f"{type(shared).__name__}. Pass the object that owns the state."
        )
    return handle
