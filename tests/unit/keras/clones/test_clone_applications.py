"""Large networks: those that come with Keras."""

from __future__ import annotations

import keras
import numpy as np
import pytest

from tb_pastnet import clone_network
from tests.clones import equal, move, values

APPLICATIONS = {
    "MobileNetV2": {"alpha": 0.35},
    "MobileNetV3Small": {"alpha": 0.75, "minimalistic": True},
    "EfficientNetB0": {},
    "DenseNet121": {},
    "ResNet50V2": {},
}


def built(name):
    kind = getattr(keras.applications, name)
    return kind(input_shape=(32, 32, 3), weights=None, classes=3, **APPLICATIONS[name])


@pytest.mark.prove
@pytest.mark.parametrize("name", APPLICATIONS)
def test_applications(name):
    model = built(name)
    x = np.random.default_rng(0).uniform(0, 255, (2, 32, 32, 3)).astype("f")
    copy = clone_network(model)
    assert equal(model(x), copy(x))
    before = values(model)
    assert equal(values(copy), before)
    assert names(copy) == names(model)
    # Of intermediate tensors as well.
    half = model.layers[len(model.layers) // 2].output
    front = clone_network(model.inputs[0], half)
    assert equal(front(x), keras.Model(model.inputs[0], half)(x))
    move(copy)
    assert equal(values(model), before)


def names(model):
    # Those of seeds are counted on in a process.
    return [v.path for v in model.variables if "seed_generator" not in v.path]
