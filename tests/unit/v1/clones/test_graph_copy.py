"""Copies of a part of a graph with other variables: the same function, the same gradients."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from tb_pastnet.v1.clones.graph_copy import copy_part, storage
from tb_pastnet.v1.clones.graph_part import GraphPart
from tests import v1_networks
from tests.v1_networks import NETWORKS, function_in_loop

FLOWING = {
    v1_networks.branch,
    v1_networks.loop,
    v1_networks.nested,
    v1_networks.scan,
    v1_networks.mapped,
    function_in_loop,
}
"""Those with control flow, of which there are two versions; the others are the same graph in both."""


def copied(inputs, outputs, pairs, scope="copy"):
    part = GraphPart(inputs[0].graph, [one.name for one in inputs], outputs)
    part.check("copy a network")
    return copy_part(part, pairs, scope)


def zeros_like(variable):
    resource = storage(variable).dtype == tf.resource
    return tf.Variable(tf.zeros(variable.shape), use_resource=resource)


def with_gradients(output, inputs):
    found = tf.gradients(output, inputs)
    assert not any(one is None for one in found)
    return [output, *map(tf.convert_to_tensor, found)]


def worlds(network):
    """Kinds of variables and versions of control flow; what is a proof's alone is marked.

    Branches of v2 take no reference variables, but what is read of them.
    """
    for kind, flow in product(("reference", "resource"), ("v1", "v2")):
        now = (kind == "resource") if network in FLOWING else (flow == "v1")
        name = f"{network.__name__}-{kind}-{flow}"
        marks = () if now else pytest.mark.prove
        yield pytest.param(network, kind, flow, marks=marks, id=name)


@pytest.mark.usefixtures("graph", "kind")
@pytest.mark.parametrize(
    ("network", "kind", "control_flow"),
    [world for network in NETWORKS for world in worlds(network)],
    indirect=["kind", "control_flow"],
)
def test_a_copy_has_the_function_and_the_gradients_of_the_original(network, control_flow):
    rng = np.random.default_rng(1)
    x = tf.placeholder(tf.float32, (None, 3), "x")
    y = network(x)
    originals = tf.global_variables()
    weighted = [at for at, one in enumerate(originals) if "count" not in one.name]
    weights = [rng.normal(size=one.shape.as_list()).astype("f") / 2 for one in originals]

    def way(output, variables, fed):
        fill = [one.assign(value) for one, value in zip(variables, weights, strict=True)]
        return with_gradients(output, [fed, *(variables[at] for at in weighted)]), fill, fed

    def copy(scope):
        other = tf.placeholder(tf.float32, (None, 3), f"{scope}_x")
        own = list(map(zeros_like, originals))
        pairs = [(storage(a), storage(b)) for a, b in zip(originals, own, strict=True)]
        return copied([x], [y], [*pairs, (x, other)], scope)(y), own, other

    first = copy("first")
    ways = [way(y, originals, x), way(*first)]
    # TensorFlow itself takes no second gradient of a tf.function in a loop of control flow v1.
    if network is not function_in_loop or control_flow == "v2":
        ways.append(way(*copy("second")))  # of what has gradients already
    batch = abs(rng.normal(size=(4, 3))).astype("f")
    results = []
    for fetches, fill, fed in ways:
        with tf.Session() as session:  # where the others have neither values nor inputs
            session.run(fill)
            # Each side of a branch.
            results.append([session.run(fetches, {fed: sign * batch}) for sign in (1, -1)])
    expected, *found = map(tf.nest.flatten, results)
    for arrays in found:
        for one, other in zip(expected, arrays, strict=True):
            np.testing.assert_allclose(other, one, rtol=1e-5, atol=1e-6)
    sides = zip(*results[0], strict=True)
    assert all(max(abs(one).max() for one in side) > 1e-3 for side in sides)
