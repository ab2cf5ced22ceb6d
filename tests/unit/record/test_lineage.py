from __future__ import annotations

import gc
import weakref

import keras
import pytest
import tensorflow as tf

import tb_pastnet as pastnet
from tb_pastnet import Recorder
from tb_pastnet.keras.model.tf_weights import network
from tb_pastnet.record.weight import Network
from tests.recorded import read_lineages


def weights(value=1.0):
    return {"a/kernel": tf.Variable([[value, 2.0]]), "b/bias": tf.Variable([3.0])}


def test_an_origin_is_of_names_and_values():
    first = network(weights()).origin()
    assert network(weights()).origin() == first
    assert network(weights(), variables=["a/kernel"]).origin() == first
    assert network(weights(1.5)).origin() != first
    other = {"c/kernel": weights()["a/kernel"], "b/bias": weights()["b/bias"]}
    assert network(other).origin() != first


def test_the_same_seed_is_the_same_origin():
    origins = set()
    for _ in range(2):
        keras.utils.set_random_seed(3)
        model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(3)])
        origins.add(network(model).origin())
    assert len(origins) == 1


def run(logdir, model, **settings):
    with Recorder(logdir, model, every=1, **settings) as recorder:
        start = settings.get("initial_step") or 0
        for step in range(start + 1, start + 3):
            model["a/kernel"].assign_add([[0.5, 0.0]])
            recorder.record(step)


def test_a_resumed_lineage_has_the_origin_of_the_one_before(tmp_path):
    model = weights()
    run(tmp_path, model)
    run(tmp_path, model, initial_step=2)
    first, second = read_lineages(tmp_path)
    assert (first.ordinal, second.ordinal) == (1, 2)
    assert first.description.origin == network(weights()).origin()
    assert second.description.origin == first.description.origin
    assert (first.description.first_step, second.description.first_step) == (1, 3)


@pytest.mark.parametrize("value", [1.0, 1.5], ids=["the same", "others"])
def test_logs_with_origins_of_the_former_kind_are_continued_by_the_same_weights(
    value, tmp_path, monkeypatch
):
    with monkeypatch.context() as patch:
        patch.setattr(Network, "origin", lambda own, _: own.former_origin())
        run(tmp_path, weights())
    run(tmp_path, weights(value))
    homes = [tmp_path, tmp_path / f"{tmp_path.name}_2"]
    found = [len(read_lineages(home)) for home in homes if home.exists()]
    assert found == ([2] if value == 1.0 else [1, 1])


def test_other_weights_at_the_first_step_are_another_run(tmp_path, caplog):
    model = weights()
    run(tmp_path, model)
    run(tmp_path, model, initial_step=0)
    (first,), (second,) = map(read_lineages, (tmp_path, tmp_path / f"{tmp_path.name}_2"))
    assert second.description.origin != first.description.origin
    assert f"Recording into {tmp_path / tmp_path.name}_2: {tmp_path} holds the log" in caplog.text


def test_trials_are_numbered(tmp_path, caplog):
    logdir = tmp_path / "search" / "trial{trial}"
    for value in (1.0, 1.0, 2.0):
        run(logdir, weights(value), initial_step=0)
    assert sorted(folder.name for folder in logdir.parent.iterdir()) == [
        "trial1",
        "trial2",
        "trial3",
    ]
    # One that goes on from a checkpoint goes on in its own.
    run(logdir, weights(3.0), initial_step=2)
    counts = [len(read_lineages(logdir.parent / f"trial{number}")) for number in (1, 2, 3)]
    assert counts == [1, 1, 2]
    assert caplog.text == ""


def test_trials_of_a_loaded_model_are_numbered(tmp_path):
    for _ in range(2):
        run(tmp_path / "{trial}", weights(), initial_step=100)
    assert sorted(folder.name for folder in tmp_path.iterdir()) == ["1", "2"]


def test_a_trial_that_is_known_only_at_its_first_record_is_numbered(tmp_path):
    logdir = tmp_path / "{trial}"
    for _ in range(2):
        run(logdir, weights(), initial_step=None)
    assert sorted(folder.name for folder in tmp_path.iterdir()) == ["1", "2"]


