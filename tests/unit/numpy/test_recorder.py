"""Arrays that functions give are recorded, whatever trains them."""

from __future__ import annotations

import gc
import time

import numpy as np
import pytest

import tb_pastnet as pastnet
from tb_pastnet.errors import InvalidArgument, UnknownName
from tb_pastnet.numpy import Recorder


class Perceptron:
    """Two layers that are trained in place, by hand."""

    def __init__(self):
        rng = np.random.default_rng(0)
        self.arrays = {
            "hidden/kernel": rng.normal(size=(6, 5)).astype(np.float32),
            "hidden/bias": np.zeros(5, np.float32),
            "out/kernel": rng.normal(size=(5, 2)),
        }
        self.x, self.y = rng.normal(size=(16, 6)), rng.normal(size=(16, 2))

    @property
    def weights(self):
        return {name: lambda name=name: self.arrays[name] for name in self.arrays}

    def step(self, rate=0.1, frozen=()):
        kernel, bias, out = self.arrays.values()
        hidden = np.tanh(self.x @ kernel + bias)
        error = 2 * (hidden @ out - self.y) / len(self.x)
        back = (error @ out.T) * (1 - hidden**2)
        gradients = {
            "hidden/kernel": self.x.T @ back,
            "hidden/bias": back.sum(0),
            "out/kernel": hidden.T @ error,
        }
        for name, gradient in gradients.items():
            if name not in frozen:
                self.arrays[name] -= (rate * gradient).astype(self.arrays[name].dtype)


def only_run(logdir):
    (run,) = pastnet.read(logdir).runs.values()
    return run


def test_a_training_is_recorded_as_numpy_says(tmp_path):
    network = Perceptron()
    saved = [{name: array.copy() for name, array in network.arrays.items()}]
    with Recorder(tmp_path, network.weights, every=3, learning_rate=lambda step: 1 / step) as each:
        for step in range(1, 8):
            network.step()
            saved.append({name: array.copy() for name, array in network.arrays.items()})
            each.record(step)
        assert each.notes.counts() == {}
    run = only_run(tmp_path)
    assert run.steps.tolist() == [1, 3, 6]
    np.testing.assert_allclose(run.learning_rates, [1, 1 / 3, 1 / 6], rtol=1e-6)
    for name, series in run.variables.items():
        for row, step in enumerate(run.steps.tolist()):
            now, old = (saved[number][name].astype(float) for number in (step, step - 1))
            moved = np.sqrt(((now - old) ** 2).reshape(-1, now.shape[-1]).sum(0))
            np.testing.assert_allclose(series.delta_norm[row], moved, rtol=0.023)
            largest = abs(now - old).reshape(-1, now.shape[-1]).max(0)
            np.testing.assert_allclose(series.delta_max[row], largest, rtol=0.023)


def test_training_is_the_same_with_a_recorder(tmp_path):
    bare, recorded = Perceptron(), Perceptron()
    with Recorder(tmp_path, recorded.weights, every=2) as recorder:
        for step in range(1, 10):
            bare.step()
            recorded.step()
            recorder.record(step)
    for name, array in bare.arrays.items():
        np.testing.assert_array_equal(array, recorded.arrays[name])


def test_what_is_frozen_and_moves_is_a_violation(tmp_path):
    network = Perceptron()
    masks = {"hidden/*": False}
    with Recorder(tmp_path, network.weights, every=1, masks=masks) as recorder:
        for step in range(1, 4):
            network.step(frozen=() if step == 3 else ("hidden/kernel", "hidden/bias"))
            recorder.record(step)
    violations = only_run(tmp_path).violations
    assert {violation.variable for violation in violations} == {"hidden/kernel", "hidden/bias"}
    assert {violation.first_step for violation in violations} == {3}


