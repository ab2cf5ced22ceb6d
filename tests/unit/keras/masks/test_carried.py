"""Masks go where a network's weights go: into copies, files, other models and later layers."""

from __future__ import annotations

import copy
import logging
import pickle
from itertools import product

import keras
import numpy as np
import pytest
import tensorflow as tf

from tb_pastnet import Masks, PastNetCallback, load_model, read
from tb_pastnet.errors import InvalidArgument
from tests.interpreter import Interpreter
from tests.sampled import sampled

# An optimizer that made no step is saved without its slots.
pytestmark = pytest.mark.filterwarnings("ignore:Skipping variable loading for optimizer")

X = np.random.default_rng(0).normal(size=(32, 6)).astype("f4")
Y = np.random.default_rng(1).normal(size=(32, 2)).astype("f4")


COPIES = [copy.deepcopy, lambda value: pickle.loads(pickle.dumps(value))]


@pytest.fixture
def another_process():
    process = Interpreter()
    yield process
    process.close()


@pytest.fixture
def model():
    keras.utils.set_random_seed(3)
    model = keras.Sequential(
        [keras.Input((6,)), keras.layers.Dense(8, "tanh"), keras.layers.Dense(2)]
    )
    model.compile(keras.optimizers.AdamW(0.05), "mse")
    return model


def train(model, *callbacks):
    model.fit(X, Y, 4, verbose=0, callbacks=list(callbacks))


def kernel(model):
    return np.asarray(model.layers[0].kernel)


def assert_held(model, masks, value):
    """What masks hold of the first kernel stays as it is, and the rest trains."""
    through = masks.kept["dense/kernel"] & masks.trainable["dense/kernel"]
    train(model)
    assert kernel(model)[~through].tobytes() == value[~through].tobytes()
    assert (kernel(model) != value)[through].all()
    assert masks.sparsity() == masks.zeros()


def hold(model):
    masks = Masks(model)
    masks.prune_smallest(0.5)
    masks.freeze("dense/kernel", channels=[1])
    train(model)
    return masks


def test_a_clone_of_keras_whose_values_are_held_elsewhere_says_that_it_has_no_masks(
    model, tmp_path
):
    hold(model)
    clone, other = keras.models.clone_model(model), keras.models.clone_model(model)
    clone.set_weights(model.get_weights())
    for name, network in ("clone", clone), ("other", other), ("own", model):
        network.compile("sgd", "mse")
        train(network, PastNetCallback(tmp_path / name))
    runs = read(tmp_path).runs
    (note,) = runs["clone"].notes
    assert note.startswith("No masks hold 'dense/kernel', 'dense_1/kernel', though masks of")
    assert not runs["other"].notes
    assert not runs["own"].notes


@pytest.mark.parametrize(
    "copied",
    sampled([copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m)), copy.copy], every=2),
)
def test_a_copy_has_masks_of_its_own(model, copied):
    masks = hold(model)
    other = copied(model)
    own = Masks(other)
    assert own.resumed
    for name, kept in masks.kept.items():
        np.testing.assert_array_equal(own.kept[name], kept)
        np.testing.assert_array_equal(own.trainable[name], masks.trainable[name])
    before = kernel(model)
    assert_held(other, own, before)
    assert kernel(model).tobytes() == before.tobytes()
    own.regrow("dense/kernel")
    assert not masks.kept["dense/kernel"].all()


@pytest.mark.parametrize("copied", COPIES)
@pytest.mark.parametrize("enforce", [True, False])
def test_a_copy_of_masks_is_of_a_copy_of_the_model(model, copied, enforce):
    masks = Masks(model, model.optimizer, enforce=enforce)
    masks.prune("dense/kernel", channels=[0])
    masks.freeze("dense/kernel", channels=[1])
    agent = copied({"model": model, "masks": masks})
    own = agent["masks"]
    assert own.model is agent["model"] is not model
    assert own.sparsity() == masks.sparsity()
    own.prune("dense/kernel", channels=[2])
    assert own.sparsity() > masks.sparsity() > 0
    before = kernel(own.model)
    if enforce:
        assert_held(own.model, own, before)
    else:
        train(own.model)
        assert (kernel(own.model) != before).all()


def test_a_shallow_copy_of_masks_is_another_view(model):
    masks = Masks(model)
    view = copy.copy(masks)
    view.prune_smallest(0.5)
    assert view.model is model
    assert masks.sparsity() == 0.5


