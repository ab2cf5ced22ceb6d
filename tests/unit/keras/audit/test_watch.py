"""Bits of held elements, compared channel by channel with NumPy."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from tb_pastnet.keras.audit.watch import Watch, channels_at, values_at, which_moved
from tb_pastnet.keras.masks.hold import Hold
from tb_pastnet.keras.model.weights import network

BITS = {2: np.int16, 4: np.int32, 8: np.int64}
DTYPES = ["float16", "bfloat16", "float32", "float64"]
AXES = [-1, 0, 1, (2, 0), (0, 1), (1, 0, 2)]


def watched(values, dtype="float32", axis=-1, through=None):
    variable = tf.Variable(tf.cast(values, dtype))
    record = network({"w": variable}, channel_axes={"w": axis} if len(variable.shape) else {})
    watch = Watch(record.weights[0])
    hold = None
    if through is not None:
        hold = Hold(variable)
        hold.write(np.ones(variable.shape, bool), through)
    watch.follow(hold, flagged=hold is None)
    return variable, watch


def truth(watch, before, after, held):
    bits = BITS[before.itemsize]
    differ = held & (before.view(bits) != after.view(bits))
    with np.errstate(all="ignore"):
        size = abs(after.astype("f8") - before.astype("f8"))
    size = np.where(differ, np.where(np.isfinite(size), size, np.inf), 0)
    split = watch.record.axis.split
    return split(differ).sum(1), split(held).sum(1), split(size).max(1)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("axis", AXES)
def test_equal_to_numpy(dtype, axis):
    rng = np.random.default_rng(1)
    through = rng.random((3, 4, 5)) < 0.5
    variable, watch = watched(rng.normal(size=(3, 4, 5)), dtype, axis, through)
    before = variable.numpy().copy()
    change = np.where(rng.random((3, 4, 5)) < 0.3, rng.normal(size=(3, 4, 5)), 0)
    variable.assign(variable + tf.cast(change, dtype))
    found = watch.channels()
    differ, held, largest = truth(watch, before, variable.numpy(), ~through)
    assert differ.any()
    np.testing.assert_array_equal(found.differ, differ)
    np.testing.assert_array_equal(found.held, held)
    np.testing.assert_array_equal(found.largest, largest)


@pytest.mark.parametrize("dtype", DTYPES)
def test_bits_not_numbers(dtype):
    nan, inf = np.nan, np.inf
    variable, watch = watched([0.0, nan, 1.0, inf, 2.0, 3.0], dtype)
    variable.assign(tf.cast([-0.0, nan, nan, inf, -inf, 3.0], dtype))
    found = watch.channels()
    assert found.differ.tolist() == [1, 0, 1, 0, 1, 0]
    assert found.largest.tolist() == [0, 0, inf, 0, inf, 0]
    assert watch.moved().numpy().tolist() == [True, False, True, False, True, False]


def test_a_nan_with_other_bits_has_moved():
    bits = np.array([0x7FC00000, 0x7FC00000], np.int32)
    variable, watch = watched(bits.view("f"))
    variable.assign(np.array([0x7FC00000, 0x7FC00001], np.int32).view("f"))
    assert watch.channels().differ.tolist() == [0, 1]


def test_subnormals_are_seen():
    variable, watch = watched(np.zeros(2))
    variable.assign(np.array([0, 1e-45], "f"))
    assert watch.channels().differ.tolist() == [0, 1]


def test_a_scalar_is_one_channel():
    variable, watch = watched(1.0)
    variable.assign(3.0)
    found = watch.channels()
    assert (found.differ.tolist(), found.largest.tolist()) == ([1], [2.0])
    assert watch.worst(np.array([0]), 256).tolist() == [0]
    assert channels_at(watch.record.axis, np.array([0])).tolist() == [0]


def test_pruned_is_held_at_zero_and_frozen_at_its_value():
    variable, watch = watched(np.array([1.0, 2, 3]))
    hold = Hold(variable)
    hold.write(np.array([False, True, True]), np.array([True, False, True]))
    watch.follow(hold, flagged=False)
    assert watch.channels().differ.tolist() == [1, 0, 0]
    variable.assign([0.0, 2.5, 7])
    found = watch.channels()
    assert (found.differ.tolist(), found.largest.tolist()) == ([0, 1, 0], [0, 0.5, 0])


def test_masks_and_a_flag_hold_together():
    variable, watch = watched(np.array([1.0, 2, 3]))
    hold = Hold(variable)
    hold.write(np.array([False, True, True]), np.ones(3, bool))
    watch.follow(hold, flagged=True)
    found = watch.channels()
    assert found.held.tolist() == [1, 1, 1]
    # The first element is pruned, so it should be zero by now.
    assert found.differ.tolist() == [1, 0, 0]
    variable.assign([0.0, 2, 4])
    assert watch.channels().differ.tolist() == [0, 0, 1]


def test_the_reference_is_given_up_with_the_flag_and_taken_anew():
    variable, watch = watched(np.array([1.0, 2]))
    assert not watch.follow(None, flagged=True)
    assert watch.follow(None, flagged=False)
    assert watch.reference is None
    variable.assign([5.0, 6])
    assert watch.follow(None, flagged=True)
    assert watch.channels().differ.tolist() == [0, 0]


def test_the_reference_is_a_copy():
    table, watch = watched(np.arange(12).reshape(4, 3), axis=0)
    table.scatter_update(tf.IndexedSlices(tf.constant([[9.0, 9, 9]]), tf.constant([2])))
    assert watch.channels().differ.tolist() == [0, 0, 3, 0]


def test_other_masks_are_others_to_hold():
    through = np.array([False, True, True])
    _, watch = watched(np.array([1.0, 2, 3]), through=through)
    assert not watch.follow(watch.hold, flagged=False)
    before = watch.version
    watch.hold.write(np.ones(3, bool), np.array([False, False, True]))
    assert watch.follow(watch.hold, flagged=False)
    assert watch.version == before


def test_fingerprints_tell_movement_from_holding_anew():
    through = np.array([[False, True], [False, True]])
    variable, watch = watched(np.zeros((2, 2)), through=through)
    start = watch.channels()
    variable.assign([[1.0, 5], [2, 5]])
    moved = watch.channels()
    assert (moved.then == start.then).all()
    assert (moved.now != start.now).tolist() == [True, False]
    variable.assign([[2.0, 5], [1, 5]])
    assert watch.channels().now[0] != moved.now[0]
    watch.hold.write(np.ones((2, 2), bool), np.array([[False, True], [True, True]]))
    assert (watch.channels().then != start.then).tolist() == [True, False]


@pytest.mark.parametrize("axis", AXES)
def test_the_worst_of_each_channel(axis):
    rng = np.random.default_rng(2)
    variable, watch = watched(rng.normal(size=(3, 4, 5)), axis=axis)
    change = rng.normal(size=(3, 4, 5)) * (rng.random((3, 4, 5)) < 0.6)
    variable.assign_add(change.astype("f"))
    split = watch.record.axis.split(abs(change))
    channels = np.flatnonzero(split.any(1))[:4]
    found = watch.worst(channels, len(channels))
    np.testing.assert_allclose(values_at(abs(change), found), split.max(1)[channels])
    np.testing.assert_array_equal(channels_at(watch.record.axis, found), channels)
    every = watch.worst(np.arange(watch.record.axis.channels), 256)
    assert sorted(every.tolist()) == np.flatnonzero(change).tolist()


def test_the_first_replica_of_mirrored_variables_is_read():
    strategy = tf.distribute.MirroredStrategy(["CPU:0"])
    with strategy.scope():
        variable = tf.Variable([1.0, 2])
    watch = Watch(network({"w": variable}).weights[0])
    watch.follow(None, flagged=True)
    variable.assign([1.0, 3])
    assert watch.channels().differ.tolist() == [0, 1]


def test_several_variables_at_once():
    shapes = [(2, 3), (4,), (2, 3), (), (300, 300), (2, 3), (4,), (300, 300)]
    dtypes = ["float32"] * 5 + ["float16", "float32", "float32"]
    watches = [watched(np.ones(s), d)[1] for s, d in zip(shapes, dtypes, strict=True)]
    assert not which_moved(watches).numpy().any()
    for number in (1, 2, 7):
        watches[number].variable.assign_add(
            tf.one_hot(0, shapes[number][-1]) * tf.ones(shapes[number])
        )
        moved = [watch.moved().numpy().any() for watch in watches]
        assert moved[number]
        assert which_moved(watches).numpy().tolist() == moved
