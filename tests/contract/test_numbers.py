"""The numbers in the routes against NumPy over the weights saved at each step, in both loaders."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.tensorboards import LOADERS, Board, board

pytest.importorskip("tensorflow")

from tests import families

Weights = list[dict[str, np.ndarray]]
Logs = tuple[Path, dict[str, Weights]]

NAMES = ("norm", "past_norm", "delta_norm", "delta_max", "changed")
PRECISION = 0.045


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Logs:
    """A run a family and one of MobileNetV2, with their weights after each step."""
    import keras

    folder = tmp_path_factory.mktemp("families")
    keras.utils.set_random_seed(0)
    saved = {
        name: families.train(folder / name, make(), inputs)
        for name, (make, inputs) in families.MODELS.items()
    }
    saved["MobileNetV2"] = families.train(folder / "MobileNetV2", *families.mobilenet(), steps=2)
    return folder, saved


@pytest.fixture(scope="module", params=LOADERS)
def here(request: pytest.FixtureRequest, logs: Logs) -> Iterator[Board]:
    with board(logs[0], request.param) as opened:
        yield opened


def layers_of(here: Board, run: str) -> list[dict[str, Any]]:
    index = here.json("/index")
    (entry,) = (one for one in index["runs"] if one["name"] == run)
    layers: list[dict[str, Any]] = index["networks"][entry["network"]]["layers"]
    return layers


def exported(here: Board, steps: int, **query: Any) -> dict[str, np.ndarray]:
    """The columns of a layer's CSV, numbers (steps, channels)."""
    text = here.get("/export.csv", **query).get_data(as_text=True)
    rows = list(csv.DictReader(text.splitlines()))
    return {
        name: np.array([float(row[name] or "inf") for row in rows]).reshape(steps, -1)
        for name in (*NAMES, "relative_delta")
    }


@pytest.mark.parametrize("family", families.MODELS)
def test_the_routes_tell_what_the_weights_did(here: Board, logs: Logs, family: str) -> None:
    check(here, logs, family)


@pytest.mark.parametrize("loader", ["slow", pytest.param("fast", marks=pytest.mark.prove)])
def test_the_routes_tell_it_of_hundreds_of_variables(logs: Logs, loader: str) -> None:
    with board(logs[0], loader) as opened:
        check(opened, logs, "MobileNetV2")


def check(here: Board, logs: Logs, family: str) -> None:
    """Compares every variable of a run."""
    saved = logs[1][family]
    seen = set()
    for layer in layers_of(here, family):
        for variable in layer["variables"]:
            name = variable["id"]
            seen.add(name)
            query = {"run": family, "layer": layer["id"], "variable": name}
            found = exported(here, len(saved) - 1, **query)
            _, arrays = here.arrays("/layer", **query)
            drawn = arrays["delta"]
            for at in range(len(saved) - 1):
                right = rows(family, name, variable["axis"], saved[at + 1][name], saved[at][name])
                got = np.stack([found[column][at] for column in NAMES])
                np.testing.assert_array_equal(got == 0, right == 0, err_msg=name)
                np.testing.assert_allclose(got, right, rtol=PRECISION, err_msg=name)
                compare_relative(right, found["relative_delta"][at], drawn[:, at], name)
    assert seen == set(saved[0])


def rows(family: str, name: str, axis: str, now: np.ndarray, before: np.ndarray) -> np.ndarray:
    if family == "MobileNetV2":
        return families.expected_by_column(now, before, axis)
    return families.expected(now, before, families.channel_of(family, name))[: len(NAMES)]


def compare_relative(right: np.ndarray, told: np.ndarray, drawn: np.ndarray, name: str) -> None:
    _, past, delta = right[:3]
    known = past > 0
    relative = delta[known] / past[known]
    np.testing.assert_allclose(told[known], relative, rtol=PRECISION, err_msg=name)
    np.testing.assert_allclose(drawn[known], relative, rtol=PRECISION, err_msg=name)
    moved_from_zero = ~known & (delta > 0)
    assert np.isinf(told[moved_from_zero]).all()
    assert np.isinf(drawn[moved_from_zero]).all()
    assert (drawn[~known & (delta == 0)] == 0).all()


@pytest.mark.parametrize("family", families.MODELS)
def test_one_channel_and_the_records_agree(here: Board, logs: Logs, family: str) -> None:
    saved = logs[1][family]
    header, arrays = here.arrays("/records", run=family)
    for at, layer in enumerate(layers_of(here, family)):
        assert header["layers"][at] == layer["id"]
        assert (arrays["counts"][at].sum(axis=1) == layer["channels"]).all()
        found = here.json("/channel", run=family, layer=layer["id"], channel=0)
        name, axis = layer["variable"], layer["axis"]
        for step in range(1, len(saved)):
            right = rows(family, name, axis, saved[step][name], saved[step - 1][name])
            for row, column in enumerate(NAMES):
                value = found[column][step - 1]
                assert value == pytest.approx(right[row, 0], rel=PRECISION), (name, column)
