"""Masks that only say what is held."""

from __future__ import annotations

import gc

import numpy as np

from tb_pastnet.core.axes import explicit_axis
from tb_pastnet.record.masks.declared_masks import declared_table
from tests.unit.record.test_array_source import Changing


def weight_of(name):
    return Changing(name, np.ones((2, 3), np.float32), -1)


def test_all_goes_through_until_masks_are_declared():
    table = declared_table([weight_of("a/kernel"), weight_of("b/kernel")])
    assert dict(table.masked) == {}
    kept, trainable = table.read("a/kernel")
    assert kept.all()
    assert trainable.all()


def test_what_is_declared_stays_and_is_a_change():
    table = declared_table([weight_of("a/kernel"), weight_of("b/kernel")])
    version, kept = table.version, np.array([[0, 1, 1], [1, 1, 1]], bool)
    table.write("a/kernel", kept, ~kept)
    gc.collect()
    assert table.version > version
    np.testing.assert_array_equal(table.read("a/kernel"), [kept, ~kept])
    (storage,) = table.masked.values()
    assert not storage.enforced
    assert table.read("b/kernel")[0].all()


def test_masks_of_one_table_are_none_of_another():
    weight = weight_of("a/kernel")
    table, other = declared_table([weight]), declared_table([weight])
    table.write("a/kernel", np.zeros((2, 3), bool), np.ones((2, 3), bool))
    assert other.storage_of(weight.variable) is None
    assert weight.axis == explicit_axis(-1, (2, 3), "a/kernel")
