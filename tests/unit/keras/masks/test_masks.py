"""What `Masks` refuses, each by its text, and that a refusal changes nothing."""

from __future__ import annotations

import keras
import numpy as np
import pytest
import tensorflow as tf

import tb_pastnet as pastnet
from tb_pastnet.errors import InvalidArgument, UnknownName
from tb_pastnet.keras.masks.carried import attached
from tests.masked import SHAPES, network


@pytest.fixture
def masks():
    return pastnet.Masks(network(optimizer="sgd"))


@pytest.mark.parametrize("dtype", [bool, np.int8, np.uint64, np.float16, np.float64, list])
def test_masks_of_bool_int_and_float_are_alike(masks, dtype):
    mask = np.random.default_rng(0).random(SHAPES["one/kernel"]) > 0.5
    given = mask.astype(int).tolist() if dtype is list else mask.astype(dtype)
    masks.prune("one/kernel", kept=given)
    masks.freeze("two/kernel", trainable=np.ones((5, 3), bool if dtype is list else dtype))
    np.testing.assert_array_equal(masks.kept["one/kernel"], mask)
    assert masks.trainable["two/kernel"].all()


WRONG_MASKS = {
    "broadcast": (
        np.ones((6, 1)),
        r"expected shape \(6, 5\), got \(6, 1\)\. Give one 0 or 1 for each",
    ),
    "channels": (
        np.ones(5),
        r"expected shape \(6, 5\), got \(5,\)\. .* for whole channels use channels=",
    ),
    "transposed": (np.ones((5, 6)), r"expected shape \(6, 5\), got \(5, 6\)"),
    "scalar": (1, r"expected shape \(6, 5\), got \(\)"),
    "half": (
        np.full((6, 5), 0.5),
        r"expected only 0 and 1, got 30 other values, the first 0\.5 at \[0, 0\]",
    ),
    "weights": (
        np.eye(6, 5) * 2,
        r"expected only 0 and 1, got 5 other values, the first 2\.0 at \[0, 0\]\. Compare first",
    ),
    "NaN": (
        np.full((6, 5), np.nan),
        r"expected only 0 and 1, got 30 other values, the first nan at \[0, 0\]",
    ),
    "text": ("ones", "expected an array of bool, int or float, got str of 'ones'"),
    "ragged": ([[1], [1, 1]], "expected an array of bool, int or float, got list"),
}


@pytest.mark.parametrize("kind", WRONG_MASKS)
def test_a_wrong_mask(masks, kind):
    mask, text = WRONG_MASKS[kind]
    before = values_of(masks)
    with pytest.raises(
        InvalidArgument, match=f"Could not use the kept mask of 'one/kernel': {text}"
    ):
        masks.prune("one/kernel", kept=mask)
    with pytest.raises(InvalidArgument, match=f"the trainable mask of 'one/kernel': {text}"):
        masks.freeze("one/kernel", trainable=mask)
    assert values_of(masks) == before
    assert masks.sparsity() == 0


