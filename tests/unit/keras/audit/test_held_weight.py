"""Bits of held elements, compared channel by channel with NumPy."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from tb_pastnet.keras.audit.held_weight import HeldWeight, values_at, which_moved
from tb_pastnet.keras.masks.variable_masks import VariableMasks
from tb_pastnet.keras.model.tf_weights import network

BITS = {2: np.int16, 4: np.int32, 8: np.int64}
DTYPES = ["float16", "bfloat16", "float32", "float64"]
AXES = [-1, 0, 1, (2, 0), (0, 1), (1, 0, 2)]


def held_weight(values, dtype="float32", axis=-1, through=None):
    variable = tf.Variable(tf.cast(values, dtype))
    record = network({"w": variable}, channel_axes={"w": axis} if len(variable.shape) else {})
    held = HeldWeight(record.weights[0])
    masks = None
    if through is not None:
        masks = VariableMasks(variable)
        masks.write(np.ones(variable.shape, bool), through)
    held.follow(masks, flagged=masks is None)
    return variable, held


def truth(weight, before, after, held):
    bits = BITS[before.itemsize]
    differ = held & (before.view(bits) != after.view(bits))
    with np.errstate(all="ignore"):
        size = abs(after.astype("f8") - before.astype("f8"))
    size = np.where(differ, np.where(np.isfinite(size), size, np.inf), 0)
    split = weight.axis.split
    return split(differ).sum(1), split(held).sum(1), split(size).max(1)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("axis", AXES)
def test_equal_to_numpy(dtype, axis):
    rng = np.random.default_rng(1)
    through = rng.random((3, 4, 5)) < 0.5
    variable, held = held_weight(rng.normal(size=(3, 4, 5)), dtype, axis, through)
    before = variable.numpy().copy()
    change = np.where(rng.random((3, 4, 5)) < 0.3, rng.normal(size=(3, 4, 5)), 0)
    variable.assign(variable + tf.cast(change, dtype))
    found = held.channels()
    differ, count, largest = truth(held, before, variable.numpy(), ~through)
    assert differ.any()
    np.testing.assert_array_equal(found.differ, differ)
    np.testing.assert_array_equal(found.held, count)
    np.testing.assert_array_equal(found.largest, largest)


@pytest.mark.parametrize("dtype", DTYPES)
def test_bits_not_numbers(dtype):
    nan, inf = np.nan, np.inf
    variable, held = held_weight([0.0, nan, 1.0, inf, 2.0, 3.0], dtype)
    variable.assign(tf.cast([-0.0, nan, nan, inf, -inf, 3.0], dtype))
    found = held.channels()
    assert found.differ.tolist() == [1, 0, 1, 0, 1, 0]
    assert found.largest.tolist() == [0, 0, inf, 0, inf, 0]
    assert held.compared().differ().tolist() == [True, False, True, False, True, False]


def test_a_nan_with_other_bits_has_moved():
    bits = np.array([0x7FC00000, 0x7FC00000], np.int32)
    variable, held = held_weight(bits.view("f"))
    variable.assign(np.array([0x7FC00000, 0x7FC00001], np.int32).view("f"))
    assert held.channels().differ.tolist() == [0, 1]


def test_subnormals_are_seen():
    variable, held = held_weight(np.zeros(2))
    variable.assign(np.array([0, 1e-45], "f"))
    assert held.channels().differ.tolist() == [0, 1]


def test_a_scalar_is_one_channel():
    variable, held = held_weight(1.0)
    variable.assign(3.0)
    found = held.channels()
    assert (found.differ.tolist(), found.largest.tolist()) == ([1], [2.0])
    assert held.worst(np.array([0]), 256).tolist() == [0]


def test_pruned_is_held_at_zero_and_frozen_at_its_value():
    variable, held = held_weight(np.array([1.0, 2, 3]))
    masks = VariableMasks(variable)
    masks.write(np.array([False, True, True]), np.array([True, False, True]))
    held.follow(masks, flagged=False)
    assert held.channels().differ.tolist() == [1, 0, 0]
    variable.assign([0.0, 2.5, 7])
    found = held.channels()
    assert (found.differ.tolist(), found.largest.tolist()) == ([0, 1, 0], [0, 0.5, 0])


def test_masks_and_a_flag_hold_together():
    variable, held = held_weight(np.array([1.0, 2, 3]))
    masks = VariableMasks(variable)
    masks.write(np.array([False, True, True]), np.ones(3, bool))
    held.follow(masks, flagged=True)
    found = held.channels()
    assert found.held.tolist() == [1, 1, 1]
    # The first element is pruned, so it should be zero by now.
    assert found.differ.tolist() == [1, 0, 0]
    variable.assign([0.0, 2, 4])
    assert held.channels().differ.tolist() == [0, 0, 1]


def test_the_reference_is_given_up_with_the_flag_and_taken_anew():
    variable, held = held_weight(np.array([1.0, 2]))
    assert not held.follow(None, flagged=True)
    assert held.follow(None, flagged=False)
    assert held.reference is None
    variable.assign([5.0, 6])
    assert held.follow(None, flagged=True)
    assert held.channels().differ.tolist() == [0, 0]


def test_the_reference_is_a_copy():
    table, held = held_weight(np.arange(12).reshape(4, 3), axis=0)
    table.scatter_update(tf.IndexedSlices(tf.constant([[9.0, 9, 9]]), tf.constant([2])))
    assert held.channels().differ.tolist() == [0, 0, 3, 0]


def test_other_masks_are_others_to_hold():
    through = np.array([False, True, True])
    _, held = held_weight(np.array([1.0, 2, 3]), through=through)
    assert not held.follow(held.masks, flagged=False)
    before = held.version
    held.masks.write(np.ones(3, bool), np.array([False, False, True]))
    assert held.follow(held.masks, flagged=False)
    assert held.version == before


def test_fingerprints_tell_movement_from_holding_anew():
    through = np.array([[False, True], [False, True]])
    variable, held = held_weight(np.zeros((2, 2)), through=through)
    start = held.channels()
    variable.assign([[1.0, 5], [2, 5]])
    moved = held.channels()
    assert (moved.expected == start.expected).all()
    assert (moved.fingerprint != start.fingerprint).tolist() == [True, False]
    variable.assign([[2.0, 5], [1, 5]])
    assert held.channels().fingerprint[0] != moved.fingerprint[0]
    held.masks.write(np.ones((2, 2), bool), np.array([[False, True], [True, True]]))
    held.follow(held.masks, flagged=False)
    assert (held.channels().expected != start.expected).tolist() == [True, False]


@pytest.mark.parametrize("axis", AXES)
def test_the_worst_of_each_channel(axis):
    rng = np.random.default_rng(2)
    variable, held = held_weight(rng.normal(size=(3, 4, 5)), axis=axis)
    change = rng.normal(size=(3, 4, 5)) * (rng.random((3, 4, 5)) < 0.6)
    variable.assign_add(change.astype("f"))
    split = held.axis.split(abs(change))
    channels = np.flatnonzero(split.any(1))[:4]
    found = held.worst(channels, len(channels))
    np.testing.assert_allclose(values_at(abs(change), found), split.max(1)[channels])
    numbers = held.axis.split(np.arange(change.size))
    assert [np.argwhere(numbers == one)[0, 0] for one in found] == channels.tolist()
    every = held.worst(np.arange(held.axis.channels), 256)
    assert sorted(every.tolist()) == np.flatnonzero(change).tolist()


def test_the_first_replica_of_mirrored_variables_is_read():
    strategy = tf.distribute.MirroredStrategy(["CPU:0"])
    with strategy.scope():
        variable = tf.Variable([1.0, 2])
    held = HeldWeight(network({"w": variable}).weights[0])
    held.follow(None, flagged=True)
    variable.assign([1.0, 3])
    assert held.channels().differ.tolist() == [0, 1]


def test_several_variables_at_once():
    shapes = [(2, 3), (4,), (2, 3), (), (300, 300), (2, 3), (4,), (300, 300)]
    dtypes = ["float32"] * 5 + ["float16", "float32", "float32"]
    heldes = [held_weight(np.ones(s), d)[1] for s, d in zip(shapes, dtypes, strict=True)]
    assert not which_moved(heldes).numpy().any()
    for number in (1, 2, 7):
        heldes[number].variable.assign_add(
            tf.one_hot(0, shapes[number][-1]) * tf.ones(shapes[number])
        )
        moved = [held.compared().differ().any() for held in heldes]
        assert moved[number]
        assert which_moved(heldes).numpy().tolist() == moved
