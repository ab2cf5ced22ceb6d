"""The arrays of a variable are what was written, computed here from the codes alone."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tb_pastnet as pastnet
from tb_pastnet.core.violation import Violation
from tb_pastnet.errors import InvalidArgument
from tb_pastnet.reader.records import Layer
from tests import event_files as files

STEPS = range(1, 31)
NAMES = (
    "norm",
    "past_norm",
    "delta_norm",
    "delta_max",
    "changed",
    "nonfinite",
    "kept",
    "trainable",
)
CODES = files.codes(STEPS, 4)
files.freeze(CODES, slice(9, 19), slice(1, 2))
files.prune(CODES, slice(5, None), slice(2, 3))
files.poison(CODES, slice(2, 4), slice(0, 1))
CODES[5, 20:22, 0] = 30 - 32768
KEPT = np.arange(36).reshape(3, 3, 1, 4) % 4 != 2
MOVED = Violation("conv1/kernel", 2, 8, 12, 1, 9, 0.5, "momentum")


@pytest.fixture(scope="module")
def layer(tmp_path_factory: pytest.TempPathFactory) -> Layer:
    logdir = tmp_path_factory.mktemp("log")
    writer = files.LineageWriter(logdir)
    writer.describe(0, audited=True)
    writer.masks(6, {("kept", "conv1/kernel"): KEPT})
    writer.violations(12, [MOVED])
    rates = [0.1] * 20 + [0.01] * 10
    writer.records(STEPS, {"conv1/kernel": CODES}, learning_rates=rates, notes={"slow disk": 2})
    return pastnet.read(logdir).runs["a"].layers["conv1"]


def meant(codes: np.ndarray) -> np.ndarray:
    values = 2.0 ** (codes / 16)
    values[codes == -32768] = 0
    return values


def test_statistics_are_the_codes_that_were_written(layer: Layer) -> None:
    for row, name in enumerate(NAMES):
        found = getattr(layer, name)
        codes = CODES[row]
        right = codes.astype(float) + 32768 if name == "nonfinite" else meant(codes)
        assert (found.dtype, found.shape) == (np.float64, (30, 4))
        np.testing.assert_array_equal(found, right, name)
    assert layer.nonfinite[[2, 20], 0].tolist() == [2, 30]
    expected = meant(CODES[2]) / meant(CODES[1] * (CODES[1] > -32768))
    expected[layer.nonfinite > 0] = np.nan
    np.testing.assert_allclose(layer.relative_delta, expected)


def test_the_axis_of_time_comes_with_it(layer: Layer) -> None:
    assert layer.steps.tolist() == list(STEPS)
    assert layer.past_steps.tolist() == list(range(30))
    assert layer.wall_times.tolist() == [files.CREATED + step for step in STEPS]
    assert layer.learning_rates.tolist() == [0.1] * 20 + [0.01] * 10


def test_states_are_names(layer: Layer) -> None:
    states = layer.states()
    assert states.shape == (30, 4)
    assert set(states[:, 3]) == {"moving"}
    assert (
        states[:, 1].tolist()
        == ["moving"] * 9 + ["frozen"] * 10 + ["reactivated"] * 5 + ["moving"] * 6
    )
    assert states[:, 2].tolist() == ["moving"] * 5 + ["pruned"] * 25
    assert (layer.states(threshold=1e9)[4:, 3] == "quiet").all()
    assert (layer.states(threshold=0)[:, 3] == "moving").all()
    broken = ["nonfinite"] * 2 + ["reactivated"] * 5
    assert states[:, 0].tolist() == (
        ["moving"] * 2 + broken + ["moving"] * 11 + broken + ["moving"] * 3
    )


def test_violated_marks_what_the_audit_found(layer: Layer) -> None:
    right = np.zeros((30, 4), bool)
    right[7:12, 2] = True
    np.testing.assert_array_equal(layer.violated, right)
    (found,) = layer.violations
    assert (found.layer, found.channel, found.cause) == ("conv1", 2, "momentum")
    assert found.text.startswith("conv1/kernel, channel 2: 1 of 9 held weights moved from step 8")
    assert layer.variables["bias"].violations == ()


def test_masks_are_in_the_shape_of_the_variable(layer: Layer) -> None:
    before, after, last = layer.masks(5), layer.masks(6), layer.masks()
    assert (before.step, after.step, last.step) == (5, 6, 30)
    assert before.kept is not None
    assert before.kept.all()
    np.testing.assert_array_equal(after.kept, KEPT)
    np.testing.assert_array_equal(last.kept, KEPT)
    assert last.trainable is not None
    assert last.trainable.shape == (3, 3, 1, 4)
    assert last.trainable.all()


def test_every_array_is_the_callers_own(layer: Layer) -> None:
    asked: list[Callable[[], np.ndarray]] = [
        *(
            lambda name=name: getattr(layer, name)
            for name in (*NAMES, "relative_delta", "violated")
        ),
        *(lambda name=name: getattr(layer, name) for name in ("steps", "past_steps", "wall_times")),
        layer.states,
        lambda: np.asarray(layer.masks().kept),
        lambda: np.asarray(layer.masks().trainable),
    ]
    for ask in asked:
        before = ask().copy()
        ask()[...] = np.zeros(1, before.dtype)
        np.testing.assert_array_equal(ask(), before)


def test_a_layer_is_read_by_its_main_variable(layer: Layer) -> None:
    kernel, bias = layer.variables.values()
    np.testing.assert_array_equal(layer.norm, kernel.norm)
    assert (layer.variable, layer.role, layer.shape) == ("conv1/kernel", "kernel", (3, 3, 1, 4))
    assert (layer.axis, layer.channels, layer.elements) == ("-1", 4, 9)
    assert (bias.id, bias.name, bias.layer, bias.dtype) == (
        "conv1/bias",
        "bias",
        "conv1",
        "float32",
    )
    assert (bias.role, bias.shape, bias.norm.shape) == ("bias", (4,), (30, 4))
    assert repr(layer) == "Layer('conv1', Conv2D, 4 channels of 'conv1/kernel')"
    assert repr(kernel) == "Variable('conv1/kernel', shape (3, 3, 1, 4), 4 channels)"


def test_what_became_of_its_records_is_told(tmp_path: Path) -> None:
    writer = files.LineageWriter(tmp_path)
    writer.describe(0)
    writer.records(STEPS, thinned=3)
    writer.put("channels/conv1/kernel", 31, b"garbage")
    layer = pastnet.read(tmp_path).runs["a"].layers["conv1"]
    account = layer.account
    assert (account.offered, account.shown, account.thinned, account.unreadable) == (34, 30, 3, 1)
    assert layer.notes == {"Records that tb_pastnet did not write, under its name": 1}


@pytest.mark.parametrize("step", ["3", 1.5, True, [1, 2], 2**63, -(2**63) - 1])
def test_only_a_step_has_masks(step: Any, tmp_path: Path) -> None:
    layer = pastnet.read(files.write_run(tmp_path).logdir).runs["a"].layers["conv1"]
    with pytest.raises(
        InvalidArgument, match="Could not read masks: expected step= a whole number"
    ):
        layer.masks(step)


def test_a_layer_without_records_is_empty(tmp_path: Path) -> None:
    files.LineageWriter(tmp_path).describe(0)
    run = pastnet.read(tmp_path).runs["a"]
    layer = run.layers["conv1"]
    assert (layer.norm.shape, layer.states().shape, len(layer.steps)) == ((0, 4), (0, 4), 0)
    assert layer.masks().step == 0
    assert run.overview().moving.shape == (0, 2)
    assert run.sparsity.tolist() == []
