from __future__ import annotations

import keras
import numpy as np
import pytest

from tb_pastnet import Masks, Snapshot
from tb_pastnet.errors import InvalidArgument

X = np.random.default_rng(0).normal(size=(32, 6)).astype(np.float32)
Y = (X[:, 0] > 0).astype(np.int32)


def network(optimizer="adam"):
    keras.utils.set_random_seed(0)
    model = keras.Sequential(
        [
            keras.Input((6,)),
            keras.layers.Dense(8, activation="relu"),
            keras.layers.BatchNormalization(),
            keras.layers.Dense(2),
        ]
    )
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(keras.optimizers.get(optimizer), loss)
    # Slots that the first step makes would have it traced twice: another optimizer below has such.
    model.optimizer.build(model.trainable_variables)
    return model


def train(model, epochs=2):
    return model.fit(X, Y, batch_size=8, epochs=epochs, verbose=0, shuffle=False)


def values(model):
    return [variable.numpy() for variable in model.variables]


def slots(model):
    return [variable.numpy() for variable in model.optimizer.variables]


def test_surviving_weights_are_those_of_the_snapshot():
    model = network()
    masks = Masks(model)
    train(model)
    snapshot = masks.snapshot()
    at_snapshot = dict(zip(masks.kept, values(model), strict=True))
    train(model)
    masks.prune_smallest(0.5)
    masks.freeze("dense_1/kernel", channels=[1])
    frozen = model.layers[2].kernel.numpy()
    train(model)
    done = masks.rewind(snapshot)
    for name, value in zip(masks.kept, values(model), strict=True):
        kept, trainable = masks.kept[name], masks.trainable[name]
        free = kept & trainable
        assert (value[free] == at_snapshot[name][free]).all(), name
        assert (value[~kept] == 0).all(), name
    held = masks.kept["dense_1/kernel"] & ~masks.trainable["dense_1/kernel"]
    assert held.any()
    assert (model.layers[2].kernel.numpy()[held] == frozen[held]).all()
    total = sum(one.size for one in (*masks.kept.values(),))
    counted = sum(int((masks.kept[n] & masks.trainable[n]).sum()) for n in masks.kept)
    statistics = 2 * 8
    assert done.weights == counted - statistics
    assert done.held == total - counted
    assert done.statistics == 2
    assert done.step == (24, 8)


def test_without_masks_training_repeats_itself_bit_by_bit():
    model = network()
    masks = Masks(model)
    train(model, 1)
    snapshot = masks.snapshot()
    first = train(model).history["loss"]
    end = values(model)
    assert masks.rewind(snapshot).slots == "snapshot"
    assert train(model).history["loss"] == first
    for one, other in zip(values(model), end, strict=True):
        np.testing.assert_array_equal(one, other)


def test_slots_of_pruned_weights_are_zero():
    model = network()
    masks = Masks(model)
    train(model)
    snapshot = masks.snapshot()
    masks.prune("dense/kernel", channels=[2])
    masks.rewind(snapshot)
    found = [one for one in slots(model) if one.shape == (6, 8)]
    assert len(found) == 2
    for slot in found:
        assert (slot[:, 2] == 0).all()
        assert (slot[:, 3] != 0).any()


def test_another_optimizer_starts_with_zero_slots():
    model = network("adam")
    masks = Masks(model)
    train(model)
    snapshot = masks.snapshot()
    model.compile(keras.optimizers.SGD(0.1, momentum=0.9), model.loss)
    train(model)
    assert masks.rewind(snapshot).slots == "zero"
    assert all((one == 0).all() for one in slots(model) if one.ndim)
    assert int(model.optimizer.iterations.numpy()) == snapshot.step


def test_the_learning_rate_alone():
    rate = keras.optimizers.schedules.PiecewiseConstantDecay([4], [0.1, 0.001])
    model = network(keras.optimizers.SGD(rate))
    masks = Masks(model)
    snapshot = masks.snapshot()
    train(model)
    before = values(model)
    assert float(model.optimizer.learning_rate) == pytest.approx(0.001)
    done = masks.rewind(snapshot, "learning_rate")
    assert float(model.optimizer.learning_rate) == pytest.approx(0.1)
    assert (done.weights, done.slots, done.step) == (0, "kept", (8, 0))
    for one, other in zip(values(model), before, strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_learning_rate_that_a_callback_lowered_goes_back():
    model = network(keras.optimizers.SGD(0.5))
    masks = Masks(model)
    train(model, 1)
    snapshot = masks.snapshot()
    model.optimizer.learning_rate = 0.01
    masks.rewind(snapshot, "learning_rate")
    assert float(model.optimizer.learning_rate) == 0.5


def test_a_snapshot_goes_through_a_file(tmp_path):
    model = network()
    masks = Masks(model)
    train(model)
    snapshot = masks.snapshot()
    snapshot.save(tmp_path / "a.npz")
    back = Snapshot.load(tmp_path / "a.npz")
    assert (back.step, back.origin) == (snapshot.step, masks.state.origin)
    assert list(back.weights) == list(snapshot.weights)
    for name, value in snapshot.weights.items():
        np.testing.assert_array_equal(back.weights[name], value)
    for one, other in zip(back.optimizer, snapshot.optimizer, strict=True):
        np.testing.assert_array_equal(one, other)
        assert one.dtype == other.dtype


def test_a_snapshot_is_a_copy():
    model = network()
    masks = Masks(model)
    snapshot = masks.snapshot()
    before = snapshot.weights["dense/kernel"].copy()
    train(model)
    np.testing.assert_array_equal(snapshot.weights["dense/kernel"], before)


def test_what_cannot_be_rewound(tmp_path):
    model = network()
    masks = Masks(model)
    snapshot = masks.snapshot()
    with pytest.raises(
        InvalidArgument, match=r"expected what= 'weights' or 'learning_rate', got 'lr'"
    ):
        masks.rewind(snapshot, "lr")
    with pytest.raises(InvalidArgument, match=r"expected a Snapshot, got dict\. Take one with"):
        masks.rewind({})
    other = keras.Sequential([keras.Input((6,)), keras.layers.Dense(9)])
    other.compile("sgd", "mse")
    with pytest.raises(
        InvalidArgument, match=r"Could not rewind 'dense/kernel': expected shape \(6, 8\) as in"
    ):
        masks.rewind(Masks(other).snapshot())
    (tmp_path / "text").write_text("no snapshot")
    with pytest.raises(InvalidArgument, match=r"expected a file written by Snapshot\.save"):
        Snapshot.load(tmp_path / "text")


def test_slots_of_one_optimizer_are_not_those_of_another():
    model = network(keras.optimizers.SGD(0.1, momentum=0.9))
    masks = Masks(model)
    train(model)
    snapshot = masks.snapshot()
    model.compile(keras.optimizers.RMSprop(0.01), model.loss)  # its slots have the same shapes
    train(model)
    done = masks.rewind(snapshot)
    assert done.slots == "zero"
    assert not any(value.any() for value in slots(model)[2:])
    assert np.isfinite(train(model).history["loss"]).all()


def test_a_layer_that_came_later_is_in_the_next_snapshot():
    model = network()
    masks = Masks(model)
    model.add(keras.layers.Dense(2, name="late"))
    snapshot = masks.snapshot()
    kernel = model.layers[-1].kernel
    before = kernel.numpy()
    kernel.assign(before + 1)
    masks.rewind(snapshot)
    np.testing.assert_array_equal(kernel.numpy(), before)
