"""Masks of a part are in the log of the whole."""

from __future__ import annotations

import keras
import numpy as np
import pytest

from tb_pastnet import Masks, PastNetCallback, read

X = np.random.default_rng(0).normal(size=(32, 6)).astype("f4")
Y = np.random.default_rng(1).normal(size=(32, 2)).astype("f4")


@pytest.fixture
def parts():
    return networks()


def networks():
    """Two networks, one behind the other in a third, which is compiled."""
    keras.utils.set_random_seed(2)
    first = keras.Sequential([keras.Input((6,)), keras.layers.Dense(4, "tanh")], name="first")
    second = keras.Sequential([keras.Input((4,)), keras.layers.Dense(2)], name="second")
    inputs = keras.Input((6,))
    whole = keras.Model(inputs, second(first(inputs)))
    whole.compile(keras.optimizers.AdamW(0.05), "mse")
    return first, second, whole


def fit(logdir, whole, *callbacks):
    callback = PastNetCallback(logdir, every=2)
    whole.fit(X, Y, 4, 2, verbose=0, callbacks=[callback, *callbacks])
    callback.close()
    (run,) = read(logdir).runs.values()
    return run


def test_a_part_that_is_pruned_is_so_in_the_log_of_the_whole(tmp_path, parts):
    first, _, whole = parts
    masks = Masks(first, optimizer=whole.optimizer)
    masks.prune("dense/kernel", channels=[1])
    run = fit(tmp_path, whole)
    kernel = run.variables["first/dense/kernel"]
    assert kernel.states()[-1].tolist() == ["moving", "pruned", "moving", "moving"]
    np.testing.assert_array_equal(kernel.masks(16).kept, masks.kept["dense/kernel"])
    assert run.sparsity[-1] == 6 / 32
    assert run.violations == ()
    assert not np.asarray(first.layers[0].kernel)[:, 1].any()


def test_several_parts_have_masks_of_their_own(tmp_path, parts):
    first, second, whole = parts
    Masks(first, enforce=False).freeze("dense/bias")
    Masks(second, enforce=False).freeze("dense/bias")
    first.layers[0].bias.assign(first.layers[0].bias)

    run = fit(tmp_path, whole)
    # Only declared: each is found to move.
    moved = {(each.variable, each.first_step) for each in run.violations}
    assert moved == {("first/dense/bias", 1), ("second/dense/bias", 1)}


def test_one_optimizer_holds_the_masks_of_several_parts(tmp_path, parts):
    first, second, whole = parts
    kernels = [part.layers[0].kernel for part in (first, second)]
    before = [np.asarray(kernel) for kernel in kernels]
    Masks(first, optimizer=whole.optimizer).freeze("dense/kernel", channels=[2])
    masks = Masks(second, optimizer=whole.optimizer)
    masks.prune("dense/kernel", channels=[0])
    run = fit(tmp_path, whole)
    after = [np.asarray(kernel) for kernel in kernels]
    np.testing.assert_array_equal(after[0][:, 2], before[0][:, 2])
    assert not after[1][:, 0].any()
    assert (after[0][:, :2] != before[0][:, :2]).all()
    assert (after[1][:, 1] != before[1][:, 1]).all()
    assert run.variables["first/dense/kernel"].states()[-1, 2] == "frozen"
    assert run.variables["second/dense/kernel"].states()[-1].tolist() == ["pruned", "moving"]
    assert run.violations == ()
    # And for each of them alone.
    assert masks.audit() == []


def test_masks_that_change_while_it_trains_are_seen(tmp_path, parts):
    first, _, whole = parts
    masks = Masks(first, optimizer=whole.optimizer)
    masks.freeze("dense/kernel", channels=[3])

    class Late(keras.callbacks.Callback):
        def on_epoch_begin(self, epoch, logs=None):
            if epoch == 1:
                masks.prune("dense/kernel", channels=[0])

    run = fit(tmp_path, whole, Late())
    states = run.variables["first/dense/kernel"].states()[:, 0].tolist()
    assert states == ["moving"] * 5 + ["pruned"] * 4
    assert run.violations == ()


@pytest.mark.parametrize("compiled", [True, False])
def test_whoever_trains_a_part_holds_its_masks(tmp_path, parts, compiled):
    first, _, whole = parts
    if compiled:
        first.compile("sgd", "mse")
    masks = Masks(first)
    masks.prune("dense/kernel", channels=[1])
    run = fit(tmp_path, whole)
    assert run.violations == ()
    assert run.variables["first/dense/kernel"].states()[-1, 1] == "pruned"
    assert masks.sparsity() == masks.zeros() == 0.25


@pytest.mark.parametrize("viewed", ["whole", "part"])
@pytest.mark.parametrize("enforce", [True, False])
def test_masks_of_a_file_of_a_part_or_of_the_whole_are_seen_by_either(tmp_path, viewed, enforce):
    first, _, whole = networks()
    saved = first if viewed == "whole" else whole
    Masks(saved).prune(first.layers[0].kernel, channels=[1])
    saved.save_weights(tmp_path / "net.weights.h5")
    first, _, whole = networks()
    masks = Masks(whole if viewed == "whole" else first, enforce=enforce)
    loaded = first if viewed == "whole" else whole
    loaded.load_weights(tmp_path / "net.weights.h5")
    assert masks.sparsity(first.layers[0].kernel) == masks.zeros(first.layers[0].kernel) == 0.25
    whole.fit(X, Y, 4, verbose=0)
    assert masks.zeros(first.layers[0].kernel) == (0.25 if enforce else 0)


def test_a_file_s_masks_are_skipped_by_a_model_of_other_weights(tmp_path):
    first, *_ = networks()
    masks = Masks(first)
    masks.prune("dense/kernel", channels=[1])
    first.save_weights(tmp_path / "first.weights.h5")
    other, *_ = networks()
    other.load_weights(tmp_path / "first.weights.h5")
    assert Masks(other).sparsity() == 0 < Masks(other).zeros()