def values_of(masks):
    return {
        name: (masks.kept[name].tobytes(), masks.trainable[name].tobytes()) for name in masks.kept
    }


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda m: m.prune("one/kernel"), "Could not prune 'one/kernel': expected either kept= or channels=, got none. Pass"),
        (lambda m: m.prune("one/kernel", np.ones((6, 5)), [1]), "Could not prune 'one/kernel': expected either .* got both"),
        (lambda m: m.freeze("one/kernel", np.ones((6, 5)), [1]), "Could not freeze 'one/kernel': expected either trainable= or channels=, got both"),
        (lambda m: m.prune("one/kernel", channels=[5]), r"expected numbers from 0 to 4, got 5\. Channels are counted from 0 along axis -1"),
        (lambda m: m.freeze("one/kernel", channels=[-1]), "expected numbers from 0 to 4, got -1"),
        (lambda m: m.prune("one/kernel", channels=[0.0]), r"expected whole numbers, got \[0\.0\]"),
        (lambda m: m.prune("one/kernel", channels=[True] * 5), "expected their numbers, got 5 of bool"),
        (lambda m: m.prune_below("one/kernel", -1), "expected a magnitude from 0 on, got -1"),
        (lambda m: m.prune_below("one/kernel", np.nan), "expected a magnitude from 0 on, got nan"),
        (lambda m: m.prune_below("one/kernel", np.inf), "expected a magnitude from 0 on, got inf"),
        (lambda m: m.prune_smallest(1.0), "got 1.0"),
        (lambda m: m.prune_smallest(-0.1), "got -0.1"),
        (lambda m: m.prune_smallest(50), "got 50"),
        (lambda m: m.prune_smallest("half"), "got 'half'"),
        (lambda m: m.prune_smallest(0.5, scope="model"), "expected scope='global' or 'layer', got 'model'"),
        (lambda m: m.prune_blocks("one/kernel", 3, 2), "expected 1 <= nonzeros_per_block <= block_size, got 3 of 2"),
        (lambda m: m.prune_blocks("one/kernel", 2, 4), "expected a number of inputs that blocks fill, got 6"),
    ],
)  # fmt: skip
def test_wrong_arguments(masks, call, text):
    before = values_of(masks)
    with pytest.raises(InvalidArgument, match=text):
        call(masks)
    assert values_of(masks) == before


COMMANDS = {
    "prune": {"channels": [0]},
    "prune_below": {"threshold": 0.1},
    "prune_blocks": {},
    "regrow": {},
    "freeze": {},
    "thaw": {},
    "sparsity": {},
    "zeros": {},
}


@pytest.mark.parametrize("command", COMMANDS)
def test_names_that_fit_none_or_several(masks, command):
    call = getattr(masks, command)
    with pytest.raises(
        UnknownName, match="'ones/kernel': expected one of one/kernel, two/kernel, .* got no match"
    ):
        call("ones/kernel", **COMMANDS[command])
    with pytest.raises(
        UnknownName, match="'kernel': .* got 2 with this ending: one/kernel, two/kernel. Write more"
    ):
        call("kernel", **COMMANDS[command])


def test_names_elsewhere(masks):
    for name in ("kernel", "three/kernel"):
        with pytest.raises(UnknownName, match=f"Could not find variable '{name}'"):
            masks.prune_smallest(0.5, variables=[name])
        with pytest.raises(UnknownName, match=f"Could not find variable '{name}'"):
            masks.kept[name]


def test_everything_of_a_layer(masks):
    text = "Could not prune 'one/kernel': expected some of its 30 weights to stay, got none, which cuts"
    for prune in (
        lambda: masks.prune("one/kernel", kept=np.zeros((6, 5))),
        lambda: masks.prune("one/kernel", channels=range(5)),
        lambda: masks.prune_below("one/kernel", 1e9),
    ):
        with pytest.raises(InvalidArgument, match=text):
            prune()
    masks.prune("one/kernel", channels=[0, 1, 2])
    with pytest.raises(InvalidArgument, match=text):
        masks.prune("one/kernel", channels=[3, 4])
    assert masks.sparsity("one/kernel") == 0.6
    masks.prune("one/bias", kept=np.zeros(5))
    assert masks.sparsity("one/bias") == 1
    masks.prune_smallest(0.999)
    assert all(masks.kept[name].sum() >= 1 for name in ("one/kernel", "two/kernel"))


def test_what_is_pruned_cannot_be_frozen(masks):
    masks.prune("one/kernel", channels=[1])
    text = (
        "Could not freeze 'one/kernel': expected weights that aren't pruned, got 6 that are all "
        "pruned"
    )
    with pytest.raises(InvalidArgument, match=text):
        masks.freeze("one/kernel", channels=[1])
    masks.freeze("one/kernel", channels=[1, 2])
    assert masks.trainable["one/kernel"][:, 1].all()
    assert not masks.trainable["one/kernel"][:, 2].any()
    masks.freeze("one/kernel", channels=[])
    masks.freeze("one/kernel")
    assert masks.trainable["one/kernel"].sum() == 6


