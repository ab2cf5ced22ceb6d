"""Records as plain numbers: those of the log, as soon as they are made."""

from __future__ import annotations

import math

import numpy as np
import pytest

import tb_pastnet as pastnet
from tb_pastnet.core import channel_states
from tb_pastnet.core.axes import explicit_axis
from tb_pastnet.errors import InvalidArgument
from tb_pastnet.record.failures import Failures
from tb_pastnet.record.mask_tracker import MaskTracker
from tb_pastnet.record.options import Options
from tb_pastnet.record.recording import Recording
from tb_pastnet.record.source import ArraySource
from tb_pastnet.record.weight import Network, Weight


class ArrayWeight(Weight):
    """An array, which may be held, or follow something."""

    def __init__(self, name, array, *, trains=True, follows=False):
        axis = explicit_axis(-1, array.shape, name)
        super().__init__(name, array.shape, array.dtype.name, axis, follows=follows)
        self.array, self.trains = array, trains

    def read(self):
        return self.array

    def trainable(self):
        return self.trains


def recording(logdir, weights, log, *, every=1):
    network, failures = Network.of(weights), Failures()
    tracker = MaskTracker(network.weights, lambda: None, None, network.origin, failures)
    options = Options(every=every, initial_step=0, log=log)
    return Recording(logdir, ArraySource(network), options.schedule(), tracker, failures, options)


def test_they_are_those_that_the_log_tells(tmp_path):
    rng, calls = np.random.default_rng(0), []
    kernels = {name: rng.normal(size=(6, 4)).astype("f4") for name in "abcd"}
    kernels["b"][:] = 0
    weights = [
        ArrayWeight("a/kernel", kernels["a"]),
        ArrayWeight("a/bias", np.zeros(4, "f4")),
        ArrayWeight("b/kernel", kernels["b"]),
        ArrayWeight("c/kernel", kernels["c"], trains=False),
        ArrayWeight("d/kernel", kernels["d"], trains=False, follows=True),
    ]
    with recording(tmp_path, weights, lambda *call: calls.append(call), every=2) as recorder:
        for step in range(1, 61):
            kernels["a"][:, 0] *= 1.01
            kernels["a"][:, 1] *= 1 + (1e-6 if 20 < step < 50 else 1e-2)
            kernels["a"][:, 2] = 0 if step > 30 else kernels["a"][:, 2] + 0.1
            kernels["b"][:, :2] += 0.01 * (step > 10)
            kernels["d"] *= np.float32(1.001)
            kernels["b"][0, 3] = np.nan if step > 50 else 0
            weights[3].trains = 24 <= step < 40
            recorder.record(step)
    (run,) = pastnet.read(tmp_path).runs.values()
    overview = run.overview()
    assert [step for _, step in calls] == overview.steps.tolist() == [1, *range(2, 61, 2)]
    names, total = channel_states.NAMES[1:], overview.channels.sum()
    for record, (numbers, _) in enumerate(calls):
        for name in names:
            counts = getattr(overview, name)[record]
            assert numbers[f"pastnet/{name}"] == counts.sum() / total
            for layer, count, channels in zip("abcd", counts, overview.channels, strict=True):
                assert numbers.get(f"pastnet/layers/{layer}/{name}", 0) == count / channels
        moving, deltas = overview.moving[record], overview.mean_delta[record]
        for layer, delta in zip("abcd", deltas, strict=True):
            told = numbers.get(f"pastnet/layers/{layer}/delta", math.nan)
            np.testing.assert_allclose(told, delta, rtol=1e-6)
        mean = np.nansum(moving * deltas) / moving.sum()
        assert numbers["pastnet/delta"] == pytest.approx(mean, rel=1e-6)
        assert numbers["pastnet/violations"] == numbers["pastnet/sparsity"] == 0
        assert 0 < numbers["pastnet/overhead"] <= 1
        assert {type(number) for number in numbers.values()} == {float}
    # All states occur in this training.
    assert [name for name in names if not getattr(overview, name).any()] == []
    # A state of a layer is told from then on where it once was.
    assert "pastnet/layers/c/reactivated" not in calls[0][0]
    assert calls[-1][0]["pastnet/layers/c/reactivated"] == 0


def test_what_is_not_finite_is_told_too(tmp_path):
    calls, kernel = [], np.ones((2, 4), "f4")
    weights = [ArrayWeight("a/kernel", kernel)]
    with recording(tmp_path, weights, lambda *call: calls.append(call)) as recorder:
        for step in (1, 2):
            kernel[0, 3] = np.nan
            recorder.record(step)
    assert calls[-1][0]["pastnet/layers/a/nonfinite"] == 0.25


def test_a_function_that_fails_hurts_nothing(tmp_path):
    def log(numbers, step):
        raise OSError("no network")

    kernel = np.ones((2, 4), "f4")
    with recording(tmp_path, [ArrayWeight("a/kernel", kernel)], log) as recorder:
        for step in range(1, 4):
            kernel += 1
            recorder.record(step)
        assert recorder.notes.counts() == {
            "Could not call the function of log=: OSError: no network": 3
        }
    (run,) = pastnet.read(tmp_path).runs.values()
    assert len(run.steps) == 3


class FakeRun:
    """W&B's rules of rows: a call with a smaller step is lost, one without a step ends the row."""

    def __init__(self):
        self.rows, self.step, self.charts = [{}], 0, []

    def define_metric(self, *given, **options):
        self.charts.append((given, options))

    def log(self, data, step=None):
        if step is not None and step < self.step:
            return
        if step is not None and step > self.step:
            self._next(step)
        self.rows[-1].update(data)
        if step is None:
            self._next(self.step + 1)

    def _next(self, step):
        self.rows.append({})
        self.step = step


FakeRun.log.__module__ = "wandb.sdk.wandb_run"


@pytest.mark.parametrize("every", [1, 3])
@pytest.mark.parametrize("steps", [False, True])
@pytest.mark.parametrize("calls", [0, 1, 2, 5])
def test_wandb_loses_nothing_however_often_a_loop_logs(tmp_path, calls, steps, every):
    run, kernel = FakeRun(), np.ones((2, 4), "f4")
    run.log({"before": 1})
    weights = [ArrayWeight("a/kernel", kernel)]
    with recording(tmp_path, weights, run.log, every=every) as recorder:
        for step in range(2, 20):
            kernel *= 1.01
            for number in range(calls):
                run.log({f"own{number}": step}, step if steps else None)
            recorder.record(step)
        assert not recorder.notes.counts()
    own = [row["pastnet/step"] for row in run.rows if "pastnet/step" in row]
    (recorded,) = pastnet.read(tmp_path).runs.values()
    assert own == recorded.steps.tolist()
    assert sum("pastnet/delta" in row for row in run.rows) == len(own)
    for number in range(calls):
        assert [row[f"own{number}"] for row in run.rows if f"own{number}" in row] == [*range(2, 20)]
    assert (("pastnet/*",), {"step_metric": "pastnet/step"}) in run.charts


def test_what_cant_be_called_is_refused(tmp_path):
    with pytest.raises(InvalidArgument, match=r"expected a function, got 'wandb'"):
        recording(tmp_path, [ArrayWeight("a/kernel", np.ones((2, 4), "f4"))], "wandb")
