"""The same weights at the same steps give the same records, whichever framework holds them.

Each family of layers is built in Keras, PyTorch and Flax. Their weights lie otherwise in each: what
is compared is what the log says of each channel.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import tb_pastnet as pastnet

torch = pytest.importorskip("torch", reason="needs torch")
jax = pytest.importorskip("jax", reason="needs jax")

import keras  # noqa: E402

Arrays = dict[str, np.ndarray]
Laid = Callable[[np.ndarray], np.ndarray]


class Family(NamedTuple):
    """A layer in each framework, and how its weights lie in torch and JAX, by those of Keras.

    Attributes:
        layer: of Keras, and the shape that it is built with.
        module: of torch, its parameters by the names in Keras, and how they lie.
        leaves: of a pytree, by the names in Keras, and how they lie.
    """

    layer: Callable[[], Any]
    shape: tuple[int | None, ...]
    module: Callable[[], Any]
    parameters: Mapping[str, tuple[str, Laid]]
    leaves: Mapping[str, tuple[str, Laid]]


def same(array: np.ndarray) -> np.ndarray:
    return array


def turned(*axes: int) -> Laid:
    return lambda array: np.transpose(array, axes)


def depthwise(array: np.ndarray) -> np.ndarray:
    """(height, width, inputs, multiplier) as (outputs, 1, height, width)."""
    height, width, inputs, times = array.shape
    return array.transpose(2, 3, 0, 1).reshape(inputs * times, 1, height, width)


def headed(array: np.ndarray) -> np.ndarray:
    """(inputs, heads, size) as (heads · size, inputs)."""
    return array.reshape(array.shape[0], -1).T


BIAS = {"bias": ("bias", same)}
DENSE = {"kernel": ("weight", turned(1, 0)), **BIAS}
FLAX = {"kernel": ("Dense_0/kernel", same), "bias": ("Dense_0/bias", same)}


def flax(layer: str, *names: str) -> dict[str, tuple[str, Laid]]:
    return {name: (f"{layer}/{name}", same) for name in names}


def gated(layer: str) -> dict[str, tuple[str, Laid]]:
    return {
        "kernel": ("weight_ih_l0", turned(1, 0)),
        "recurrent_kernel": ("weight_hh_l0", turned(1, 0)),
        "bias": ("bias_ih_l0", same),
    }


L, N = keras.layers, torch.nn
FAMILIES = {
    "Dense": Family(lambda: L.Dense(5), (None, 7), lambda: N.Linear(7, 5), DENSE, FLAX),
    "Conv1D": Family(
        lambda: L.Conv1D(5, 3),
        (None, 9, 2),
        lambda: N.Conv1d(2, 5, 3),
        {"kernel": ("weight", turned(2, 1, 0)), **BIAS},
        flax("Conv_0", "kernel", "bias"),
    ),
    "Conv2D": Family(
        lambda: L.Conv2D(5, 3),
        (None, 9, 9, 2),
        lambda: N.Conv2d(2, 5, 3),
        {"kernel": ("weight", turned(3, 2, 0, 1)), **BIAS},
        flax("Conv_0", "kernel", "bias"),
    ),
    "Conv3D": Family(
        lambda: L.Conv3D(5, 2),
        (None, 5, 5, 5, 2),
        lambda: N.Conv3d(2, 5, 2),
        {"kernel": ("weight", turned(4, 3, 0, 1, 2)), **BIAS},
        flax("Conv_0", "kernel", "bias"),
    ),
    "Conv2DTranspose": Family(
        lambda: L.Conv2DTranspose(5, 3),
        (None, 9, 9, 2),
        lambda: N.ConvTranspose2d(2, 5, 3),
        {"kernel": ("weight", turned(3, 2, 0, 1)), **BIAS},
        {
            "kernel": ("ConvTranspose_0/kernel", turned(0, 1, 3, 2)),
            "bias": ("ConvTranspose_0/bias", same),
        },
    ),
    "DepthwiseConv2D": Family(
        lambda: L.DepthwiseConv2D(3, depth_multiplier=2, use_bias=False),
        (None, 9, 9, 2),
        lambda: N.Conv2d(2, 4, 3, groups=2, bias=False),
        {"kernel": ("weight", depthwise)},
        {"kernel": ("Conv_0/kernel", lambda array: array.reshape(3, 3, 1, 4))},
    ),
    "Embedding": Family(
        lambda: L.Embedding(11, 4),
        (None, 3),
        lambda: N.Embedding(11, 4),
        {"embeddings": ("weight", same)},
        {"embeddings": ("Embed_0/embedding", same)},
    ),
    "SimpleRNN": Family(
        lambda: L.SimpleRNN(5), (None, 3, 7), lambda: N.RNN(7, 5), gated("rnn"), {}
    ),
    "LSTM": Family(lambda: L.LSTM(5), (None, 3, 7), lambda: N.LSTM(7, 5), gated("lstm"), {}),
    "GRU": Family(
        lambda: L.GRU(5, reset_after=False), (None, 3, 7), lambda: N.GRU(7, 5), gated("gru"), {}
    ),
    "BatchNormalization": Family(
        L.BatchNormalization,
        (None, 9, 9, 6),
        lambda: N.BatchNorm2d(6),
        {
            "gamma": ("weight", same),
            "beta": ("bias", same),
            "moving_mean": ("running_mean", same),
            "moving_variance": ("running_var", same),
        },
        {"gamma": ("BatchNorm_0/scale", same), "beta": ("BatchNorm_0/bias", same)},
    ),
    "LayerNormalization": Family(
        L.LayerNormalization,
        (None, 6),
        lambda: N.LayerNorm(6),
        {"gamma": ("weight", same), "beta": ("bias", same)},
        {"gamma": ("LayerNorm_0/scale", same), "beta": ("LayerNorm_0/bias", same)},
    ),
    "MultiHeadAttention": Family(
        lambda: L.MultiHeadAttention(2, 4, use_bias=False),
        (None, 3, 8),
        lambda: N.MultiheadAttention(8, 2, bias=False, kdim=6, vdim=6),
        {"query/kernel": ("q_proj_weight", headed)},
        {"query/kernel": ("MultiHeadDotProductAttention_0/query/kernel", same)},
    ),
}


def values(layer: Any, seed: int) -> Arrays:
    """New values of all variables, of which some elements and a whole channel stay."""
    rng = np.random.default_rng(seed)
    return {
        name: np.float32(rng.normal(size=variable.shape)) * (rng.random(variable.shape) < 0.8)
        for name, variable in named(layer).items()
    }


def named(layer: Any) -> dict[str, Any]:
    """Its variables by their names below it."""
    own = (variable.path.split("/", 1)[1] for variable in layer.weights)
    names = [
        name.replace("lstm_cell/", "").replace("gru_cell/", "").replace("simple_rnn_cell/", "")
        for name in own
    ]
    return dict(zip(names, layer.weights, strict=True))


def in_keras(logdir: Path, layer: Any, steps: list[Arrays]) -> None:
    for name, value in steps[0].items():
        named(layer)[name].assign(value)
    with pastnet.Recorder(logdir, layer, every=1, initial_step=0) as recorder:
        for number, arrays in enumerate(steps[1:], 1):
            for name, value in arrays.items():
                named(layer)[name].assign(value)
            recorder.record(number)


def in_torch(logdir: Path, family: Family, steps: list[Arrays]) -> None:
    module = family.module()
    held = dict([*module.named_parameters(), *module.named_buffers()])

    def give(arrays: Arrays) -> None:
        with torch.no_grad():
            for name, (own, laid) in family.parameters.items():
                held[own].copy_(torch.from_numpy(np.ascontiguousarray(laid(arrays[name]))))

    give(steps[0])
    with pastnet.torch.Recorder(logdir, module, every=1, initial_step=0) as recorder:
        for number, arrays in enumerate(steps[1:], 1):
            give(arrays)
            recorder.record(number)


def in_jax(logdir: Path, family: Family, steps: list[Arrays]) -> None:
    def tree(arrays: Arrays) -> dict[str, Any]:
        made: dict[str, Any] = {}
        for name, (path, laid) in family.leaves.items():
            *parents, own = path.split("/")
            place = made
            for parent in parents:
                place = place.setdefault(parent, {})
            place[own] = jax.numpy.asarray(laid(arrays[name]))
        return made

    with pastnet.jax.Recorder(logdir, tree(steps[0]), every=1, initial_step=0) as recorder:
        for number, arrays in enumerate(steps[1:], 1):
            recorder.record(number, tree(arrays))


def in_numpy(logdir: Path, steps: list[Arrays], axes: Mapping[str, int]) -> None:
    now = dict(steps[0])
    functions = {name: (lambda name=name: now[name]) for name in now}
    with pastnet.numpy.Recorder(
        logdir, functions, every=1, initial_step=0, channel_axis=axes
    ) as recorder:
        for number, arrays in enumerate(steps[1:], 1):
            now.update(arrays)
            recorder.record(number)


def of_channels(logdir: Path, names: Mapping[str, str]) -> dict[str, Any]:
    """What the log says of each variable, by its name in Keras."""
    (run,) = pastnet.read(logdir).runs.values()
    rows = ("norm", "past_norm", "delta_norm", "delta_max", "changed", "nonfinite")
    return {
        name: {row: getattr(run.variables[own], row).tolist() for row in rows}
        for name, own in names.items()
    }


def recorded_alike(name: str, steps: list[Arrays], layer: Any, folder: Path) -> dict[str, Any]:
    """What Keras's log says of the variables that torch has, too; all logs say the same."""
    family = FAMILIES[name]
    in_keras(folder / "keras", layer, steps)
    in_torch(folder / "torch", family, steps)
    expected = of_channels(folder / "keras", {own: own for own in family.parameters})
    paths = {name: own for name, (own, _) in family.parameters.items()}
    assert of_channels(folder / "torch", paths) == expected
    if family.leaves:
        in_jax(folder / "jax", family, steps)
        paths = {name: path for name, (path, _) in family.leaves.items()}
        assert of_channels(folder / "jax", paths) == {own: expected[own] for own in paths}
    (run,) = pastnet.read(folder / "keras").runs.values()
    axes = {own: run.variables[own].axis for own in steps[0]}
    numbers = {own: int(axis) for own, axis in axes.items() if axis.lstrip("-").isdigit()}
    if numbers:
        in_numpy(folder / "numpy", [{own: step[own] for own in numbers} for step in steps], numbers)
        shown = {own: own for own in numbers}
        assert of_channels(folder / "numpy", shown) == of_channels(folder / "keras", shown)
    return expected