def test_weight_decay_is_known_by_its_numbers(tmp_path):
    network = Perceptron()
    masks = {"out/kernel": False}
    with Recorder(tmp_path, network.weights, every=2, masks=masks) as recorder:
        for step in range(1, 5):
            network.arrays["out/kernel"] *= 0.999
            recorder.record(step)
    assert {violation.cause for violation in only_run(tmp_path).violations} == {"weight_decay"}


def test_masks_by_element_and_later_ones(tmp_path):
    network = Perceptron()
    kept = np.ones((6, 5))
    kept[2, 3] = 0
    with Recorder(tmp_path, network.weights, every=1) as recorder:
        recorder.record(1)
        recorder.declare(masks={"out/kernel": False}, kept={"hidden/kernel": kept})
        network.arrays["hidden/kernel"][2, 3] = 0
        network.arrays["out/kernel"][4, 1] += 1
        recorder.record(2)
    run = only_run(tmp_path)
    (violation,) = run.violations
    assert (violation.variable, violation.channel, violation.first_step) == ("out/kernel", 1, 2)
    np.testing.assert_allclose(run.variables["hidden/kernel"].kept[-1, 3], 5 / 6, rtol=0.01)
    assert run.variables["out/kernel"].trainable.tolist() == [[1, 1], [0, 0]]


@pytest.mark.parametrize(
    ("array", "form"),
    [(np.ones((5, 3)), "float64[5, 3]"), (np.ones((5, 2), np.float32), "float32[5, 2]")],
    ids=["shape", "dtype"],
)
def test_another_form_is_counted_and_never_raised(array, form, tmp_path, caplog):
    network = Perceptron()
    with Recorder(tmp_path, network.weights, every=1) as recorder:
        network.arrays["out/kernel"] = array
        for step in range(1, 4):
            recorder.record(step)
        assert recorder.records == 0
    (line,) = [line for line in caplog.messages if "Make a new Recorder" in line]
    assert f"Could not read 'out/kernel': expected float64[5, 2], got {form}. Make a" in line


ERRORS = [
    ({"weights": {}}, InvalidArgument, "expected at least one variable of floating dtype"),
    ({"weights": {"w": np.ones(3)}}, InvalidArgument, "got ndarray. Write lambda: array"),
    (
        {"weights": {"w": lambda: np.arange(3)}},
        InvalidArgument,
        r"none of 1 \('w': its dtype int64 isn't a",
    ),
    (
        {"weights": {"w": lambda: np.zeros(0)}},
        InvalidArgument,
        r"none of 1 \('w': it has no elements",
    ),
    ({"weights": {1: lambda: np.ones(3)}}, InvalidArgument, "1: expected weights= with names, got"),
    ({"variables": ["nowhere"]}, UnknownName, "Could not find variable 'nowhere'"),
    ({"masks": {"out/kernel": 2}}, InvalidArgument, "Could not use the trainable mask of 'out"),
    ({"kept": {"out/kernel": np.ones(2)}}, InvalidArgument, r"expected shape \(5, 2\), got \(2,\)"),
    ({"channel_axis": {"out/kernel": 5}}, InvalidArgument, "Could not use axis 5 of 'out/kernel'"),
]


@pytest.mark.parametrize(("arguments", "error", "text"), ERRORS)
def test_bad_arguments_are_clear_errors(arguments, error, text, tmp_path):
    with pytest.raises(error, match=text):
        Recorder(tmp_path, **{"weights": Perceptron().weights, **arguments})


def test_channel_axes_are_corrected_by_name(tmp_path):
    axes = {"out/kernel": 0}
    with Recorder(tmp_path, Perceptron().weights, every=1, channel_axis=axes) as recorder:
        recorder.record(1)
    assert only_run(tmp_path).variables["out/kernel"].norm.shape == (1, 5)


def test_a_step_that_no_log_can_hold_is_counted_and_never_raised(tmp_path, caplog):
    with Recorder(tmp_path, Perceptron().weights, every=1) as recorder:
        for step in (-1, 1, 2**53, 2**53 + 1, time.time_ns()):
            recorder.record(step)
    assert only_run(tmp_path).steps.tolist() == [1, 2**53]
    (line,) = [line for line in caplog.messages if "a step from 0 to 2 ** 53" in line]
    assert line.startswith("Could not make a record")


