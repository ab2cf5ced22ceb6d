"""Layers with LoRA matrices are drawn by the weight that they compute with."""

from __future__ import annotations

import inspect

import keras
import numpy as np
import pytest
import tensorflow as tf

from tb_pastnet import Recorder, read

# Keras before 3.10 adds the product of the matrices as it is.
SCALED = "lora_alpha" in inspect.signature(keras.layers.Dense.enable_lora).parameters
ALPHA = {"lora_alpha": 3} if SCALED else {}
SCALE = 3 / 2 if SCALED else 1


@pytest.fixture
def layer():
    keras.utils.set_random_seed(3)
    model = keras.Sequential([keras.Input((6,)), keras.layers.Dense(4)])
    model.layers[0].enable_lora(2, **ALPHA)
    rng = np.random.default_rng(0)
    for matrix in (model.layers[0].lora_kernel_a, model.layers[0].lora_kernel_b):
        matrix.assign(rng.normal(size=matrix.shape))
    return model.layers[0]


def recorded(logdir, layer, change, steps=3, **options):
    model = keras.Sequential([keras.Input((6,)), layer])
    with Recorder(logdir, model, every=1, initial_step=0, **options) as recorder:
        for step in range(1, steps + 1):
            change()
            recorder.record(step)
    (run,) = read(logdir).runs.values()
    return run


def states(run, name):
    return set(run.variables[f"dense/{name}"].states()[-1])


def test_its_numbers_are_those_of_base_and_matrices(tmp_path, layer):
    values = []

    def change():
        layer.lora_kernel_b.assign_add(tf.ones((2, 4)) * [[0.1, 0, 0.2, 0]])
        base, a, b = (
            np.asarray(x) for x in (layer._kernel, layer.lora_kernel_a, layer.lora_kernel_b)
        )
        values.append(base + SCALE * (a @ b))

    run = recorded(tmp_path, layer, change)
    drawn = run.variables["dense/lora_kernel"]
    np.testing.assert_allclose(drawn.norm, np.linalg.norm(values, axis=1), rtol=0.023)
    moved = np.linalg.norm(np.diff(values, axis=0), axis=1)
    np.testing.assert_allclose(drawn.delta_norm[1:, [0, 2]], moved[:, [0, 2]], rtol=0.023)
    assert not drawn.delta_norm[:, [1, 3]].any()
    assert drawn.trainable[-1].tolist() == [1, 1, 1, 1]
    assert "channels of 'dense/lora_kernel'" in repr(run.layers["dense"])


def test_it_moves_over_a_frozen_base_which_is_audited(tmp_path, layer):
    run = recorded(tmp_path, layer, lambda: layer.lora_kernel_b.assign_add(tf.ones((2, 4))))
    assert states(run, "lora_kernel") == {"moving"}
    assert states(run, "kernel") == {"frozen"}
    assert run.violations == ()


def test_a_base_that_moves_is_a_violation_of_the_base_alone(tmp_path, layer):
    run = recorded(tmp_path, layer, lambda: layer._kernel.assign_add(tf.ones((6, 4))))
    assert {each.variable for each in run.violations} == {"dense/kernel"}


def test_where_the_layer_is_frozen_so_is_its_weight(tmp_path, layer):
    layer.trainable = False
    run = recorded(tmp_path, layer, lambda: None)
    assert states(run, "lora_kernel") == states(run, "kernel") == {"frozen"}


def test_an_adapter_that_stays_at_zero_is_stalled_and_not_pruned(tmp_path, layer):
    layer.lora_kernel_b.assign(tf.zeros((2, 4)))
    run = recorded(tmp_path, layer, lambda: None, steps=25)
    assert "pruned" not in states(run, "lora_kernel_b") | states(run, "lora_kernel")
    (finding,) = (each for each in run.findings() if each.kind == "stalled")
    assert (finding.layers, finding.channels) == (("dense",), 4)


def test_a_probe_sees_the_matrices_move(tmp_path, layer):
    x = np.ones((2, 6), "f4")
    change = lambda: layer.lora_kernel_b.assign_add(tf.ones((2, 4)))  # noqa: E731
    run = recorded(tmp_path, layer, change, probe=x)
    assert (run.function.relative > 0).all()
