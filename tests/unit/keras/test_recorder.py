from __future__ import annotations

import logging
import os
import shutil
import time
from collections import Counter

import keras
import numpy as np
import pytest
import tensorflow as tf

from tb_pastnet import Recorder, read
from tb_pastnet.core.statistics import DELTA_NORM, NORM, PAST_NORM, TRAINABLE
from tb_pastnet.errors import UnwritableLog
from tests.recorded import read_lineages, read_one


@pytest.fixture
def weight():
    return tf.Variable([[0.0, 1.0]])


@pytest.fixture
def model(weight):
    return {"dense/kernel": weight}


def train(recorder, weight, steps):
    for step in steps:
        weight.assign_add([[1.0, 0.0]])
        recorder.record(step)


def test_what_is_stored(tmp_path, model, weight):
    with Recorder(tmp_path, model, every=2, learning_rate=0.25, initial_step=0) as recorder:
        train(recorder, weight, range(1, 7))
        assert recorder.last_step == 6
    log = read_one(tmp_path)
    assert log.record_steps() == [1, 2, 4, 6]
    assert log.record_past_steps() == [0, 1, 3, 5]
    values = log.values("dense/kernel")
    np.testing.assert_allclose(values[:, NORM, 0], [1, 2, 4, 6], rtol=0.022)
    np.testing.assert_allclose(values[:, PAST_NORM, 0], [0, 1, 3, 5], rtol=0.022)
    assert values[:, [NORM, PAST_NORM], 1].tolist() == [[1, 1]] * 4
    assert values[:, DELTA_NORM].tolist() == [[1, 0]] * 4
    assert np.concatenate([t.learning_rates for t in log.timelines]).tolist() == [0.25] * 4
    assert abs(np.concatenate([t.wall_times for t in log.timelines]) - time.time()).max() < 60
    text = log.description
    assert (text.every, text.past, text.first_step, text.ordinal) == (2, "previous", 1, 1)
    assert [layer.id for layer in text.layers] == ["dense"]
    assert text.versions["tb-pastnet"]
    assert (log.last.offered, log.last.thinned, log.last.dropped, log.last.closed) == (
        4,
        0,
        0,
        True,
    )


def test_trainable_flags_are_recorded_as_they_change(tmp_path):
    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(3), keras.layers.Dense(1)])
    with Recorder(tmp_path, model, every=1, initial_step=0) as recorder:
        for step in range(1, 5):
            model.layers[0].trainable = step not in (2, 3)
            recorder.record(step)
    log = read_one(tmp_path)
    assert log.values("dense/kernel")[:, TRAINABLE].tolist() == [[1] * 3, [0] * 3, [0] * 3, [1] * 3]
    assert log.values("dense_1/kernel")[:, TRAINABLE].tolist() == [[1]] * 4


def test_closing_without_a_record(tmp_path, model):
    Recorder(tmp_path, model).close()
    assert read_one(tmp_path).descriptions == []


def test_a_deleted_directory_costs_what_was_in_it(tmp_path, model, weight):
    recorder = Recorder(tmp_path / "run", model, every=1, initial_step=0)
    train(recorder, weight, [1, 2])
    assert recorder.flush()
    shutil.rmtree(tmp_path / "run")
    train(recorder, weight, [3, 4])
    assert recorder.flush()
    log = read_one(tmp_path / "run")
    assert log.record_steps() == [3, 4]
    assert log.description.first_step == 1
    recorder.close()


