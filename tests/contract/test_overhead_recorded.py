"""What recording costs, and what a budget leaves out, from a training to who reads its log."""

from __future__ import annotations

from pathlib import Path

import keras
import numpy as np
import pytest
import tensorflow as tf

import tb_pastnet as pastnet
from tb_pastnet.errors import InvalidArgument
from tb_pastnet.format.overhead import Overhead
from tests import event_files as files
from tests.tensorboards import LOADERS, board

STEP, RECORD = 0.1, 0.05


class Timed:
    """A training of one layer whose steps and records take known times, by a clock of our own."""

    def __init__(self, logdir: Path, **settings):
        keras.utils.set_random_seed(3)
        self.layer = keras.layers.Dense(3, name="dense")
        self.model = keras.Sequential([keras.Input((4,)), self.layer])
        self.masks = pastnet.Masks(self.model, enforce=False)
        self.now = 0.0
        self.recorder = pastnet.Recorder(logdir, self.model, every=1, initial_step=0, **settings)
        self.recorder.meter.clock = lambda: self.now
        measure = self.recorder._source.compare

        def timed(*args, **kwargs):
            self.now += RECORD
            return measure(*args, **kwargs)

        self.recorder._source.compare = timed

    def step(self, step: int) -> None:
        self.now += STEP
        self.layer.kernel.assign_add(np.full((4, 3), 0.01, np.float32))
        self.recorder.record(step)


