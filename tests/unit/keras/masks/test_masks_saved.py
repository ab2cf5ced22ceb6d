"""Masks and held values through every way that Keras and TensorFlow save a model."""

from __future__ import annotations

import h5py
import keras
import numpy as np
import pytest
import tensorflow as tf

import tb_pastnet as pastnet
from tb_pastnet.errors import InvalidArgument
from tb_pastnet.keras.masks.carried import attached
from tests.interpreter import Interpreter
from tests.masked import SHAPES, data, held_bits, masks_on, network, values

HELD = ("one/kernel", "one/bias", "two/kernel")


def sgd():
    return keras.optimizers.SGD(0.05, momentum=0.9, weight_decay=0.1)


def fresh():
    """The same network in another process: its optimizer knows the weights already."""
    model = network(optimizer=sgd())
    model.optimizer.build(model.trainable_variables)
    return model


@pytest.fixture(scope="module")
def trained():
    model = fresh()
    masks = masks_on(model)
    model.fit(*data(), epochs=3, verbose=0)
    return model, masks


def assert_back(trained, model, masks):
    """Masks and held values are those of the saved model, and hold on in training."""
    saved, saved_masks = trained
    for name in SHAPES:
        np.testing.assert_array_equal(masks.kept[name], saved_masks.kept[name])
        np.testing.assert_array_equal(masks.trainable[name], saved_masks.trainable[name])
    held = held_bits(saved, saved_masks)
    assert held_bits(model, masks) == held
    assert set(masks.resumed.equal) == set(HELD)
    assert masks.resumed
    before = values(model)
    model.fit(*data(), epochs=3, verbose=0)
    assert held_bits(model, masks) == held
    assert (values(model)["two/bias"] != before["two/bias"]).all()


def test_keras_file(trained, tmp_path):
    path = tmp_path / "model.keras"
    trained[0].save(path)
    model = pastnet.load_model(path)
    assert_back(trained, model, pastnet.Masks(model))


def test_the_old_format_has_no_place_for_masks_and_a_warning_says_so(trained, tmp_path, caplog):
    trained[0].save(tmp_path / "model.keras")
    with caplog.at_level("WARNING", "tb_pastnet"):
        keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)]).save(tmp_path / "other.h5")
        trained[0].save(tmp_path / "model.h5")
    (record,) = [each for each in caplog.records if each.name.startswith("tb_pastnet")]
    assert record.message.startswith(f"Could not save masks into {tmp_path / 'model.h5'}: expected")
    loaded = pastnet.load_model(tmp_path / "model.h5", compile=False)
    for ours, theirs in zip(loaded.get_weights(), trained[0].get_weights(), strict=True):
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("made", ["before", "after"])
def test_weights_file(trained, tmp_path, made):
    path = tmp_path / "model.weights.h5"
    trained[0].save_weights(path)
    model = fresh()
    if made == "before":
        masks = pastnet.Masks(model)
        model.load_weights(path)
    else:
        model.load_weights(path)
        masks = pastnet.Masks(model)
        assert masks.resumed is None
        model.load_weights(path)
    assert_back(trained, model, masks)


def test_a_step_that_is_traced_takes_loaded_masks(trained, tmp_path):
    """Also those of variables that had none before."""
    path = tmp_path / "model.weights.h5"
    trained[0].save_weights(path)
    model = fresh()
    masks = pastnet.Masks(model)
    masks.prune("one/kernel", channels=[0])
    masks.freeze("two/bias", channels=[0])
    model.fit(*data(), verbose=0)
    model.load_weights(path)
    assert masks.trainable["two/bias"].all()
    assert_back(trained, model, masks)


@pytest.mark.parametrize("whole", [True, False])
def test_model_checkpoint(tmp_path, whole):
    path = tmp_path / ("{epoch}.keras" if whole else "{epoch}.weights.h5")
    model = fresh()
    masks = masks_on(model)
    saving = keras.callbacks.ModelCheckpoint(str(path), save_weights_only=not whole)
    model.fit(*data(), epochs=2, verbose=0, callbacks=[saving])
    if whole:
        loaded = pastnet.load_model(tmp_path / "2.keras")
        found = pastnet.Masks(loaded)
    else:
        loaded = fresh()
        found = pastnet.Masks(loaded)
        loaded.load_weights(tmp_path / "2.weights.h5")
    assert values(loaded)["one/kernel"].tobytes() == values(model)["one/kernel"].tobytes()
    assert_back((model, masks), loaded, found)


