"""What is held, since when it is violated, and what ends that."""

from __future__ import annotations

import gc

import keras
import numpy as np
import pytest
import tensorflow as tf

from tb_pastnet.keras.audit.model_audit import audit_of as audited
from tb_pastnet.keras.layers.masked import Masked
from tb_pastnet.keras.masks.masks import Masks
from tb_pastnet.keras.model.tf_weights import network

KERNEL = "dense/kernel"


def small(*layers):
    model = keras.Sequential([keras.Input((3,)), *(layers or (keras.layers.Dense(2),))])
    model.compile("sgd", "mse")
    return model


def audit_of(model, **settings):
    return audited(model, network(model).weights, **settings)


def move(model, channel=0, by=1.0, layer=0):
    kernel = model.layers[layer].kernel
    kernel.assign_add(by * tf.one_hot(channel, kernel.shape[-1]) * tf.ones(kernel.shape))


def brief(violations):
    return [(one.variable, one.channel, one.first_step, one.last_step) for one in violations]


@pytest.fixture
def model():
    return small()


@pytest.fixture
def masks(model):
    return Masks(model, enforce=False)


def test_nothing_is_held(model):
    audit = audit_of(model)
    move(model)
    assert audit.check(1) == []
    assert audit.violations == []
    assert audit.notes == []


def test_declared_masks_come_later(model):
    audit = audit_of(model)
    masks = Masks(model, enforce=False)
    masks.freeze(KERNEL, channels=[1])
    move(model, 0)
    assert audit.check(1) == []
    move(model, 1, 0.5)
    [found] = audit.check(2)
    assert brief([found]) == [(KERNEL, 1, 2, 2)]
    assert (found.elements, found.held) == (3, 3)
    assert found.largest == pytest.approx(0.5)


def test_masks_of_what_cannot_carry_them():
    variable = tf.Variable(np.ones((3, 2), "f"))
    mapping = {"dense/kernel": variable}
    masks = Masks(mapping, enforce=False)
    audit = audit_of(mapping, masks=lambda: masks.state)
    masks.freeze(KERNEL, channels=[1])
    tf.function(lambda: variable.assign_add([[0, 1], [0, 0], [0, 0]]))()
    [found] = audit.check(4)
    assert (found.channel, found.elements, found.held, found.cause) == (1, 1, 3, "unknown")


def test_assign_of_a_plain_variable_is_seen():
    variable = tf.Variable(np.ones((3, 2), "f"))
    mapping = {"dense/kernel": variable}
    masks = Masks(mapping, enforce=False)
    audit = audit_of(mapping, masks=lambda: masks.state)
    masks.freeze(KERNEL, channels=[1])
    variable.assign(np.zeros((3, 2)))
    assert [one.cause for one in audit.check(4)] == ["loaded"]


def test_last_step_grows_only_while_it_moves(model, masks):
    masks.freeze(KERNEL)
    audit = audit_of(model)
    move(model, 1)
    assert brief(audit.check(10)) == [(KERNEL, 1, 10, 10)]
    assert audit.check(20) == []
    move(model, 1)
    [found] = audit.check(30)
    assert brief([found]) == [(KERNEL, 1, 10, 30)]
    assert found.largest == pytest.approx(2)
    move(model, 0)
    assert brief(audit.check(40)) == [(KERNEL, 0, 40, 40)]
    assert brief(audit.violations) == [(KERNEL, 1, 10, 30), (KERNEL, 0, 40, 40)]


def test_back_at_its_value_it_has_ended(model, masks):
    masks.freeze(KERNEL)
    audit = audit_of(model)
    good = model.get_weights()
    move(model, 1)
    audit.check(1)
    model.set_weights(good)
    assert audit.check(2) == []
    move(model, 1)
    assert brief(audit.check(3)) == [(KERNEL, 1, 3, 3)]
    assert brief(audit.violations) == [(KERNEL, 1, 1, 1), (KERNEL, 1, 3, 3)]


def test_one_of_two_channels_is_back(model, masks):
    masks.freeze(KERNEL)
    audit = audit_of(model)
    good = model.layers[0].kernel.numpy()
    move(model, 0)
    move(model, 1)
    audit.check(1)
    model.layers[0].kernel.assign(np.where([True, False], good, model.layers[0].kernel.numpy()))
    assert audit.check(2) == []
    move(model, 0)
    assert brief(audit.check(3)) == [(KERNEL, 0, 3, 3)]


def test_thawed_and_frozen_again_it_starts_anew(model, masks):
    masks.freeze(KERNEL)
    audit = audit_of(model)
    move(model, 1)
    audit.check(1)
    masks.thaw(KERNEL)
    masks.freeze(KERNEL)
    assert audit.check(2) == []
    move(model, 1)
    assert brief(audit.check(3)) == [(KERNEL, 1, 3, 3)]