def built(name: str) -> Any:
    layer, shape = FAMILIES[name].layer(), FAMILIES[name].shape
    layer.build(*[shape] * (2 if name == "MultiHeadAttention" else 1))
    return layer


@pytest.mark.parametrize("name", FAMILIES)
def test_records_are_equal_to_the_last_bit(name: str, tmp_path: Path) -> None:
    layer = built(name)
    steps = [values(layer, seed) for seed in range(4)]
    expected = recorded_alike(name, steps, layer, tmp_path)
    # Whatever the channels are, all elements are in one of them.
    for own, rows in expected.items():
        moved = [np.linalg.norm(b[own] - a[own]) for a, b in pairwise(steps)]
        np.testing.assert_allclose(np.linalg.norm(rows["delta_norm"], axis=1), moved, rtol=0.03)


@pytest.mark.parametrize("name", FAMILIES)
def test_each_element_belongs_to_one_channel_the_same_in_all(name: str, tmp_path: Path) -> None:
    layer = built(name)
    steps = [values(layer, 0)]
    for own in FAMILIES[name].parameters:
        for element in range(steps[0][own].size):
            moved = {key: array.copy() for key, array in steps[-1].items()}
            moved[own].flat[element] += 1
            steps.append(moved)
    expected = recorded_alike(name, steps, layer, tmp_path)
    changed = np.concatenate([np.asarray(rows["changed"]) for rows in expected.values()], axis=1)
    assert ((changed > 0).sum(axis=1) == 1).all()