# Each once: what a checkpoint is called by, and when masks are made, are decided apart.
@pytest.mark.parametrize(
    ("how", "made"),
    [
        ("save", "after"),
        ("write", "before"),
        pytest.param("save", "before", marks=pytest.mark.prove),
        pytest.param("write", "after", marks=pytest.mark.prove),
    ],
)
def test_tensorflow_checkpoint(trained, tmp_path, how, made):
    model = fresh()
    if made == "before":
        masks = pastnet.Masks(model)
    path = getattr(tf.train.Checkpoint(model=trained[0]), how)(str(tmp_path / "at"))
    checkpoint = tf.train.Checkpoint(model=model)
    status = checkpoint.restore(path) if how == "save" else checkpoint.read(path)
    if made == "after":
        masks = pastnet.Masks(model)
    status.assert_existing_objects_matched()
    assert_back(trained, model, masks)


def test_a_checkpoint_that_is_gone_when_masks_are_made(trained, tmp_path):
    path = tf.train.Checkpoint(model=trained[0]).write(str(tmp_path / "at"))
    model = fresh()
    tf.train.Checkpoint(model=model).read(path)
    for file in tmp_path.iterdir():
        file.unlink()
    text = "Could not restore the masks of model '.*': expected the checkpoint .* Make Masks before"
    with pytest.raises(InvalidArgument, match=text):
        pastnet.Masks(model)


def test_a_file_without_masks_leaves_them(tmp_path):
    """Its pruned weights are zero again with the first step; frozen ones are held as loaded."""
    stock = fresh()
    stock.save_weights(tmp_path / "stock.weights.h5")
    model = fresh()
    masks = masks_on(model)
    kept = masks.kept["one/kernel"]
    model.load_weights(tmp_path / "stock.weights.h5")
    np.testing.assert_array_equal(masks.kept["one/kernel"], kept)
    assert masks.resumed is None
    assert masks.zeros("one/kernel") == 0
    frozen = ~masks.trainable["one/kernel"]
    model.fit(*data(), verbose=0)
    assert masks.zeros("one/kernel") == masks.sparsity("one/kernel") > 0
    assert (
        values(model)["one/kernel"][frozen].tobytes()
        == values(stock)["one/kernel"][frozen].tobytes()
    )
    stock.save(tmp_path / "stock.keras")
    assert attached(pastnet.load_model(tmp_path / "stock.keras")).masked == {}


def test_best_weights_restored(trained):
    model = fresh()
    masks = masks_on(model)
    held = held_bits(model, masks)
    worst = keras.callbacks.EarlyStopping("loss", mode="max", patience=1, restore_best_weights=True)
    history = model.fit(*data(), epochs=9, verbose=0, callbacks=[worst])
    assert len(history.epoch) < 9
    assert held_bits(model, masks) == held


def unnamed(units=5):
    model = keras.Sequential([keras.Input((6,)), keras.layers.Dense(units), keras.layers.Dense(3)])
    model.compile(sgd(), "mse")
    model.optimizer.build(model.trainable_variables)
    return model


def test_names_that_keras_counts_on_are_the_same_ones(tmp_path):
    model = unnamed()
    masks = pastnet.Masks(model)
    masks.prune("dense_1/kernel", channels=[1])
    model.save_weights(tmp_path / "a.weights.h5")
    other = unnamed()
    assert {layer.name for layer in other.layers}.isdisjoint(layer.name for layer in model.layers)
    found = pastnet.Masks(other)
    other.load_weights(tmp_path / "a.weights.h5")
    np.testing.assert_array_equal(found.kept["dense_1/kernel"], masks.kept["dense_1/kernel"])
    assert (found.resumed.equal, found.resumed.changed) == (("dense_1/kernel",), {})