def test_the_working_directory_has_a_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for value in (1.0, 2.0):
        run(".", weights(value), initial_step=0)
    assert len(read_lineages(tmp_path / f"{tmp_path.name}_2")) == 1


def test_a_run_that_is_known_only_at_its_first_record_moves(tmp_path):
    for value in (1.0, 2.0, 1.0, 3.0):
        model = weights()
        for variable in model.values():
            variable.assign(tf.fill(variable.shape, value))
        run(tmp_path, model, initial_step=None)
    homes = [tmp_path, *(tmp_path / f"{tmp_path.name}_{number}" for number in (2, 3))]
    # The third began as the first: it goes on there. What was made too early is gone.
    assert [len(read_lineages(home)) for home in homes] == [2, 1, 1]
    assert all(lineage.record_steps() for home in homes for lineage in read_lineages(home))


@pytest.mark.parametrize("damage", ["cut", "empty", "gone", "flip"])
def test_an_unreadable_parent_has_no_heir(tmp_path, damage):
    model = weights()
    run(tmp_path, model)
    (file,) = tmp_path.glob("pastnet.0001.*/*")
    data = file.read_bytes()
    if damage == "gone":
        file.unlink()
    else:
        flipped = data[:70] + bytes([data[70] ^ 1]) + data[71:]
        file.write_bytes({"cut": data[:100], "empty": b"", "flip": flipped}[damage])
    run(tmp_path, model, initial_step=2)
    second = read_lineages(tmp_path)[1]
    assert second.description.origin not in ("", network(weights()).origin())


def test_remote_logs_are_resumed_too():
    from tb_pastnet.record.lineage import inherited_origin
    from tb_pastnet.record.segments import create_lineage

    model = weights()
    run("ram://resumed", model)
    assert inherited_origin(create_lineage("ram://resumed")) == network(weights()).origin()


def test_a_program_that_changes_its_directory_keeps_its_log(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "other").mkdir()
    model = weights()
    with Recorder("runs/a", model, every=1) as recorder:
        recorder.record(1)
        assert recorder.flush()
        monkeypatch.chdir("other")
        recorder.record(2)
        recorder.restart(2)
        recorder.record(3)
    assert not list((tmp_path / "other").iterdir())
    assert [log.record_steps() for log in read_lineages(tmp_path / "runs" / "a")] == [[1, 2], [3]]


def test_failures_are_noted_in_the_lineage_in_which_they_occurred(tmp_path):
    model = weights()
    rates = iter([None, None, 0.1, 0.1, None])
    recorder = Recorder(tmp_path / "a", model, every=1, learning_rate=lambda: next(rates) + 0.0)
    for step in (1, 2):
        recorder.record(step)
    for start in (2, 3, 4):
        assert recorder.flush()
        recorder.restart(start)
        recorder.record(start + 1)
    recorder.close()
    logs = read_lineages(tmp_path / "a")
    assert [sum(log.last.notes.values()) for log in logs] == [2, 0, 0, 1]
    assert pastnet.read(tmp_path).runs["a"].notes == recorder.notes.counts()


def test_a_recorder_that_is_not_closed_lets_its_network_go(tmp_path):
    model = weights()
    recorder = Recorder(tmp_path, model, every=1)
    recorder.record(1)
    assert recorder.flush()
    gone = [weakref.ref(recorder), weakref.ref(model["a/kernel"])]
    del recorder, model
    gc.collect()
    assert [reference() for reference in gone] == [None, None]


def test_a_recorder_that_is_gone_keeps_neither_thread_nor_file(tmp_path):
    recorder = Recorder(tmp_path, weights(), every=1)
    recorder.record(1)
    thread = recorder._sink._background.thread
    del recorder
    gc.collect()
    thread.join(10)
    assert not thread.is_alive()
    (lineage,) = read_lineages(tmp_path)
    assert lineage.record_steps() == [1]
