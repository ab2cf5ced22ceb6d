"""Masks on the variables of a graph: commands, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from tb_pastnet import v1
from tb_pastnet.errors import InvalidArgument, UnknownName
from tests.masked_graphs import KERNEL, begun, network, start, trained, value_of

pytestmark = pytest.mark.usefixtures("graph")


@pytest.mark.usefixtures("control_flow")
def test_a_change_takes_effect_in_a_finalized_graph(kind, session):
    masks, train = trained()
    begun(session, masks)
    session.graph.finalize()
    first = value_of(session, KERNEL)
    masks.prune(KERNEL, channels=[1])
    masks.freeze(KERNEL, channels=[2])
    start(session, train)
    now = value_of(session, KERNEL)
    assert (now[:, 1] == 0).all()
    np.testing.assert_array_equal(now[:, 2], first[:, 2])
    assert (now[:, [0, 3]] != first[:, [0, 3]]).all()
    masks.regrow(KERNEL)
    masks.thaw(KERNEL)
    start(session, train)
    assert (value_of(session, KERNEL) != now).all()


def test_masks_that_wrap_nothing_declare_what_the_graph_itself_holds(session):
    loss = network()
    masks = v1.Masks()
    optimizer = tf.train.MomentumOptimizer(0.01, 0.9)
    rest = [one for one in tf.trainable_variables() if one.op.name != KERNEL]
    without, leaking = optimizer.minimize(loss, var_list=rest), optimizer.minimize(loss)
    begun(session, masks)
    masks.freeze(KERNEL)
    start(session, without)
    assert masks.audit(5) == []
    first = value_of(session, KERNEL)
    start(session, leaking)
    moved = np.abs(value_of(session, KERNEL).astype(float) - first).max(0)
    found = masks.audit(10)
    assert [(one.variable, one.channel, one.first_step) for one in found] == [
        (KERNEL, channel, 10) for channel in range(4)
    ]
    assert [one.largest for one in found] == moved.tolist()


def test_masks_are_read_by_name(session):
    masks, _ = trained()
    begun(session, masks)
    kept = np.random.default_rng(0).random((6, 4)) < 0.5
    trainable = np.random.default_rng(1).random((6, 4)) < 0.5
    masks.prune("dense/w", kept)
    masks.freeze("dense/w", trainable)
    assert list(masks.kept) == ["net/dense/w", "net/dense/b", "net/out/w"]
    np.testing.assert_array_equal(masks.kept["dense/w"], kept)
    np.testing.assert_array_equal(masks.trainable["dense/w"], trainable | ~kept)
    assert masks.kept["dense/b"].all()
    assert masks.sparsity("dense/w") == masks.zeros("dense/w") == (~kept).mean()
    assert masks.sparsity() == (~kept).sum() / (24 + 12)


def test_pruning_by_magnitude_is_that_of_the_values(kind, session):
    masks, _ = trained()
    begun(session, masks)
    before = value_of(session, KERNEL), value_of(session, "net/out/w")
    masks.prune_smallest(0.5)
    sizes = np.sort(np.concatenate([abs(one).ravel() for one in before]))
    for name, value in zip((KERNEL, "net/out/w"), before, strict=True):
        expected = abs(value) > sizes[17]
        np.testing.assert_array_equal(masks.kept[name], expected)
        np.testing.assert_array_equal(value_of(session, name), value * expected)


@pytest.mark.parametrize(
    ("make", "fresh"),
    [
        (lambda: tf.train.MomentumOptimizer(0.01, 0.9), {"momentum": 0.0}),
        (lambda: tf.train.AdagradOptimizer(0.01, 0.25), {"accumulator": 0.25}),
        (lambda: tf.train.RMSPropOptimizer(0.01), {"rms": 1.0, "momentum": 0.0}),
    ],
    ids=["momentum", "adagrad", "rmsprop"],
)
@pytest.mark.parametrize(
    "partitioner", [tf.fixed_size_partitioner(2), pytest.param(None, marks=pytest.mark.prove)]
)
def test_what_regrows_begins_with_fresh_slots(kind, session, make, fresh, partitioner):
    loss = network(partitioner=partitioner)
    masks, optimizer = v1.Masks(), make()
    train = masks.wrap(optimizer).minimize(loss)
    begun(session, masks)
    start(session, train)
    parts = [one for one in tf.trainable_variables() if one.op.name.startswith(KERNEL)]
    slots = {
        name: tf.concat([optimizer.get_slot(part, name).read_value() for part in parts], 0)
        for name in optimizer.get_slot_names()
    }
    masks.prune(KERNEL, channels=[1, 2])
    before = session.run(slots)
    masks.regrow(KERNEL, channels=[1])
    for name, slot in session.run(slots).items():
        np.testing.assert_array_equal(slot[:, 1], fresh[name])
        np.testing.assert_array_equal(slot[:, [0, 2, 3]], before[name][:, [0, 2, 3]])
        assert (before[name][:, 1] != fresh[name]).any() or name == "momentum"


def test_what_to_mask_is_chosen():
    network()
    network("net_2")
    assert len(v1.Masks().kept) == 6
    assert list(v1.Masks("net").kept) == ["net/dense/w", "net/dense/b", "net/out/w"]
    assert list(v1.Masks(["net/*/w"]).kept) == ["net/dense/w", "net/out/w"]
    assert list(v1.Masks([tf.trainable_variables("net/out")[0]]).kept) == ["net/out/w"]
    named = v1.Masks({"a/kernel": tf.trainable_variables("net/dense/w")[0]})
    assert list(named.kept) == ["a/kernel"]


@pytest.mark.parametrize(
    ("call", "kind_of", "text"),
    [
        (
            lambda: v1.Masks("nett"),
            InvalidArgument,
            "Could not choose the variables of scope 'nett'",
        ),
        (lambda: v1.Masks(["w"]), UnknownName, "'w'"),
        (lambda: v1.Masks().wrap(0.1), InvalidArgument, "Could not hold masks on 0.1: expected a"),
        (
            lambda: v1.Masks().hold(lambda: None),
            InvalidArgument,
            "Could not hold weights in an update: expected an operation or tensors, got None",
        ),
        (
            lambda: v1.Masks().hold(lambda: [1.0]),
            InvalidArgument,
            r"expected an operation or tensors, got \[1.0\]",
        ),
        (
            lambda: v1.Masks().hold(lambda: tf.trainable_variables()[0]),
            InvalidArgument,
            "expected an operation or tensors, got <tf.Variable 'net/dense/w:0'",
        ),
        (lambda: v1.Masks().sparsity(), InvalidArgument, "Could not run ops of a graph: expected"),
    ],
)
def test_what_cannot_be_is_refused(call, kind_of, text):
    network()
    with pytest.raises(kind_of, match=text):
        call()


def test_a_graph_without_variables_is_refused():
    with pytest.raises(InvalidArgument, match="Could not record a graph: expected at least one"):
        v1.Masks()


def test_masks_without_values_are_refused(session):
    masks, _ = trained()
    session.run(tf.global_variables_initializer())
    with pytest.raises(InvalidArgument, match="expected variables that have values, got some"):
        masks.sparsity()


def test_a_statistic_is_refused(session):
    network()
    tf.get_variable("net/dense/moving_mean", (4,), trainable=False)
    masks = v1.Masks()
    begun(session, masks)
    with pytest.raises(InvalidArgument, match="statistic that its layer writes.* update ops"):
        masks.prune("dense/moving_mean", channels=[0])


def test_a_finalized_graph_is_refused(graph, session):
    masks, _ = trained()
    graph.finalize()
    with pytest.raises(InvalidArgument, match="Could not add ops: expected a graph that accepts"):
        v1.Masks()
    with pytest.raises(
        InvalidArgument, match="Could not hold weights in an update: expected a gra"
    ):
        masks.hold(tf.no_op)
