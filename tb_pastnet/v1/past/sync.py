"""Copies a network's variables into those of its past: an operation, and a hook that runs it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import tensorflow.compat.v1 as tf

from tb_pastnet.core.arguments import answered
from tb_pastnet.core.checks import is_number, is_whole
from tb_pastnet.errors import InvalidArgument, UnknownName
from tb_pastnet.keras.graphs.nodes import Nest
from tb_pastnet.keras.past.past_variables import check_tau, moved
from tb_pastnet.v1.clones.clone_arguments import flat
from tb_pastnet.v1.graph.graph_variables import (
    GraphVariable,
    graph_variables,
    one_graph,
    open_graph,
    within,
)
from tb_pastnet.v1.graph.writes import let_wait

if TYPE_CHECKING:
    from tb_pastnet.v1.past.past_graph import PastGraph

Pair = tuple[GraphVariable, GraphVariable]


@answered
def sync_op(
    current_scope: str,
    past_scope: str,
    tau: float | Any = 1.0,
    after: Nest = (),
    before: Nest = (),
    graph: tf.Graph | None = None,
    name: str = "sync",
    *,
    statistics: bool = False,
) -> Any:
    """Builds the operation that syncs one scope's variables with another's.

    A past variable gets the value of the current one with the same name below its scope. The past
    may be a part of the network. Partitioned variables count as one. To use the past, sync and
    train in one `session.run`, see
    https://tb-pastnet.github.io/tb_pastnet/how_to/tf1_graphs.html.

    Args:
        current_scope: the exact name of a scope, from the root of the graph: "net" isn't "net_2".
            "" is the root.
        past_scope: that of the past. One scope may be inside the other: variables in the inner one
            belong only to that.
        tau: past = tau * current + (1 - tau) * past. 1 copies; a scalar tensor works as well.
            Non-floating variables are always copied.
        after: tensors and operations, one or a nest of them, that the sync waits for, such as the
            past's outputs.
        before: tensors and operations whose writes to the current variables wait for the sync, such
            as UPDATE_OPS.
        graph: a tf.Graph; None: the default graph.
        name: the name of the operation.
        statistics: whether variables that aren't trainable, such as moving statistics, follow
            softly, too. Otherwise they are copied.

    Returns:
        A tf.Operation that completes when all are written.

    Raises:
        UnknownName: a scope has no variables.
        InvalidArgument: a past variable has no current one, or one of another shape or dtype; or
            both scopes are the same. Also if tau is outside of 0 to 1 or isn't a scalar, if a
            tensor is of another graph, or if the graph is finalized.

    Example:
        >>> with tf.Graph().as_default(), tf.Session() as session:
        ...     weight = tf.get_variable("net/weight", initializer=3.0)
        ...     backup = tf.get_variable("past/weight", initializer=0.0)
        ...     sync = sync_op("net", "past")
        ...     session.run(tf.global_variables_initializer())
        ...     session.run(sync)
        ...     float(session.run(backup))
        3.0
    """
    graph = open_graph(graph, f"sync {past_scope!r} with {current_scope!r}")
    pairs = _matched(current_scope, past_scope, graph)
    return build_sync(pairs, tau, after, before, graph=graph, name=name, statistics=statistics)


def build_sync(
    pairs: Sequence[Pair],
    tau: float | tf.Tensor,
    after: Nest,
    before: Nest,
    *,
    graph: tf.Graph,
    name: str,
    statistics: bool = False,
) -> tf.Operation:
    """Builds the operation that syncs each past variable with its current one, see `sync_op`."""
    check_tau(tau)
    earlier, later = flat(after), flat(before)
    one_graph([*earlier, *later, tau], graph, "sync past variables")
    with graph.as_default(), tf.name_scope(name) as scope:
        # A read may alias the variable. It is written before the operation is done, so a waiting
        # update can't change the copied values.
        with tf.control_dependencies(earlier):
            values = [
                _synced(current, past, tau if statistics or current.trainable else 1.0)
                for current, past in pairs
            ]
        with tf.control_dependencies(values):
            writes = [past.assign(value) for (_, past), value in zip(pairs, values, strict=True)]
        sync = tf.group(*writes, name=scope)
    let_wait(later, {name for current, _ in pairs for name in current.holders}, sync)
    return sync


def _synced(current: GraphVariable, past: GraphVariable, tau: float | tf.Tensor) -> tf.Tensor:
    value = current.tensor()
    if (is_number(tau) and tau == 1) or not value.dtype.is_floating:
        # A resource variable would share the storage of a read of a reference variable.
        return tf.raw_ops.DeepCopy(x=value)
    return moved(value, past.tensor(), tau)


def _matched(current_scope: str, past_scope: str, graph: tf.Graph) -> list[Pair]:
    doing = f"sync {past_scope!r} with {current_scope!r}"
    if current_scope.rstrip("/") == past_scope.rstrip("/"):
        raise InvalidArgument(
            f"Could not {doing}: expected two scopes, got one. Build the past in its own scope."
        )
    current = _below(current_scope, past_scope, graph, doing)
    past = _below(past_scope, current_scope, graph, doing)
    alone = [variable.name for below, variable in past.items() if below not in current]
    if alone:
        raise InvalidArgument(
            f"Could not {doing}: expected a current variable for each past one, got none for "
            f"{_shown(alone)}. Use the same names below both scopes, or build the past without "
            "them."
        )
    pairs = [(current[below], variable) for below, variable in past.items()]
    for pair in pairs:
        _check_alike(*pair)
    return pairs


def _below(scope: str, apart: str, graph: tf.Graph, doing: str) -> dict[str, GraphVariable]:
    """The variables of a scope by the rest of their names, without those of an inner scope."""
    scope, apart = scope.rstrip("/"), apart.rstrip("/")
    everything = graph_variables(graph)
    apart_is_inside = within(apart, scope)
    below = {
        each.name.removeprefix(f"{scope}/"): each
        for each in everything
        if within(each.name, scope) and not (apart_is_inside and within(each.name, apart))
    }
    if not below:
        raise UnknownName(
            f"Could not {doing}: expected variables in scope {scope!r}, got none. "
            f"{_scopes([each.name for each in everything], scope)}"
        )
    return below


def _scopes(names: Sequence[str], wanted: str) -> str:
    """A sentence listing the scopes, those that end like the wanted one first."""
    paths = [name.split("/")[:-1] for name in names]
    scopes = {"/".join(path[:n]) for path in paths for n in range(1, len(path) + 1)}
    ends = [scope for scope in scopes if scope.endswith("/" + wanted)]
    candidates = sorted(ends or {path[0] for path in paths if path})
    if not candidates:
        return "The graph has no scope with variables: build both networks first."
    return f"Name a scope from the root of the graph, such as {_shown(candidates)}."


def _check_alike(current: GraphVariable, past: GraphVariable) -> None:
    for quality, expected, got in (
        ("shape", current.shape, past.shape),
        ("dtype", current.dtype.name, past.dtype.name),
    ):
        if expected != got:
            raise InvalidArgument(
                f"Could not sync {past.name!r} with {current.name!r}: expected {quality} "
                f"{expected}, got {got}. Build the past like the current network."
            )


def _shown(names: Sequence[str]) -> str:
    return ", ".join(map(repr, names[:5])) + (", …" if len(names) > 5 else "")


@answered
class SyncHook(tf.train.SessionRunHook):
    """Syncs a past network every few steps of training, as for a target network.

    After each step that makes the global step pass a multiple of `every`, the past becomes the
    current network. A session that resumes from a checkpoint keeps the same steps. For the past of
    the previous step use `PastGraph.step()` instead: between two steps, when a hook runs, that past
    is the current network.

    Args:
        sync: the operation of `sync_op` or `PastGraph.sync`, or the PastGraph to copy into.
        every: the number of global steps between syncs, at least 1.

    Raises:
        InvalidArgument: `sync` isn't valid, or `every` isn't a whole number of at least 1.
            In `begin`: the graph has no global step.

    Example:
        >>> from tb_pastnet.v1 import sync_op
        >>> with tf.Graph().as_default():
        ...     weight = tf.get_variable("net/weight", initializer=0.0)
        ...     past = tf.get_variable("past/weight", initializer=0.0)
        ...     hook = SyncHook(sync_op("net", "past"), every=2)
        ...     step = tf.train.get_or_create_global_step()
        ...     train = tf.group(weight.assign_add(1.0), step.assign_add(1))
        ...     with tf.train.MonitoredSession(hooks=[hook]) as session:
        ...         for _ in range(5):
        ...             session.run(train)
        ...         float(session.run(past))
        4.0
    """

    def __init__(self, sync: tf.Operation | PastGraph, every: int = 1) -> None:
        self._sync = getattr(sync, "sync_op", sync)
        self._every = every
        self._global_step: tf.Variable | None = None
        self._last = 0
        if not isinstance(self._sync, tf.Operation):
            raise InvalidArgument(
                f"Could not make a SyncHook: expected the operation of sync_op or a PastGraph, got "
                f"{type(sync).__name__}. Build it with pastnet.v1.sync_op."
            )
        if not is_whole(every) or every < 1:
            raise InvalidArgument(
                f"Could not make a SyncHook: expected every= a whole number of at least 1, got "
                f"{every!r}. Use every=1 to sync after each step."
            )

    def begin(self) -> None:
        """Finds the global step."""
        self._global_step = tf.train.get_global_step(self._sync.graph)
        if self._global_step is None:
            raise InvalidArgument(
                "Could not sync every few steps: expected a graph with a global step, got none. "
                "Call tf.train.get_or_create_global_step() and pass it to the optimizer's minimize."
            )

    def after_create_session(self, session: tf.Session, coord: tf.train.Coordinator) -> None:
        """Starts counting from the step with which the session was made or restored."""
        self._last = int(session.run(self._global_step))

    def after_run(
        self, run_context: tf.train.SessionRunContext, run_values: tf.train.SessionRunValues
    ) -> None:
        """Syncs if it is due."""
        step = int(run_context.session.run(self._global_step))
        if step // self._every > self._last // self._every:
            run_context.session.run(self._sync)
        self._last = step