def test_held_anew_and_moved_between_two_checks(model, masks):
    masks.freeze(KERNEL)
    audit = audit_of(model)
    move(model, 1)
    audit.check(1)
    masks.thaw(KERNEL)
    masks.freeze(KERNEL)
    move(model, 1)
    [found] = audit.check(2)
    assert brief([found]) == [(KERNEL, 1, 2, 2)]
    assert found.largest == pytest.approx(1)
    assert brief(audit.violations) == [(KERNEL, 1, 1, 1), (KERNEL, 1, 2, 2)]


def test_regrown_and_pruned_again(model, masks):
    model.layers[0].kernel.assign(np.ones((3, 2)))
    kept = np.array([[1, 0], [1, 1], [1, 1]])
    masks.prune(KERNEL, kept)
    audit = audit_of(model)
    # Only declared: nobody has set it to zero.
    assert brief(audit.check(1)) == [(KERNEL, 1, 1, 1)]
    masks.regrow(KERNEL)
    assert audit.check(2) == []
    masks.prune(KERNEL, kept)
    assert brief(audit.check(3)) == [(KERNEL, 1, 3, 3)]
    model.layers[0].kernel.assign(kept)
    assert audit.check(4) == []


def test_restart_finds_anew_what_is_violated(model, masks):
    masks.freeze(KERNEL)
    audit = audit_of(model)
    move(model, 1)
    audit.check(50)
    audit.restart()
    assert brief(audit.check(41)) == [(KERNEL, 1, 41, 41)]


def test_trainable_false(model):
    layer = model.layers[0]
    audit = audit_of(model)
    move(model)
    layer.trainable = False
    audit.observe()
    move(model)
    assert brief(audit.check(2)) == [(KERNEL, 0, 2, 2)]
    layer.trainable = True
    move(model)
    assert audit.check(3) == []
    layer.trainable = False
    assert audit.check(4) == []
    move(model)
    assert brief(audit.check(5)) == [(KERNEL, 0, 5, 5)]


def test_a_quick_look_sees_layers_and_a_check_variables_too(model):
    audit = audit_of(model)
    layer = model.layers[0]
    layer.kernel.trainable = False
    audit.observe(quick=True)
    move(model)
    assert audit.check(1) == []  # held from here on
    move(model)
    assert brief(audit.check(2)) == [(KERNEL, 0, 2, 2)]
    layer.trainable = True
    layer.trainable = False
    audit.observe(quick=True)
    layer.bias.assign_add([1.0, 0.0])
    assert [one.variable for one in audit.check(3)] == ["dense/bias"]


def test_a_flag_seen_twice_between_two_checks_holds_the_newer_value(model):
    audit = audit_of(model)
    for _ in range(3):
        model.trainable = False
        audit.observe()
        assert audit.check(1) == []
        model.trainable = True
        audit.observe()
        move(model)
        gc.collect()


def test_statistics_are_never_held():
    model = small(keras.layers.Dense(2), keras.layers.BatchNormalization())
    model.trainable = False
    audit = audit_of(model)
    norm = model.layers[1]
    norm.moving_mean.assign([1.0, 2.0])
    assert audit.check(1) == []
    norm.gamma.assign([3.0, 1.0])
    assert brief(audit.check(2)) == [("batch_normalization/gamma", 0, 2, 2)]


def test_layers_with_masks_of_their_own():
    model = small(Masked(keras.layers.Dense(2)))
    layer = model.layers[0]
    kernel = layer.masked_weight("kernel")
    audit = audit_of(model)
    kernel.freeze()
    layer.layer.kernel.assign(np.zeros((3, 2)))
    assert audit.check(1) == []
    model.trainable = False
    audit.observe()
    kernel.prune([[1, 0], [1, 1], [1, 1]])
    assert audit.check(2) == []
    kernel.thaw()
    audit.observe()
    layer.layer.kernel.assign(np.full((3, 2), 7.0))
    assert {one.channel for one in audit.check(3)} == {0, 1}


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64"])
def test_other_dtypes(dtype):
    # Not random: of few bits one weight in a hundred is 0, which stays what it is.
    model = small(keras.layers.Dense(2, dtype=dtype, kernel_initializer="ones"))
    Masks(model, enforce=False).freeze(KERNEL, channels=[1])
    audit = audit_of(model)
    kernel = model.layers[0].kernel
    kernel.assign(kernel.numpy() * np.array([2, 3], kernel.numpy().dtype))
    [found] = audit.check(1)
    assert (found.channel, found.elements, found.cause) == (1, 3, "loaded")
