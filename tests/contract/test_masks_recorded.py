"""What the tab says of masks against counts of the masks themselves, through a real training."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.tensorboards import LOADERS, Board, board

pytest.importorskip("tensorflow")

import keras

from tb_pastnet import MaskedDense, Masks, PastNetCallback, PolynomialDecay, PruningCallback
from tb_pastnet.core import channel_states

STEPS = 12
THAWED = 9


def network() -> Any:
    """A convolution, a Dense that is used twice, and a layer that owns its masks."""
    keras.utils.set_random_seed(0)
    inputs = keras.Input((6, 6, 2))
    hidden = keras.layers.Conv2D(8, 3, activation="relu", name="conv")(inputs)
    hidden = keras.layers.Flatten()(hidden)
    shared = keras.layers.Dense(16, activation="relu", name="shared")
    hidden = shared(keras.layers.Dense(16, name="first")(hidden))
    hidden = shared(hidden)
    return keras.Model(inputs, MaskedDense(3, name="last")(hidden))


class Truth(keras.callbacks.Callback):
    """Commands masks, and keeps what they are after each step."""

    def __init__(self, masks: Masks) -> None:
        super().__init__()
        self.masks = masks
        self.kept: list[dict[str, np.ndarray]] = []
        self.trainable: list[dict[str, np.ndarray]] = []
        self.kernels: list[np.ndarray] = []

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        step = batch + 1
        if step == 4:
            self.masks.freeze("conv/kernel", channels=[1, 2])
            self.model.get_layer("last").prune_kernel(np.eye(16, 3) == 0)
        if step == THAWED:
            self.masks.thaw("conv/kernel", channels=[2])
        names = list(self.masks.kept)
        self.kept.append({name: self.masks.kept[name] for name in names})
        self.trainable.append({name: self.masks.trainable[name] for name in names})
        self.kernels.append(self.model.get_layer("conv").kernel.numpy())


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Truth]:
    logdir = tmp_path_factory.mktemp("masks")
    model = network()
    model.compile(keras.optimizers.AdamW(0.01, weight_decay=0.1), "mse")
    masks = Masks(model)
    pruning = PruningCallback(masks, PolynomialDecay(0, 0.6, 2, 10), every=2)
    truth = Truth(masks)
    record = PastNetCallback(logdir / "run", every=1)
    x = np.random.default_rng(0).normal(size=(4 * STEPS, 6, 6, 2)).astype(np.float32)
    y = x[:, 0, :3, 0]
    callbacks = [pruning, truth, record]
    model.fit(x, y, batch_size=4, verbose=0, callbacks=callbacks)
    record.close()
    return logdir, truth


@pytest.fixture(scope="module", params=LOADERS)
def here(request: pytest.FixtureRequest, trained: tuple[Path, Truth]) -> Iterator[Board]:
    with board(trained[0], request.param) as opened:
        yield opened


def test_sparsity_is_that_of_the_masks(here: Board, trained: tuple[Path, Truth]) -> None:
    truth = trained[1]
    header, arrays = here.arrays("/records", run="run")
    assert arrays["steps"].tolist() == list(range(1, STEPS + 1))
    kernels = [name for name in truth.kept[0] if name.endswith("kernel")]
    assert len(kernels) == 4  # the shared one once
    assert sum(header["prunable"]) == sum(truth.kept[0][name].size for name in kernels)
    for at in range(STEPS):
        expected = sum(int((~truth.kept[at][name]).sum()) for name in kernels)
        assert arrays["pruned"][:, at].sum() == expected, at
    for row, layer in enumerate(header["layers"]):
        counts = [int((~kept[f"{layer}/kernel"]).sum()) for kept in truth.kept]
        assert arrays["pruned"][row].tolist() == counts, layer
    last = sum(header["prunable"])
    assert arrays["pruned"][:, -1].sum() / last == pytest.approx(truth.masks.sparsity(), abs=0)


def test_states_are_those_of_the_masks(here: Board, trained: tuple[Path, Truth]) -> None:
    truth = trained[1]
    for name in ("conv", "first", "shared", "last"):
        _, arrays = here.arrays("/layer", run="run", layer=name)
        state = arrays["state"] & channel_states.STATE
        for at in range(STEPS):
            kept, trainable = truth.kept[at], truth.trainable[at]
            axes = tuple(range(kept[f"{name}/kernel"].ndim - 1))
            pruned = ~kept[f"{name}/kernel"].any(axes)
            free = (kept[f"{name}/kernel"] & trainable[f"{name}/kernel"]).any(axes)
            np.testing.assert_array_equal(state[:, at] == channel_states.PRUNED, pruned)
            np.testing.assert_array_equal(state[:, at] == channel_states.FROZEN, ~free & ~pruned)
        assert not (arrays["state"] & channel_states.VIOLATED).any()


def test_events_have_the_steps_of_the_commands(here: Board) -> None:
    header, _ = here.arrays("/layer", run="run", layer="conv")
    steps = {(event["kind"], event["step"]) for event in header["events"]}
    assert {step for kind, step in steps if kind == "trainable"} >= {4, THAWED}
    assert {step for kind, step in steps if kind == "kept"} <= {2, 4, 6, 8, 10}


def test_a_clean_training_has_no_violation(here: Board, trained: tuple[Path, Truth]) -> None:
    assert here.json("/violations", run="run")["violations"] == []
    truth = trained[1]
    for at in range(STEPS - 1):
        kept, trainable = truth.kept[at + 1]["conv/kernel"], truth.trainable[at]["conv/kernel"]
        frozen = kept & ~trainable
        np.testing.assert_array_equal(truth.kernels[at][frozen], truth.kernels[at + 1][frozen])
        assert (truth.kernels[at + 1][~kept] == 0).all()
    assert frozen.any()


def test_both_loaders_agree(trained: tuple[Path, Truth]) -> None:
    found = []
    for loader in LOADERS:
        with board(trained[0], loader) as opened:
            found.append(
                (opened.get("/overview", run="run").get_data(), json.dumps(opened.json("/index")))
            )
    assert found[0] == found[1]