@pytest.mark.parametrize("copied", COPIES)
def test_a_copy_of_masks_of_variables_has_another_optimizer(copied):
    weight = tf.Variable(tf.ones((2, 3)))
    masks = Masks({"kernel": weight}, keras.optimizers.SGD(0.1))
    masks.prune("kernel", channels=[0])
    masks.freeze("kernel", channels=[1])
    own = copied(masks)
    assert own.resumed
    own._optimizer.apply([tf.ones((2, 3))], [own.model["kernel"]])
    np.testing.assert_allclose(own.model["kernel"], [[0, 1, 0.9]] * 2)
    assert weight.numpy().tolist() == [[0, 1, 1]] * 2


@pytest.mark.parametrize("part", ["state", "kept"])
@pytest.mark.parametrize("copied", COPIES)
def test_what_a_part_of_masks_says_when_it_is_copied(model, part, copied):
    with pytest.raises(InvalidArgument, match="expected Masks or their model, got a part of Mas"):
        copied(getattr(Masks(model), part))


def test_a_copy_of_what_is_only_declared_is_not_held(model):
    Masks(model, enforce=False).freeze("dense/kernel")
    other = copy.deepcopy(model)
    before = kernel(other)
    train(other)
    assert (kernel(other) != before).all()
    moved = Masks(other, enforce=False).audit()
    assert {each.variable for each in moved} == {"dense/kernel"}
    assert not Masks(other, enforce=False).trainable["dense/kernel"].any()


def test_declared_masks_are_copied_in_a_process_that_holds_none(another_process):
    program = (
        "import copy, keras, tb_pastnet as pastnet\n"
        "model = keras.Sequential([keras.Input((6,)), keras.layers.Dense(2)])\n"
        "pastnet.Masks(model, enforce=False).freeze('dense/kernel')\n"
        "other = pastnet.Masks(copy.deepcopy(model), enforce=False)\n"
        "print(other.trainable['dense/kernel'].sum())"
    )
    assert another_process.run(program).split()[-1] == "0"


def test_what_can_not_carry_masks_trains_on(model, caplog, monkeypatch):
    masks = hold(model)
    other = other_model(model, "nested")
    other.compile("sgd", "mse")
    monkeypatch.setattr("tb_pastnet.keras.masks.carried.carry", lambda model: 1 / 0)
    with caplog.at_level(logging.WARNING, "tb_pastnet"):
        train(other)
    assert "Could not attach the masks of its weights to a model: division by" in caplog.text
    assert masks.sparsity() == masks.zeros() > 0


def test_a_model_without_masks_is_copied_by_keras_alone(model):
    hold(model)
    other = keras.Sequential([keras.Input((6,)), keras.layers.Dense(2)])
    assert b"tb_pastnet" not in pickle.dumps(other)


def test_another_process_finds_them_in_a_pickle(another_process, model, tmp_path):
    masks = hold(model)
    (tmp_path / "model").write_bytes(pickle.dumps(model))
    program = (
        "import pickle, tb_pastnet\n"
        "model = pickle.load(open(file, 'rb'))\n"
        "print(tb_pastnet.Masks(model).sparsity())"
    )
    said = another_process.run(program, file=str(tmp_path / "model"))
    assert float(said.split()[-1]) == masks.sparsity()


@pytest.mark.parametrize("copied", COPIES)
@pytest.mark.parametrize("of_masks", [False, True])
def test_a_module_of_tensorflow_says_that_its_masks_can_not_be_copied(copied, of_masks):
    module = tf.Module("net")
    module.kernel = tf.Variable(np.ones((3, 2), "f4"), name="kernel")
    masks = Masks(module)
    masks.freeze("kernel")
    with pytest.raises(InvalidArgument, match="Could not copy the masks of model 'net': expected"):
        copied(masks if of_masks else module)


def other_model(model, how):
    if how == "nested":
        inputs = keras.Input((6,))
        return keras.Model(inputs, keras.layers.Dense(2)(model(inputs)))
    return keras.Sequential([keras.Input((6,)), *model.layers])


@pytest.mark.parametrize(
    ("how", "trained"), sampled(product(["nested", "sharing layers"], [True, False]), every=3)
)
def test_another_model_of_these_weights_is_saved_with_them(model, tmp_path, how, trained):
    masks = hold(model)
    other = other_model(model, how)
    other.compile("sgd", "mse")
    if trained:
        train(other)
    other.save(tmp_path / "other.keras")
    loaded = Masks(load_model(tmp_path / "other.keras"))
    pruned = sum(int((~kept).sum()) for kept in masks.kept.values())
    assert sum(int((~kept).sum()) for kept in loaded.kept.values()) == pruned
    assert loaded.resumed
    assert loaded.sparsity() == loaded.zeros()


