"""What an audit costs, and that it can't fail what it watches."""

from __future__ import annotations

import gc
import weakref

import keras
import numpy as np
import pytest
import tensorflow as tf

from tb_pastnet.keras.audit.held_weight import HeldWeight, which_moved
from tb_pastnet.keras.audit.model_audit import ModelAudit
from tb_pastnet.keras.audit.model_audit import audit_of as audited
from tb_pastnet.keras.masks.masks import Masks
from tb_pastnet.keras.model.tf_weights import network

KERNEL = "dense/kernel"


def small():
    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(2)])
    model.compile("sgd", "mse")
    return model


def audit_of(model, **settings):
    return audited(model, network(model).weights, **settings)


def move(model):
    model.layers[0].kernel.assign_add(tf.ones((3, 2)))


@pytest.fixture
def model():
    return small()


@pytest.fixture
def masks(model):
    return Masks(model, enforce=False)


def test_other_masks_need_no_new_function(model, masks, monkeypatch):
    # As on an accelerator: here nothing is compiled.
    monkeypatch.setattr(HeldWeight, "here", False)
    masks.freeze(KERNEL, channels=[0])
    audit = audit_of(model)
    audit.check(1)
    made = []

    def counted(watches):
        made.append(len(watches))
        return which_moved(watches)

    monkeypatch.setattr("tb_pastnet.keras.audit.model_audit.which_moved", counted)
    masks.freeze(KERNEL, channels=[1])
    masks.thaw(KERNEL, channels=[0])
    assert audit.check(2) == []
    assert made == []
    masks.freeze("bias")
    assert audit.check(3) == []
    assert made == [2]


def test_a_violation_is_the_only_thing_that_is_read_channel_by_channel(model, masks, monkeypatch):
    masks.freeze(KERNEL)
    masks.freeze("bias")
    audit = audit_of(model)
    read = []
    channels = HeldWeight.channels
    monkeypatch.setattr(HeldWeight, "channels", lambda self: read.append(1) or channels(self))
    audit.check(1)
    assert read == []
    move(model)
    audit.check(2)
    assert len(read) == 1


def test_masks_do_not_keep_an_audit_alive(model, masks):
    masks.freeze(KERNEL)
    gone = weakref.ref(audit_of(model))
    gc.collect()
    assert gone() is None
    masks.freeze("bias")


def test_a_change_of_masks_does_not_fail_with_the_audit(model, masks, monkeypatch):
    masks.freeze(KERNEL)
    audit = audit_of(model)
    monkeypatch.setattr(audit, "_follow", lambda *_: 1 / 0)
    masks.freeze("bias")
    with pytest.raises(ZeroDivisionError):
        audit.observe()


def test_a_cause_that_fails_to_be_found_is_unknown(model, masks, monkeypatch):
    masks.freeze(KERNEL)
    audit = audit_of(model)
    monkeypatch.setattr("tb_pastnet.record.audit.freeze_audit.cause_of", lambda evidence: 1 / 0)
    move(model)
    assert {one.cause for one in audit.check(1)} == {"unknown"}


def test_an_optimizer_that_can_not_be_read():
    model = small()
    Masks(model, enforce=False).freeze(KERNEL)
    audit = audit_of(model, optimizer=object())
    move(model)
    assert {one.cause for one in audit.check(1)} == {"loaded"}
    model.layers[0].kernel.value.assign_add(np.ones((3, 2)))
    audit.restart()
    assert {one.cause for one in audit.check(2)} == {"unknown"}


class Asked(keras.layers.Dense):
    """A layer that counts how often it is asked whether it is trainable."""

    count = 0

    @property
    def trainable(self):
        Asked.count += 1
        return True

    @trainable.setter
    def trainable(self, value):
        pass


def test_observing_at_each_step_asks_each_layer_once_and_no_variable(monkeypatch):
    model = keras.Sequential([keras.Input((2,)), *[Asked(2) for _ in range(100)]])
    audit = audit_of(model)
    asked = []
    monkeypatch.setattr(ModelAudit, "trainable", lambda *_: asked.append(1))
    Asked.count = 0
    audit.observe(quick=True)
    assert Asked.count == 100
    assert not asked