@pytest.mark.promise("failing_internals")
def test_nothing_raises_while_training(tmp_path, model, weight, monkeypatch, caplog):
    recorder = Recorder(tmp_path, model, every=1, initial_step=0, learning_rate=lambda: 1 / 0)
    train(recorder, weight, [1])

    def broken(*_, **__):
        raise RuntimeError("device lost")

    with caplog.at_level(logging.WARNING, "tb_pastnet"), monkeypatch.context() as patch:
        for name in ("compare", "copy"):
            patch.setattr(recorder._source, name, broken)
        train(recorder, weight, [2, 3])
        recorder.sync()
        recorder.restart(1)
        recorder.record("a step")
    train(recorder, weight, [4, 5])
    recorder.close()
    logs = read_lineages(tmp_path)
    notes = sum((Counter(log.last.notes) for log in logs), Counter())
    assert notes["Could not read the learning rate: ZeroDivisionError: division by zero"] >= 1
    assert notes["Could not make a record: RuntimeError: device lost"] == 2
    assert notes["Could not copy the past values: RuntimeError: device lost"] == 1
    # The thread that ends the first lineage may still count it.
    assert notes["Could not begin a new lineage: RuntimeError: device lost"] in (1, 2)
    assert any(note.startswith("Could not make a record: ValueError: invalid") for note in notes)
    assert len([r for r in caplog.records if "device lost" in r.message]) == 3
    assert (logs[0].last.offered, logs[0].last.dropped) == (3, 2)


def test_another_process_records_nothing(tmp_path, model, weight):
    recorder = Recorder(tmp_path, model, every=1, initial_step=0)
    recorder._pid = os.getpid() + 1
    train(recorder, weight, [1])
    recorder.sync()
    recorder.restart(0)
    recorder.close()
    assert not recorder.flush()
    assert recorder.last_step == 0
    recorder._pid = os.getpid()
    recorder.close()


def test_a_log_directory_that_cannot_be_written(tmp_path, model):
    (tmp_path / "file").write_text("in the way")
    for logdir in (tmp_path / "file", "/proc/self/nowhere"):
        with pytest.raises(
            UnwritableLog, match=r"Could not write to log directory '.*Choose another"
        ):
            Recorder(logdir, model)


def test_a_directory_that_takes_no_file(tmp_path, model, monkeypatch):
    def full(path):
        raise OSError(28, "No space left on device", path)

    monkeypatch.setattr("tb_pastnet.record.segments.GrowingFile", full)
    with pytest.raises(UnwritableLog, match=r"got 'No space left on device'"):
        Recorder(tmp_path, model)


def test_a_remote_log(model, weight):
    with Recorder("ram://remote/run", model, every=1) as recorder:
        train(recorder, weight, [1, 2, 3])
    (directory,) = tf.io.gfile.listdir("ram://remote/run")
    assert tf.io.gfile.glob(f"ram://remote/run/{directory.rstrip('/')}/*.pastnet")


@pytest.fixture
def pair():
    """An online network, and a target that isn't trainable."""
    nets = [
        keras.Sequential([keras.Input((3,)), keras.layers.Dense(4)], name=name)
        for name in ("online", "target")
    ]
    nets[1].trainable = False
    x = keras.Input((3,))
    return keras.Model(x, [net(x) for net in nets]), *nets


def moved(logdir, pair, follows):
    model, _, target = pair
    with Recorder(logdir, model, every=1, initial_step=0, follows=follows) as recorder:
        for step in range(1, 4):
            kernel = target.layers[-1].kernel
            kernel.assign(kernel * [2, 1.5, 1, 1])
            recorder.record(step)
    (run,) = read(logdir).runs.values()
    return run


@pytest.mark.parametrize("handle", ["name", "pattern", "layer", "variables"])
def test_what_follows_moves_on_purpose(tmp_path, pair, handle):
    target = pair[2]
    follows = {
        "name": ["target/dense/kernel", "target/dense/bias"],
        "pattern": "target/*",
        "layer": target,
        "variables": target.weights,
    }[handle]
    run = moved(tmp_path, pair, follows)
    assert run.violations == ()
    assert set(run.variables["target/dense/kernel"].states().ravel()) == {"following"}
    assert set(run.variables["target/dense/bias"].states().ravel()) == {"following"}
    assert "following" not in run.variables["online/dense/kernel"].states()
    (finding,) = (each for each in run.findings() if "target/dense" in each.layers)
    assert (finding.kind, finding.cause) == ("follows", "unequal_at_start")  # as they are made


def test_without_a_word_it_is_a_violation(tmp_path, pair):
    run = moved(tmp_path, pair, ())
    assert {(each.variable, each.channel) for each in run.violations} == {
        ("target/dense/kernel", 0),
        ("target/dense/kernel", 1),
    }
