"""Held arrays, compared bit by bit with what they were when they were held."""

from __future__ import annotations

import numpy as np
import pytest

from tb_pastnet.core.axes import explicit_axis
from tb_pastnet.record.audit.array_audit import ArrayAudit
from tb_pastnet.record.audit.causes import Facts
from tb_pastnet.record.audit.freeze_audit import Audit, CauseFinder
from tb_pastnet.record.audit.held_array import HeldArray
from tb_pastnet.record.weight import Weight


class ArrayWeight(Weight):
    def __init__(self, name, array, *, free=True, **settings):
        axis = explicit_axis(0, array.shape, name)
        super().__init__(name, array.shape, array.dtype.name, axis, **settings)
        self.array, self.free = array, free

    def read(self):
        return self.array

    def trainable(self):
        return self.free


class Stored:
    """Masks as a framework's room keeps them."""

    enforced, generation = False, 0

    def __init__(self, kept, trainable):
        self.kept, self.trainable = np.asarray(kept, bool), np.asarray(trainable, bool)

    def read(self):
        return self.kept, self.trainable


class Values(CauseFinder):
    """Remembers the values that a cause is found by."""

    def facts(self, held, channels):
        self.was, self.current = held.values_at(held.worst(channels, 10))
        return Facts(self.was, self.current, assigned=True)


def audit_of(*weights):
    causes = Values()
    return Audit(ArrayAudit(weights, causes), lambda: None), causes


def brief(violations):
    return [(v.variable, v.channel, v.elements, v.held, v.largest, v.cause) for v in violations]


def test_a_weight_that_is_frozen_later_is_held_at_its_value_of_then():
    weight = ArrayWeight("a/w", np.zeros((2, 3), np.float32))
    audit, causes = audit_of(weight)
    weight.array[:] = 1
    assert audit.check(1) == []
    weight.free = False
    audit.observe()  # a flag alone is seen
    weight.array[1, 2] = 1.5
    assert brief(audit.check(2)) == [("a/w", 1, 1, 3, 0.5, "loaded")]
    assert (causes.was.tolist(), causes.current.tolist()) == ([1.0], [1.5])
    weight.free = True
    weight.array[:] = 9
    assert audit.check(3) == []


def test_bits_are_compared():
    weight = ArrayWeight("a/w", np.array([0.0, np.nan, 1.0], np.float32), free=False)
    audit, _ = audit_of(weight)
    weight.array[1] = np.nan
    assert audit.check(1) == []
    weight.array[0] = -0.0
    assert [v.channel for v in audit.check(2)] == [0]


@pytest.mark.parametrize("settings", [{"statistic": True}, {"follows": True}])
def test_statistics_and_what_follows_are_not_held(settings):
    weight = ArrayWeight("a/w", np.zeros(3, np.float32), free=False, **settings)
    audit, _ = audit_of(weight)
    weight.array[:] = 1
    assert audit.check(1) == []


def test_masks_hold_some_elements_at_zero_or_at_what_they_were():
    weight = ArrayWeight("a/w", np.arange(1, 7, dtype=np.float32).reshape(2, 3))
    held = HeldArray(weight)
    masks = Stored([[1, 1, 0], [1, 1, 1]], [[0, 1, 1], [1, 1, 1]])
    assert held.follow(masks, flagged=False)
    assert held.flags().tolist() == [[True, False, True], [False, False, False]]
    assert held.channels().differ.tolist() == [1, 0]  # what is pruned isn't zero yet
    weight.array[0] = [1, 9, 0]
    assert held.channels().differ.tolist() == [0, 0]
    # Frozen by one more element: the first keeps what it was, the new one has its value of now.
    weight.array[0, 0] = 5
    more = Stored(masks.kept, [[0, 0, 1], [1, 1, 1]])
    assert held.follow(more, flagged=False)
    assert not held.follow(more, flagged=False)
    assert held.channels().differ.tolist() == [1, 0]
    expected, current = held.values_at(np.array([0, 1, 2]))
    assert (expected.tolist(), current.tolist()) == ([1, 9, 0], [5, 9, 0])


def test_regrown_and_frozen_it_is_held_at_its_value_of_then():
    weight = ArrayWeight("a/w", np.zeros(2, np.float32))
    held = HeldArray(weight)
    held.follow(Stored([0, 1], [1, 1]), flagged=False)
    weight.array[0] = 3
    assert held.follow(Stored([1, 1], [0, 1]), flagged=False)
    assert not held.channels().differ.any()


def test_pruned_weights_are_zeros_of_either_sign():
    weight = ArrayWeight("a/w", np.array([-0.0, 2], np.float32))
    held = HeldArray(weight)
    held.follow(Stored([0, 1], [1, 0]), flagged=False)
    assert not held.channels().differ.any()
    weight.array[:] = [0.0, 2]
    assert not held.channels().differ.any()
    weight.array[:] = [1e-45, 2]
    assert held.channels().differ.tolist() == [1, 0]


def test_the_flag_holds_all_and_pruned_ones_at_zero():
    weight = ArrayWeight("a/w", np.array([2, 0], np.float32))
    held = HeldArray(weight)
    held.follow(Stored([1, 0], [1, 1]), flagged=True)
    assert held.flagged
    assert held.channels().held.tolist() == [1, 1]
    weight.array[:] = [2, 1]
    assert held.channels().differ.tolist() == [0, 1]
