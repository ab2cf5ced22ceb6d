"""What sync_op refuses, and what the error says."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from tb_pastnet.errors import InvalidArgument, UnknownName
from tb_pastnet.v1 import sync_op

pytestmark = pytest.mark.usefixtures("graph")


def variable(name, value):
    return tf.get_variable(name, initializer=tf.constant(value))


def pair():
    for scope in ("net", "past"):
        variable(f"{scope}/w", 0.0)


def refused(error, text, *arguments, **settings):
    with pytest.raises(error) as caught:
        sync_op(*arguments, **settings)
    assert str(caught.value) == text


def test_a_scope_without_variables_is_refused():
    refused(
        UnknownName,
        "Could not sync 'past' with 'net': expected variables in scope 'net', got none. The "
        "graph has no scope with variables: build both networks first.",
        "net",
        "past",
    )
    variable("model/net/w", 0.0)
    variable("past/w", 0.0)
    refused(
        UnknownName,
        "Could not sync 'past' with 'net': expected variables in scope 'net', got none. Name a "
        "scope from the root of the graph, such as 'model/net'.",
        "net",
        "past",
    )
    refused(
        UnknownName,
        "Could not sync 'back' with 'model/net': expected variables in scope 'back', got none. "
        "Name a scope from the root of the graph, such as 'model', 'past'.",
        "model/net",
        "back",
    )


def test_one_scope_for_both_is_refused():
    variable("net/w", 0.0)
    refused(
        InvalidArgument,
        "Could not sync 'net/' with 'net': expected two scopes, got one. Build the past in its "
        "own scope.",
        "net",
        "net/",
    )


def test_a_past_variable_of_its_own_is_refused():
    variable("net/w", 0.0)
    for n in range(7):
        variable(f"past/v{n}", 0.0)
    refused(
        InvalidArgument,
        "Could not sync 'past' with 'net': expected a current variable for each past one, got "
        "none for 'past/v0', 'past/v1', 'past/v2', 'past/v3', 'past/v4', …. Use the same names "
        "below both scopes, or build the past without them.",
        "net",
        "past",
    )


@pytest.mark.parametrize(
    ("value", "what"),
    [
        (np.zeros((3, 4), "f"), "shape (3, 3), got (3, 4)"),
        (np.zeros((3, 3)), "dtype float32, got float64"),
    ],
)
def test_a_past_of_another_kind_is_refused(value, what):
    variable("net/w", np.zeros((3, 3), "f"))
    variable("past/w", value)
    refused(
        InvalidArgument,
        f"Could not sync 'past/w' with 'net/w': expected {what}. Build the past like the current "
        "network.",
        "net",
        "past",
    )


@pytest.mark.parametrize("tau", [-0.1, 1.5, float("nan"), np.float64(2), "0.5", None])
def test_a_tau_outside_of_its_range_is_refused(tau):
    pair()
    refused(
        InvalidArgument,
        "Could not sync past variables: expected tau from 0 to 1, or a scalar tensor, got "
        f"{tau!r}. Use 1 for a copy.",
        "net",
        "past",
        tau=tau,
    )


def test_a_tau_that_is_no_scalar_is_refused():
    pair()
    with pytest.raises(
        InvalidArgument, match=r"or a scalar tensor, got <tf\.Tensor 'Const.*shape=\(1,\)"
    ):
        sync_op("net", "past", tau=tf.constant([0.5]))


def test_tensors_of_two_graphs_are_refused():
    pair()
    with tf.Graph().as_default():
        other = tf.constant(0.5, name="other")
    for given in ({"after": [other]}, {"before": other}, {"tau": other}):
        refused(
            InvalidArgument,
            "Could not sync past variables: expected tensors and variables of one graph, got "
            "'other:0' of another one. Build everything in the same tf.Graph.",
            "net",
            "past",
            **given,
        )


def test_a_finalized_graph_is_refused(graph):
    pair()
    graph.finalize()
    refused(
        InvalidArgument,
        "Could not sync 'past' with 'net': expected a graph that accepts operations, got a "
        "finalized one. Build them before the session: a MonitoredTrainingSession finalizes its "
        "graph.",
        "net",
        "past",
    )
