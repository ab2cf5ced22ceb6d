"""Statistics that move though their layer is frozen, which no violation shows."""

from __future__ import annotations

import keras
import numpy as np
import pytest

from tb_pastnet.keras.audit.model_audit import audit_of
from tb_pastnet.keras.masks.masks import Masks
from tb_pastnet.keras.model.tf_weights import network
from tb_pastnet.keras.model.walk import layer_variables
from tb_pastnet.keras.model.weights import network_of
from tb_pastnet.keras.variable_recorder import VariableAudit, VariableWeight
from tb_pastnet.record.audit.freeze_audit import Audit

NOTE = (
    "Statistics of frozen layers still follow their inputs, e.g. 'bn': set trainable = False on "
    "these layers and compile again to stop that"
)


def on_tensorflow(model):
    return audit_of(model, network(model).weights)


class HostValues:
    """Reads as the other backends do."""

    def read(self, variable):
        return variable.numpy()


def on_arrays(model):
    found = network_of(VariableWeight, layer_variables(model), "the model")
    for weight in found.weights:
        weight.values = HostValues()
    return Audit(VariableAudit(found.weights), lambda: None)


@pytest.fixture
def norm():
    return keras.layers.BatchNormalization(name="bn")


def model_of(norm):
    return keras.Sequential([keras.Input((3,)), keras.layers.Dropout(0.5), norm])


def move(norm, value=1.0):
    norm.moving_mean.assign(np.full(3, value))


@pytest.mark.parametrize("audited", [on_tensorflow, on_arrays])
def test_weights_are_frozen_but_the_layer_is_in_training_mode(norm, audited):
    audit = audited(model := model_of(norm))
    move(norm)
    assert audit.check(1) == []
    norm.gamma.trainable = False
    audit.check(2)
    move(norm, 2)
    audit.check(3)
    assert audit.notes == []  # beta is still trained
    norm.beta.trainable = False
    audit.check(4)
    assert audit.notes == []
    model(np.ones((4, 3), "f"), training=True)
    assert audit.check(5) == []
    move(norm, 3)
    audit.check(6)
    assert audit.notes == [NOTE]


@pytest.mark.parametrize("audited", [on_tensorflow, on_arrays])
def test_a_layer_without_weights_is_frozen_by_its_flag(audited):
    norm = keras.layers.BatchNormalization(center=False, scale=False, name="bn")
    audit = audited(model_of(norm))
    norm.trainable = False
    audit.observe(quick=True)
    move(norm)
    assert audit.check(1) == []
    assert audit.notes == [NOTE]


def test_masks_freeze_a_layer_too(norm):
    masks = Masks(model := model_of(norm), enforce=False)
    masks.freeze("bn/gamma", channels=[0])
    masks.freeze("bn/beta")
    audit = on_tensorflow(model)
    move(norm)
    audit.check(1)
    assert audit.notes == []
    masks.freeze("bn")
    move(norm, 2)
    audit.check(2)
    assert audit.notes == [NOTE]


def test_statistics_that_stay_or_moved_before_the_freeze_are_fine(norm):
    audit = on_tensorflow(model := model_of(norm))
    norm.trainable = False
    audit.check(1)
    model(np.ones((4, 3), "f"), training=True)
    audit.check(2)
    for trainable in (True, False):
        move(norm, 5 + trainable)
        norm.trainable = trainable
        audit.check(3)
    audit.check(4)
    assert audit.notes == []


def test_a_layer_frozen_without_compile_moves_in_the_traced_step():
    norm = keras.layers.BatchNormalization(center=False, scale=False, name="bn")
    model = keras.Sequential([keras.Input((3,)), norm, keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    x, y = np.arange(12, dtype="f").reshape(4, 3), np.ones((4, 1), "f")
    model.fit(x, y, verbose=0)
    norm.trainable = False
    audit = on_tensorflow(model)
    model.fit(x, y, verbose=0)
    assert audit.check(1) == []
    assert audit.notes == [NOTE]