def test_a_model_that_is_not_built():
    model = keras.Sequential([keras.layers.Dense(3)])
    model.compile("sgd", "mse")
    with pytest.raises(
        InvalidArgument, match="expected a built model, got one without weights. Call"
    ):
        pastnet.Masks(model)
    with pytest.raises(
        InvalidArgument, match="expected a keras.Model, a tf.Module or a mapping .* got int"
    ):
        pastnet.Masks(3)


class Other:
    """No optimizer of Keras."""


@pytest.mark.parametrize(
    ("optimizer", "got"),
    [("adam", "str"), (Other(), "Other"), (keras.optimizers.SGD, "type")],
)
def test_no_optimizer_of_keras(optimizer, got):
    model = network()
    text = f"Could not hold the masks of model '.*': expected a Keras optimizer, got {got}. Pass"
    with pytest.raises(InvalidArgument, match=text):
        pastnet.Masks(model, optimizer)
    assert attached(model) is None
    assert pastnet.Masks(model, enforce=False).sparsity() == 0


def refused(layer, name, text, prepare=lambda layer: None):
    model = keras.Sequential([keras.Input((6,)), layer, keras.layers.Dense(2, name="last")])
    model.compile("sgd", "mse")
    prepare(layer)
    masks = pastnet.Masks(model)
    for mask in (masks.prune, masks.freeze):
        with pytest.raises(InvalidArgument, match=text):
            mask(name, channels=[0])
    with pytest.raises(InvalidArgument, match=text):
        masks.prune_smallest(0.5, variables=[name])
    assert not attached(model).masked
    masks.prune("last/kernel", channels=[0])


def test_weights_that_their_layer_writes_in_call():
    text = "Could not mask 'spectral_normalization/dense/kernel': .* got one that its layer writes. Mask the"
    layer = keras.layers.SpectralNormalization(
        keras.layers.Dense(4, name="dense"), name="spectral_normalization"
    )
    refused(layer, "spectral_normalization/dense/kernel", text)


def test_a_refusal_in_the_middle_prunes_nothing():
    model = network(optimizer="sgd")
    model.layers[1].enable_lora(1)
    masks = pastnet.Masks(model)
    with pytest.raises(InvalidArgument, match="Could not mask 'two/kernel'"):
        masks.prune_smallest(0.5)
    assert masks.sparsity() == 0
    assert masks.zeros("one/kernel") == 0


def test_statistics():
    text = "Could not mask 'norm/moving_mean': .* got a statistic that its layer writes"
    refused(keras.layers.BatchNormalization(name="norm"), "moving_mean", text)


def test_lora():
    text = "Could not mask 'dense/kernel': .* got one that LoRA adds to. Merge the LoRA weights"
    refused(
        keras.layers.Dense(4, name="dense"),
        "dense/kernel",
        text,
        lambda layer: layer.enable_lora(2),
    )


def test_quantized_layers():
    text = "Could not mask 'dense/bias': .* got one quantized to int8. Mask it before you quantize"
    refused(
        keras.layers.Dense(4, name="dense"),
        "dense/bias",
        text,
        lambda layer: layer.quantize("int8"),
    )


def test_non_finite_weights_are_kept_by_magnitude(masks):
    """What isn't finite is to be seen, not to be hidden."""
    state = attached_values(masks)
    kernel = state.numpy().copy()
    kernel[0, 0], kernel[1, 1] = np.nan, -np.inf
    state.assign(kernel)
    masks.prune_smallest(0.9)
    assert masks.kept["one/kernel"][0, 0]
    assert masks.kept["one/kernel"][1, 1]
    masks.prune("one/kernel", kept=np.isfinite(kernel))
    assert np.isfinite(tf.convert_to_tensor(state)).all()


def attached_values(masks):
    return masks.state.weights["one/kernel"].variable


def test_it_says_what_it_holds():
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(3)])
    masks = pastnet.Masks(model, enforce=False)
    assert repr(masks) == "<Masks of 2 weights: 0.0% pruned, 0 frozen>"
    masks.prune("dense/kernel", channels=[0])
    masks.freeze("dense/kernel", channels=[0, 1])
    assert repr(masks) == "<Masks of 2 weights: 33.3% pruned, 4 frozen>"