def test_first_masks_reach_the_compiled_step_of_another_model(model):
    other = other_model(model, "sharing layers")
    other.compile("adamw", "mse")
    train(other)
    masks = Masks(model)
    masks.prune("dense/kernel", channels=[0])
    assert_held(other, masks, kernel(model))


def test_layers_that_come_and_go(model, tmp_path):
    masks = hold(model)
    model.pop()
    model.add(keras.layers.Dense(5))
    model.add(keras.layers.Dense(2))
    model.compile("adam", "mse")
    assert set(masks.kept) == {
        f"dense{n}/{w}" for n in ("", "_1", "_2") for w in ("kernel", "bias")
    }
    assert masks.sparsity() == masks.zeros() < 0.5
    assert "of 6 weights" in repr(masks)
    masks.prune_smallest(0.8)
    assert masks.sparsity() == pytest.approx(0.8, abs=0.01)
    assert masks.audit() == []
    train(model)
    assert masks.audit() == []
    assert masks.sparsity() == masks.zeros()
    model.save(tmp_path / "model.keras")
    assert Masks(load_model(tmp_path / "model.keras")).resumed


def test_a_quantized_kernel_leaves_with_its_zeros(model, tmp_path):
    masks = Masks(model)
    masks.prune("dense/kernel", channels=[0, 1])
    masks.prune("dense_1/kernel", channels=[0])
    model.layers[0].quantize("int8")
    assert "dense/kernel" not in masks.kept
    assert not np.asarray(model.layers[0].kernel)[:, :2].any()
    assert masks.sparsity() == 0.5
    model.save(tmp_path / "model.keras")
    assert Masks(load_model(tmp_path / "model.keras")).sparsity() == 0.5


def test_lora_is_refused_while_masks_hold_what_it_would_add_to(model):
    masks = Masks(model)
    masks.prune("dense/kernel", channels=[0])
    text = "Could not enable LoRA on 'dense': expected a weight without masks, got 'dense/kernel'"
    with pytest.raises(InvalidArgument, match=text):
        model.layers[0].enable_lora(2)
    masks.regrow("dense/kernel")
    model.layers[0].enable_lora(2)
    assert model.layers[0].lora_enabled


def test_what_is_loaded_by_hand_is_not_undone_by_an_update(model):
    """Frozen is the loaded value, and the audit says that it isn't the one of before."""
    masks = Masks(model)
    masks.freeze("dense/kernel")
    masks.audit()
    train(model)
    loaded = kernel(model) + 1
    model.layers[0].kernel.assign(loaded)
    train(model)
    assert kernel(model).tobytes() == loaded.tobytes()
    assert {each.cause for each in masks.audit()} == {"loaded"}


@pytest.mark.parametrize(
    "write",
    [
        lambda weight: weight.assign_add(tf.ones_like(weight)),
        lambda weight: weight.assign_sub(tf.ones_like(weight)),
        lambda weight: weight[0, 0].assign(5.0),
        lambda weight: weight.scatter_nd_update([[1, 0]], [5.0]),
        lambda weight: weight.scatter_update(tf.IndexedSlices(5 * tf.ones((1, 3)), [1])),
    ],
    ids=["add", "sub", "item", "scatter_nd", "scatter"],
)
def test_every_way_of_assigning_by_hand_counts(write):
    weight = tf.Variable(tf.ones((2, 3)))
    masks = Masks({"kernel": weight}, optimizer=keras.optimizers.SGD(0.1))
    masks.freeze("kernel")
    write(weight)
    before = weight.numpy()
    masks._optimizer.apply([tf.ones_like(weight)], [weight])
    assert (before != 1).any()
    assert weight.numpy().tobytes() == before.tobytes()


def test_a_lower_sparsity_gives_nothing_back_and_says_so(model, caplog):
    masks = Masks(model)
    masks.prune_smallest(0.5)
    with caplog.at_level(logging.WARNING, "tb_pastnet"):
        masks.prune_smallest(0.5)
        assert not caplog.records
        masks.prune_smallest(0.2)
    (record,) = caplog.records
    assert record.message == (
        "Could not prune to a sparsity of 20.0%: expected less to be pruned, got 50.0% already, "
        "and these stay. Regrow some of them first."
    )
    assert masks.sparsity() == 0.5


def test_the_log_of_whoever_trains_tells_the_masks(model, tmp_path):
    masks = hold(model)
    other = other_model(model, "nested")
    other.compile("adamw", "mse")
    callback = PastNetCallback(tmp_path, every=4)
    train(other, callback)
    callback.close()
    (run,) = read(tmp_path).runs.values()
    assert run.violations == ()
    assert run.sparsity[-1] == Masks(other).sparsity() > 0
    assert masks.sparsity() == masks.zeros()
