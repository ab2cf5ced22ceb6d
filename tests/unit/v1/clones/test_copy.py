"""Copies of a part of a graph with other variables: the same function, the same gradients."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from tb_pastnet.v1.clones.copy import copy_part, storage
from tb_pastnet.v1.clones.part import Part
from tests.v1_networks import NETWORKS

RNG = np.random.default_rng(0)


def copied(inputs, outputs, pairs, scope="copy"):
    part = Part(inputs[0].graph, frozenset(one.name for one in inputs))
    part.take(outputs)
    part.check("copy a network")
    return copy_part(part, pairs, scope)


def zeros_like(variable):
    resource = storage(variable).dtype == tf.resource
    return tf.Variable(tf.zeros(variable.shape), use_resource=resource)


def with_gradients(output, inputs):
    found = tf.gradients(output, inputs)
    assert not any(one is None for one in found)
    return [output, *map(tf.convert_to_tensor, found)]


@pytest.mark.usefixtures("graph", "kind", "control_flow")
@pytest.mark.parametrize("network", NETWORKS, ids=lambda network: network.__name__)
def test_a_copy_has_the_function_and_the_gradients_of_the_original(network):
    x, other = (tf.placeholder(tf.float32, (None, 3), name) for name in ("x", "other"))
    y = network(x)
    originals = tf.global_variables()
    own = list(map(zeros_like, originals))
    pairs = [(storage(a), storage(b)) for a, b in zip(originals, own, strict=True)]
    copy = copied([x], [y], [*pairs, (x, other)])
    trained = [at for at, one in enumerate(originals) if "count" not in one.name]
    ways = [
        (with_gradients(y, [x, *(originals[at] for at in trained)]), originals, x),
        (with_gradients(copy(y), [other, *(own[at] for at in trained)]), own, other),
    ]
    weights = [RNG.normal(size=one.shape.as_list()).astype("f") for one in originals]
    fill = [[a.assign(b) for a, b in zip(vs, weights, strict=True)] for _, vs, _ in ways]
    for sign in (1, -1):  # each side of a branch
        batch = sign * abs(RNG.normal(size=(4, 3))).astype("f")
        results = []
        for (fetches, _, fed), assign in zip(ways, fill, strict=True):
            with tf.Session() as session:  # where the other network has no values and no input
                session.run(assign)
                results.append(session.run(fetches, {fed: batch}))
        for one, two in zip(*results, strict=True):
            np.testing.assert_allclose(one, two, rtol=1e-5, atol=1e-6)
            assert abs(one).max() > 0