def test_masks_of_another_architecture(tmp_path):
    model = unnamed()
    masks = pastnet.Masks(model)
    masks.prune("dense_1/kernel", channels=[1])
    stored = attached(model).serialize()
    wider = attached_of(unnamed(7))
    text = r"'dense_1/kernel': expected a variable of shape \(5, 3\), as in the file, got shape \(7, 3\)"
    with pytest.raises(InvalidArgument, match=text):
        wider.deserialize(stored)
    other = attached_of(network(optimizer=sgd()))
    with pytest.raises(
        InvalidArgument, match="got no such variable in the model. Load them into a"
    ):
        other.deserialize(stored)
    assert not wider.masked
    assert not other.masked


def test_nothing_stored_leaves_the_masks_that_are():
    masks = pastnet.Masks(unnamed())
    masks.prune("dense_1/kernel", channels=[1])
    version = masks.state.version
    masks.state.deserialize(b"")
    assert masks.sparsity("dense_1/kernel") == 1 / 3
    assert masks.state.version == version
    assert masks.resumed is None


def attached_of(model):
    pastnet.Masks(model)
    return attached(model)


def test_an_export_has_no_masks(trained, tmp_path):
    model, _ = trained
    for folder, save in (
        ("export", model.export),
        ("saved", lambda p: tf.saved_model.save(model, p)),
    ):
        path = str(tmp_path / folder)
        save(path)
        stored = tf.train.list_variables(f"{path}/variables/variables")
        assert {tuple(shape) for name, shape in stored if shape} == set(SHAPES.values())
    exported = tf.saved_model.load(str(tmp_path / "export"))
    served = exported.serve(data()[0])
    np.testing.assert_allclose(served, model.predict(data()[0], verbose=0), rtol=1e-6)


def test_masks_are_no_variables_of_model_or_optimizer(trained):
    model, _ = trained
    stock = fresh()
    assert len(model.variables) == len(stock.variables)
    assert len(model.get_weights()) == len(stock.get_weights())
    assert len(model.optimizer.variables) == len(stock.optimizer.variables)


STOCK = """
import sys
sys.modules["tb_pastnet"] = None
import keras, numpy as np
expected = [np.load(f"{folder}/{at}.npy") for at in range(4)]
loaded = keras.models.load_model(f"{folder}/model.keras")
again = keras.models.clone_model(loaded)
again.compile("sgd", "mse")
again.load_weights(f"{folder}/model.weights.h5", skip_mismatch=False)
for model in (loaded, again):
    for got, want in zip(model.get_weights(), expected, strict=True):
        assert got.tobytes() == want.tobytes()
loaded.fit(np.ones((4, 6)), np.ones((4, 3)), verbose=0)
assert not hasattr(loaded, "_pastnet_masks")
"""


def test_a_stock_keras_loads_the_files(trained, tmp_path):
    model, _ = trained
    model.save(tmp_path / "model.keras")
    model.save_weights(tmp_path / "model.weights.h5")
    for at, value in enumerate(model.get_weights()):
        np.save(tmp_path / f"{at}.npy", value)
    python = Interpreter()
    assert python.run(STOCK, folder=str(tmp_path)) == ""
    python.close()


def test_an_empty_stored_mask_leaves_the_masks_as_they_are(tmp_path):
    model, other = unnamed(), unnamed()
    pastnet.Masks(model).prune("dense_1/kernel", channels=[1])
    path = tmp_path / "a.weights.h5"
    model.save_weights(path)
    with h5py.File(path, "r+") as file:
        names: list[str] = []
        file.visit(lambda name: names.append(name) if name.endswith("/masks") else None)
        (stored,) = (name for name in names if isinstance(file[name], h5py.Dataset))
        del file[stored]
        file[stored] = np.zeros(0, np.uint8)
    masks = pastnet.Masks(other)
    masks.freeze("dense/kernel", channels=[2])
    other.load_weights(path)
    assert masks.resumed is None
    assert (masks.trainable["dense/kernel"] == (np.arange(5) != 2)).all()
    assert masks.kept["dense_1/kernel"].all()
