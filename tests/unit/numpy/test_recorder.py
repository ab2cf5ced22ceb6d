"""Arrays that functions give are recorded, whatever trains them."""

from __future__ import annotations

import gc

import numpy as np
import pytest

import tb_pastnet as pastnet
from tb_pastnet.errors import InvalidArgument
from tb_pastnet.numpy import Recorder


class Perceptron:
    """Two layers."""

    def __init__(self):
        rng = np.random.default_rng(0)
        self.arrays = {
            "hidden/kernel": rng.normal(size=(6, 5)).astype(np.float32),
            "hidden/bias": np.zeros(5, np.float32),
            "out/kernel": rng.normal(size=(5, 2)),
        }

    @property
    def weights(self):
        return {name: lambda name=name: self.arrays[name] for name in self.arrays}


def only_run(logdir):
    (run,) = pastnet.read(logdir).runs.values()
    return run


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
    ({"arrays": {}}, InvalidArgument, "expected at least one variable of floating dtype"),
    ({"arrays": {"w": np.ones(3)}}, InvalidArgument, "got ndarray. Write lambda: array"),
    (
        {"arrays": {"w": lambda: np.arange(3)}},
        InvalidArgument,
        r"none of 1 \('w': its dtype int64 isn't a",
    ),
    (
        {"arrays": {"w": lambda: np.zeros(0)}},
        InvalidArgument,
        r"none of 1 \('w': it has no elements",
    ),
    ({"arrays": {1: lambda: np.ones(3)}}, InvalidArgument, "1: expected arrays= with names, got"),
]


@pytest.mark.parametrize(("arguments", "error", "text"), ERRORS)
def test_bad_arguments_are_clear_errors(arguments, error, text, tmp_path):
    with pytest.raises(error, match=text):
        Recorder(tmp_path, **{"arrays": Perceptron().weights, **arguments})


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
        with Recorder(
            tmp_path, network, every=1, initial_step=start, channel_axis=axes
        ) as recorder:
            for step in (start + 1, start + 2):
                weight += moved
                recorder.record(step)
    run = only_run(tmp_path)
    layer = run.layers["d"]
    # 1 and -1 are the same axis, but not 0.
    assert layer.steps.tolist() == [5, 6]
    np.testing.assert_array_equal(layer.relative_delta[:, 1:], 0)
