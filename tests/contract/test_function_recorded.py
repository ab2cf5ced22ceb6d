"""What the tab says of a probe against twins that are loaded with the weights of each step."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests import probing
from tests.tensorboards import LOADERS, Board, board

pytest.importorskip("tensorflow")

import keras
from keras import layers

from tb_pastnet import PastNetCallback
from tb_pastnet.format.function_change import COSINE, DECISIONS, DIVERGENCE, MEASURES, RELATIVE

RNG = np.random.default_rng(0)
IMAGES = RNG.normal(size=(48, 6, 6, 2)).astype(np.float32)
DIGITS, ODD = RNG.integers(0, 4, 48), RNG.integers(0, 2, 48)
PROBE = RNG.normal(size=(9, 6, 6, 2)).astype(np.float32)
STEPS = 12
EVERY = {"previous": 1, "epoch": 1, "initial": 5, "record": 3}
LAYERS = ("conv", "norm", "hidden", "digit", "odd")


def network() -> Any:
    """Two classifiers on one trunk: logits of four classes, and a sigmoid."""
    inputs = keras.Input((6, 6, 2))
    hidden = layers.Conv2D(4, 3, activation="relu", name="conv")(inputs)
    hidden = layers.BatchNormalization(name="norm")(hidden)
    hidden = layers.Dropout(0.25)(layers.Flatten()(hidden))
    hidden = layers.Dense(8, activation="tanh", name="hidden")(hidden)
    odd = layers.Dense(1, activation="sigmoid", name="odd")(hidden)
    return keras.Model(inputs, [layers.Dense(4, name="digit")(hidden), odd])


class Saved(keras.callbacks.Callback):
    """The weights at the beginning and after each step."""

    def on_train_begin(self, logs: Any = None) -> None:
        self.weights = [self.model.get_weights()]

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        self.weights.append(self.model.get_weights())


def train(logdir: Path) -> list[Any]:
    """Six steps an epoch, two epochs, at a rate that changes some decisions; recorded in every way at once."""
    keras.utils.set_random_seed(0)
    model = network()
    logits = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(keras.optimizers.Adam(0.05), [logits, "binary_crossentropy"])
    saved = Saved()
    records = [
        PastNetCallback(logdir / past, every=every, past=past, probe=PROBE)
        for past, every in EVERY.items()
    ]
    fitted = {"batch_size": 8, "epochs": 2, "verbose": 0}
    model.fit(IMAGES, [DIGITS, ODD], **fitted, callbacks=[saved, *records])
    for record in records:
        record.close()
    return saved.weights


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[dict[str, Any]]]:
    """The log, and what each layer of a twin returns at each step."""
    logdir = tmp_path_factory.mktemp("functions")
    weights = train(logdir)
    twin = network()
    every = keras.Model(twin.input, [twin.get_layer(name).output for name in LAYERS])
    outputs = []
    for values in weights:
        twin.set_weights(values)
        outputs.append(dict(zip(LAYERS, every.predict(PROBE, verbose=0), strict=True)))
    return logdir, outputs


@pytest.fixture(scope="module", params=LOADERS)
def here(request: pytest.FixtureRequest, trained: Any) -> Iterator[Board]:
    with board(trained[0], request.param) as opened:
        yield opened


def due_steps(kind: str) -> list[int]:
    """The first, the last, and multiples."""
    return sorted({1, STEPS, *range(EVERY[kind], STEPS + 1, EVERY[kind])})


def past_of(kind: str, step: int) -> int:
    """The step of the past values, as the words say it."""
    if kind == "previous":
        return step - 1
    if kind == "record":
        return max(due for due in [0, *due_steps(kind)] if due < step)
    return 0 if kind == "initial" or step <= STEPS // 2 else STEPS // 2


@pytest.mark.parametrize("past", EVERY)
def test_each_layer_and_output_moved_as_the_twins_say(here: Board, trained: Any, past: str) -> None:
    outputs = trained[1]
    header, arrays = here.arrays("/function", run=past)
    assert header["measures"] == list(MEASURES)
    assert header["notes"] == []
    (given,) = header["probe"]
    assert (given["shape"], given["dtype"]) == (list(PROBE.shape), "float32")
    steps = arrays["steps"].astype(int).tolist()
    assert steps == due_steps(past)
    pasts = [past_of(past, step) for step in steps]
    assert arrays["past_steps"].tolist() == pasts
    places = [(place["kind"], place["name"], place["elements"]) for place in header["places"]]
    sizes = [outputs[0][name][0].size for name in LAYERS]
    assert [size for _, _, size in places] == [*sizes, 4, 1]
    kinds = [("layer", name) for name in LAYERS] + [("output", "digit"), ("output", "odd")]
    assert [place[:2] for place in places] == kinds
    for row, (_, name, _) in enumerate(places):
        expected = [
            probing.change(outputs[step][name], outputs[before][name])
            for step, before in zip(steps, pasts, strict=True)
        ]
        found = arrays["values"][[RELATIVE, COSINE], row].T
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-6, err_msg=name)
        assert found[:, 0].min() > 1e-3


@pytest.mark.parametrize("past", EVERY)
def test_classifiers_diverge_as_the_twins_say(here: Board, trained: Any, past: str) -> None:
    outputs = trained[1]
    _, arrays = here.arrays("/function", run=past)
    steps = arrays["steps"].astype(int).tolist()
    values = arrays["values"][[DIVERGENCE, DECISIONS]]
    assert np.isnan(values[:, : len(LAYERS)]).all()
    for at, step in enumerate(steps):
        y, before = outputs[step], outputs[past_of(past, step)]
        digit = probing.decided(probing.softmax(y["digit"]), probing.softmax(before["digit"]))
        np.testing.assert_allclose(values[:, -2, at], digit, rtol=1e-3, atol=1e-7)
        sides = [np.asarray(one["odd"], float) for one in (y, before)]
        odd = probing.decided(*(np.concatenate([1 - side, side], 1) for side in sides))
        np.testing.assert_allclose(values[:, -1, at], odd, rtol=1e-3, atol=1e-7)
    assert values[1, -2:].max() > 0


def test_both_loaders_agree(trained: Any) -> None:
    found = []
    for loader in LOADERS:
        with board(trained[0], loader) as opened:
            found.append([opened.get("/function", run=past).get_data() for past in EVERY])
    assert found[0] == found[1]