def kept_at(step: int) -> np.ndarray:
    kept = np.ones((4, 3), bool)
    kept[step // 7 % 4] = False
    return kept


@pytest.fixture(scope="module")
def thinned(tmp_path_factory):
    """A budget that pays every fifth record, masks that change, and a frozen weight that moves."""
    logdir = tmp_path_factory.mktemp("log")
    training = Timed(logdir / "a", budget=0.1)
    for step in range(1, 201):
        if step % 7 == 0:
            training.masks.regrow("dense/kernel", kept=np.ones((4, 3), bool))
            training.masks.prune("dense/kernel", kept=kept_at(step))
        if step == 150:
            training.masks.freeze("dense/bias", channels=[1])
        if step == 154:
            training.layer.bias.assign([0.0, 1.0, 0.0])
        training.step(step)
    training.recorder.close()
    return logdir, training.recorder.overhead


def test_records_are_left_out_and_counted(thinned):
    run = pastnet.read(thinned[0]).runs["a"]
    account = run.account
    assert account.shown == len(run.steps)
    assert account.shown + account.thinned == account.offered
    # In 22 s there are 20 s of steps, and 2.2 s are for records.
    assert 42 <= account.shown <= 44
    # No budget leaves out the record of the end, for which weights are compared once more.
    assert run.overhead.share <= 0.1 + 2 * RECORD / run.overhead.training
    kernel = run.variables["dense/kernel"]
    assert kernel.past_steps[:-1].tolist() == (kernel.steps[:-1] - 1).tolist()
    assert kernel.account == account


def test_no_change_of_a_mask_is_left_out(thinned):
    logdir, _ = thinned
    run = pastnet.read(logdir).runs["a"]
    with board(logdir, "slow") as here:
        header, _ = here.arrays("/layer", run="a", layer="dense")
    changed = [one["step"] for one in header["events"] if one["kind"] == "kept"]
    assert changed == list(range(7, 201, 7))
    assert set(changed) - set(run.steps.tolist())
    for step in changed:
        assert (run.layers["dense"].masks(step).kept == kept_at(step)).all()


def test_a_violation_is_told_with_the_step_at_which_a_record_was_due(thinned):
    run = pastnet.read(thinned[0]).runs["a"]
    (bias,) = (one for one in run.violations if one.variable == "dense/bias")
    assert (bias.channel, bias.first_step) == (1, 154)
    assert 154 not in run.steps


def test_what_it_cost_is_told(thinned):
    logdir, cost = thinned
    found = pastnet.read(logdir).runs["a"].overhead
    assert found.steps == 200
    assert found.training == pytest.approx(199 * STEP + cost.seconds, abs=1e-4)
    assert found.records == pytest.approx(RECORD * len(pastnet.read(logdir).runs["a"].steps))
    assert found.seconds == pytest.approx(cost.seconds, abs=1e-4)
    assert found.bytes == sum(p.stat().st_size for p in logdir.rglob("*") if p.is_file())
    assert found.writer > 0


@pytest.mark.parametrize("loader", LOADERS)
def test_the_index_tells_it(thinned, loader):
    logdir, _ = thinned
    expected = pastnet.read(logdir).runs["a"].overhead
    with board(logdir, loader) as here:
        (run,) = here.json("/index")["runs"]
    told = run["overhead"]
    assert told.pop("share") == expected.share
    assert told.pop("seconds") == expected.seconds
    assert Overhead(**told) == expected


def test_without_a_budget_nothing_is_left_out(tmp_path):
    training = Timed(tmp_path)
    for step in range(1, 31):
        training.step(step)
    training.recorder.close()
    run = pastnet.read(tmp_path).runs["."]
    assert run.steps.tolist() == list(range(1, 31))
    assert run.overhead.share == pytest.approx(31 * 0.05 / (29 * 0.1 + 31 * 0.05), rel=1e-3)


def test_what_lineages_cost_adds_up(tmp_path):
    training = Timed(tmp_path)
    for step in (1, 2, 3, 2, 3, 4):
        training.step(step)
    training.recorder.close()
    run = pastnet.read(tmp_path).runs["."]
    assert len(run.lineages) == 2
    # The step that goes back has nothing to compare with.
    assert run.account.superseded == 1
    assert run.overhead.records == pytest.approx(5 * RECORD)
    assert run.overhead.steps == 5
    assert run.overhead.bytes == sum(p.stat().st_size for p in tmp_path.rglob("*") if p.is_file())


def test_a_callback_keeps_a_budget_through_fit(tmp_path):
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(3)])
    model.compile("sgd", "mse")
    x = np.ones((60, 4), np.float32)
    callback = pastnet.PastNetCallback(tmp_path, every=1, budget=1e-9)
    model.fit(x, x[:, :3], batch_size=2, verbose=0, callbacks=[callback])
    cost = callback.recorder.overhead
    callback.close()
    run = pastnet.read(tmp_path).runs["."]
    assert run.steps.tolist() == [1, 30]  # the last in any case
    assert (run.account.offered, run.account.thinned) == (30, 28)
    assert 0 < cost.records < cost.seconds < cost.training
    assert run.overhead.steps == 30


def test_summary_calls_and_older_logs_tell_nothing(tmp_path):
    weight = tf.Variable([[1.0, 2.0]])
    with tf.summary.create_file_writer(str(tmp_path / "own")).as_default():
        pastnet.summary.channels("dense/kernel", weight, weight + 1.0, step=1)
    files.write_run(tmp_path, "older")
    runs = pastnet.read(tmp_path).runs
    assert (runs["own"].overhead, runs["older"].overhead) == (None, None)


@pytest.mark.parametrize("budget", [0, -1, 1, float("nan"), True, "1 %"])
def test_a_budget_is_checked_at_once(tmp_path, budget):
    text = "Could not schedule records: expected budget= a share of the training's time"
    with pytest.raises(InvalidArgument, match=text):
        pastnet.PastNetCallback(tmp_path / "log", budget=budget)
    with pytest.raises(InvalidArgument, match=text):
        pastnet.Recorder(tmp_path / "log", {"w": tf.Variable([1.0])}, budget=budget)
    with pytest.raises(InvalidArgument, match=text):
        pastnet.v1.RecorderHook(tmp_path / "log", budget=budget)
    assert not (tmp_path / "log").exists()
