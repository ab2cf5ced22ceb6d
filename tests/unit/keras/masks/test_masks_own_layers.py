"""Masks of a model with layers that own their masks."""

from __future__ import annotations

import logging

import keras
import numpy as np
import pytest

from tb_pastnet import MaskedDense, Masks, OneShot, PruningCallback, Recorder, read
from tb_pastnet.errors import InvalidArgument

X, Y = np.ones((8, 6), "f4"), np.ones((8, 4), "f4")


def network(*layers):
    keras.utils.set_random_seed(0)
    model = keras.Sequential([keras.Input((6,)), *layers])
    model.compile("sgd", "mse")
    return model


def test_a_model_of_such_layers_is_not_pruned_by_masks():
    model = network(MaskedDense(4, name="own"))
    text = (
        "Could not mask 'own/kernel': expected a weight without masks, got one of a layer that "
        "owns its masks. Call the layer's own prune and freeze."
    )
    masks = Masks(model)
    with pytest.raises(InvalidArgument, match=text):
        masks.prune_smallest(0.5)
    pruning = PruningCallback(masks, OneShot(0.5, 0))
    with pytest.raises(InvalidArgument, match=text):
        model.fit(X, Y, verbose=0, callbacks=[pruning])


def test_masks_are_those_of_the_model_though_its_layers_own_them(tmp_path):
    model = network(MaskedDense(4, name="own"))
    masks = Masks(model)
    model.fit(X, Y, verbose=0, callbacks=[PruningCallback(masks, OneShot(0.5, 9))])
    with Recorder(tmp_path, model, masks=masks) as recorder:
        recorder.record(0)
    assert len(read(tmp_path).runs) == 1


def test_other_kernels_are_pruned_and_those_left_out_are_logged_once(caplog):
    model = network(MaskedDense(8, name="own"), keras.layers.Dense(4, name="plain"))
    masks = Masks(model)
    with caplog.at_level(logging.WARNING, "tb_pastnet"):
        masks.prune_smallest(0.25)
        masks.prune_smallest(0.5)
    (record,) = caplog.records
    assert record.message == (
        "Could not prune 'own/kernel' with the other kernels: expected weights without masks, got "
        "1 of layers that own their masks. They count in sparsity(): call the layers' own prune, "
        "or pass variables=."
    )
    # 16 of the 32 weights of one kernel, while the other has 48.
    assert masks.sparsity("plain/kernel") == 0.5
    assert masks.sparsity() == masks.zeros() == 16 / 80
    model.layers[0].prune("kernel", kept=np.arange(48).reshape(6, 8) % 4 > 0)
    assert masks.sparsity() == (16 + 12) / 80


def test_kernels_that_are_named_leave_out_none(caplog):
    model = network(MaskedDense(8, name="own"), keras.layers.Dense(4, name="plain"))
    with caplog.at_level(logging.WARNING, "tb_pastnet"):
        Masks(model).prune_smallest(0.5, variables="plain/kernel")
    assert not caplog.records


def test_a_model_without_kernels_has_nothing_to_prune():
    with pytest.raises(InvalidArgument, match=r"expected a kernel, got a model without any\. Name"):
        Masks(network(keras.layers.LayerNormalization())).prune_smallest(0.5)