def test_floats_of_another_package_are_recorded_and_its_whole_numbers_are_not(tmp_path):
    types = pytest.importorskip("ml_dtypes", reason="it comes with JAX and TensorFlow")
    with Recorder(tmp_path, {"w": lambda: np.ones(3, types.bfloat16)}, every=1) as recorder:
        recorder.record(1)
    assert only_run(tmp_path).variables["w"].dtype == "bfloat16"
    with pytest.raises(InvalidArgument, match=r"got none of 1 \('w': its dtype int4 isn't"):
        Recorder(tmp_path, {"w": lambda: np.ones(3, types.int4)})


def short(logdir, value, **settings):
    """A training whose recorder isn't closed."""
    weight = np.full((2, 3), value)
    recorder = Recorder(logdir, {"d/kernel": lambda: weight}, every=1, **settings)
    for step in range(1, 4):
        weight += 0.1
        recorder.record(step)
    return recorder


@pytest.mark.parametrize("initial_step", [None, 0])
@pytest.mark.parametrize("place", ["local", "store"])
def test_trainings_right_after_one_another_are_runs_of_their_own(
    place, initial_step, tmp_path, request
):
    logdir = tmp_path if place == "local" else f"memory://{request.node.name}/a"
    trainings = [short(logdir, value, initial_step=initial_step) for value in (1.0, 2.0, 3.0)]
    for training in trainings:
        training.close()
    runs = pastnet.read(logdir).runs.values()
    assert [(run.steps.tolist(), run.account.superseded) for run in runs] == [([1, 2, 3], 0)] * 3


@pytest.mark.parametrize("place", ["local", "store"])
def test_the_same_training_at_once_again_replaces_the_first(place, tmp_path, request):
    logdir = tmp_path if place == "local" else f"memory://{request.node.name}/a"
    trainings = [short(logdir, 1.0, initial_step=0) for _ in range(2)]
    for training in trainings:
        training.close()
    (run,) = pastnet.read(logdir).runs.values()
    assert [each.ordinal for each in run.lineages] == [1, 2]
    assert run.account.superseded == 3


def test_without_closing_the_run_is_given_back(tmp_path):
    recorder = short(tmp_path, 1.0)
    assert (tmp_path / ".pastnet.lock").exists()
    del recorder
    gc.collect()
    assert not (tmp_path / ".pastnet.lock").exists()


def test_flush_after_close_says_whether_all_is_written(tmp_path):
    with short(tmp_path / "a", 1.0) as recorder:
        pass
    assert recorder.flush()
    with Recorder(tmp_path / "b", {"d/kernel": lambda: np.ones((2, 3))}) as recorder:
        pass
    assert recorder.flush()


def test_a_training_too_short_for_a_record_is_said(tmp_path, caplog):
    with Recorder(tmp_path, {"d/kernel": lambda: np.ones((2, 3))}, every=9, past=5) as recorder:
        recorder.record(1)
    assert "the training made 1 step, but every=9. Use a smaller every=." in caplog.text


def test_rows_and_columns_are_not_joined(tmp_path):
    weight = np.eye(3) + 1
    moved = np.array([[0.1], [0], [0]])
    network = {"d/kernel": lambda: weight}
    for start, axis in ((0, -1), (2, 1), (4, 0)):
        axes = {"d/kernel": axis}
        with Recorder(tmp_path, network, 1, initial_step=start, channel_axis=axes) as recorder:
            for step in (start + 1, start + 2):
                weight += moved
                recorder.record(step)
    run = only_run(tmp_path)
    layer = run.layers["d"]
    # 1 and -1 are the same axis, but not 0.
    assert layer.steps.tolist() == [5, 6]
    np.testing.assert_array_equal(layer.relative_delta[:, 1:], 0)
