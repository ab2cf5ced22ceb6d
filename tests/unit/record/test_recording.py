"""A recording in which a step failed, and the line when it ends."""

import threading

import numpy as np
import pytest

import tb_pastnet as pastnet
from tb_pastnet.core import thinning
from tb_pastnet.format.overhead import Overhead
from tb_pastnet.record import call_guard
from tb_pastnet.record.summary_line import nothing_recorded, summary_line


def test_all_that_there_is_to_say():
    cost = Overhead(steps=1000, training=20.0, records=1.0, copies=0.5, masks=0.1)
    assert summary_line("runs/a", 1234, "5 frozen", 1, 0.25, cost) == (
        "PastNet: 1,234 records; 5 frozen; 1 violated channel, sparsity 25.0%, recording overhead 8.0%. "
        "See: tensorboard --logdir runs/a"
    )


def test_what_is_not_known_is_left_out():
    text = "PastNet: 1 record; none; no violations. See: tensorboard --logdir 'my runs'"
    assert summary_line("my runs", 1, "none", 0, 0.0, Overhead()) == text


def test_a_training_shorter_than_the_way_to_the_first_record():
    assert nothing_recorded("a", 1, 10) == (
        "No record in a: the training made 1 step, but every=10. Use a smaller every=."
    )


@pytest.mark.parametrize("failing", ["goes_back", "advance"])
def test_what_is_copied_after_a_step_that_failed_is_of_that_step(tmp_path, monkeypatch, failing):
    weight = np.ones((1, 1), np.float32)
    settings = {"every": 3, "past": "record", "initial_step": 0}
    recorder = pastnet.numpy.Recorder(tmp_path, {"w": lambda: weight}, **settings)
    for step in range(1, 10):
        weight[:] = step
        with monkeypatch.context() as patch:
            if step == 6:
                patch.setattr(recorder._schedule, failing, lambda step: 1 / 0)
            recorder.record(step)
        if step == 6:
            recorder.sync()
    recorder.close()
    (run,) = pastnet.read(tmp_path).runs.values()
    w = run.variables["w"]
    assert w.steps.tolist() == [1, 3, 7, 9]
    assert w.past_steps.tolist() == [0, 1, 6, 7]
    np.testing.assert_allclose(w.past_norm[:, 0], [1, 1, 6, 7], rtol=0.023)
    assert sum(run.notes.values()) == 1


@pytest.mark.parametrize("method", ["restart", "expect_end"])
def test_a_step_that_is_no_number_costs_no_record(tmp_path, method):
    weight = np.ones((1, 1), np.float32)
    recorder = pastnet.numpy.Recorder(tmp_path, {"w": lambda: weight}, every=1)
    recorder.record(1)
    getattr(recorder, method)(None)
    for step in (2, 3):
        recorder.record(step)
    recorder.close()
    (run,) = pastnet.read(tmp_path).runs.values()
    assert run.steps.tolist() == [1, 2, 3]
    assert run.account.offered == 3
    ((text, count),) = run.notes.items()
    assert (text.split(": ")[1], count) == ("TypeError", 1)


def test_a_restart_that_fails_is_made_up_for_at_the_next_step(tmp_path, monkeypatch):
    weight = np.ones((1, 1), np.float32)
    settings = {"every": 1, "trainable": {"w": np.zeros((1, 1))}}
    recorder = pastnet.numpy.Recorder(tmp_path, {"w": lambda: weight}, **settings)
    recorder.record(1)
    with monkeypatch.context() as patch:
        patch.setattr(recorder._source, "rate_groups", lambda: 1 / 0)
        recorder.restart(1)
    for step in (2, 3):
        recorder.record(step)
    recorder.close()
    (run,) = pastnet.read(tmp_path).runs.values()
    assert run.steps.tolist() == [1, 2, 3]
    assert run.variables["w"].trainable.tolist() == [[0]] * 3
    assert list(run.notes.values()) == [1]


def test_threads_take_turns(tmp_path, monkeypatch):
    weight = np.ones((2, 3), np.float32)
    inside, through, done = (threading.Event() for _ in range(3))

    def read():
        if threading.current_thread().name == "first":
            inside.set()
            through.wait(20)
        return weight

    recorder = pastnet.numpy.Recorder(tmp_path, {"w": read}, every=1, past="record")
    first = threading.Thread(target=lambda: recorder.record(1), name="first")
    first.start()
    assert inside.wait(20)
    second = threading.Thread(target=lambda: (recorder.record(2), done.set()))
    monkeypatch.setattr(call_guard, "WAIT_SECONDS", 20.0)
    second.start()
    assert not done.wait(0.05)
    through.set()
    first.join(20)
    second.join(20)
    assert recorder.notes.counts() == {}
    assert recorder.flush(20)
    assert pastnet.read(tmp_path).runs["."].steps.tolist() == [1, 2]


def test_a_call_within_another_is_counted(tmp_path, caplog):
    weight = np.ones((2, 3), np.float32)
    calls = []

    def read():
        if calls:
            calls.pop()(recorder)
        return weight

    recorder = pastnet.numpy.Recorder(tmp_path, {"w": read}, every=1, past="record")
    recorder.record(1)
    for call in ("record", "restart", "sync"):
        calls[:] = [lambda each, call=call: getattr(each, call)(*[7] * (call != "sync"))]
        recorder.record(recorder.last_step + 1)
    text = "a signal handler or thread called within another call"
    assert [count for note, count in recorder.notes.counts().items() if text in note] == [1, 1, 1]
    assert caplog.text.count(text) == 3
    assert recorder.flush(20)
    assert pastnet.read(tmp_path).runs["."].steps.tolist() == [1, 2, 3, 4]


def test_what_is_refused_after_the_end_is_not_acknowledged(tmp_path):
    weight = np.ones((2, 3), np.float32)
    recorder = pastnet.numpy.Recorder(tmp_path, {"w": lambda: weight}, every=1)
    recorder.record(1)
    recorder.close(20)
    assert recorder.flush()
    recorder.record(2)
    assert not recorder.flush()


@pytest.mark.parametrize("past", ["previous", "record"])
def test_the_weights_are_not_read_for_what_is_left_out(tmp_path, monkeypatch, past):
    monkeypatch.setattr(thinning, "CAPACITY", 4)
    weight, reads = np.ones((1, 1), np.float32), []

    def read():
        reads.append(step)
        return weight

    step = 0
    settings = {"every": 3, "past": past, "initial_step": 0, "audit": False}
    recorder = pastnet.numpy.Recorder(tmp_path, {"w": read}, **settings)
    reads.clear()
    for step in range(1, 58):
        weight[:] = step
        recorder.record(step)
    due = [1, *range(3, 58, 3)]
    stored = [due[number] for number in (0, 1, 2, 3, 4, 6, 8, 10, 12, 16)]
    copied = [each - 1 for each in stored[1:]] if past == "previous" else []
    measured = stored if past == "previous" else due
    assert sorted({*reads}) == sorted({*measured, *copied})
    recorder.close()
    (run,) = pastnet.read(tmp_path).runs.values()
    assert run.steps.tolist() == [*stored, 57]


@pytest.mark.parametrize(
    ("place", "works", "notes"),
    [
        ("_tracker.unchanged", True, 0),  # the longer way makes up for it
        ("_schedule.passes", False, 0),
        ("_schedule.passes", True, 1),
        ("_timer.passed", False, 1),
        ("_timer.passed", True, 1),
        ("_passed", True, 1),
    ],
)
def test_a_step_whose_short_way_fails_is_made_once(tmp_path, monkeypatch, place, works, notes):
    weight = np.ones((1, 1), np.float32)
    settings = {"every": 4, "initial_step": 0}
    recorder = pastnet.numpy.Recorder(tmp_path, {"w": lambda: weight}, **settings)
    *part, name = place.split(".")
    owner = getattr(recorder, part[0]) if part else recorder
    method, failed = getattr(owner, name), []

    def fails(*args, **given):
        patch.undo()
        failed.append(works and method(*args, **given))
        raise TimeoutError("of a signal handler")

    for step in range(1, 9):
        weight[:] = step
        with monkeypatch.context() as patch:
            if step == 6:
                patch.setattr(owner, name, fails)
            recorder.record(step)
    recorder.close()
    (run,) = pastnet.read(tmp_path).runs.values()
    assert len(failed) == len(run.lineages) == 1
    assert run.steps.tolist() == [1, 4, 8]
    assert run.variables["w"].past_steps.tolist() == [0, 3, 7]
    assert sum(run.notes.values()) == notes


@pytest.mark.parametrize("kept", [True, False])
def test_what_has_moved_is_unknown_after_a_comparison_that_failed(tmp_path, monkeypatch, kept):
    weights = np.ones((4, 2), np.float32)
    settings = {"every": 1, "initial_step": 0, "channel_axis": {"w": 0}}
    recorder = pastnet.numpy.Recorder(tmp_path, {"w": lambda: weights}, **settings)
    compare = recorder._source.compare

    def fails(*args, **given):
        compare(*args, **given)
        raise MemoryError("no memory")

    for step in range(1, 7):
        if step in (2, 3, 4):  # the third record isn't made
            weights[step - 2] += 1
        with monkeypatch.context() as patch:
            if step == 2 and not kept:
                patch.setattr(recorder._sink, "offer", lambda record: False)
            if step == 3:
                patch.setattr(recorder._source, "compare", fails)
            recorder.record(step)
    recorder.close()
    (run,) = pastnet.read(tmp_path).runs.values()
    moved = {int(step): run.variables["w"].moved[at] for at, step in enumerate(run.steps)}
    assert list(moved) == ([1, 2, 4, 5, 6] if kept else [1, 4, 5, 6])
    unknown = np.nan
    np.testing.assert_array_equal(moved[4], [unknown if kept else 1, unknown, 1, unknown])
    np.testing.assert_array_equal([moved[5], moved[6]], np.zeros((2, 4)))


def test_what_has_moved_is_unknown_after_a_record_that_may_be_kept(tmp_path, monkeypatch):
    weights = np.ones((3, 2), np.float32)
    settings = {"every": 1, "initial_step": 0, "channel_axis": {"w": 0}}
    recorder = pastnet.numpy.Recorder(tmp_path, {"w": lambda: weights}, **settings)
    offer = recorder._sink.offer

    def fails(record):
        offer(record)
        raise TimeoutError("of a signal handler")

    for step in range(1, 5):
        if step in (2, 3):
            weights[step - 2] += 1
        with monkeypatch.context() as patch:
            if step == 2:
                patch.setattr(recorder._sink, "offer", fails)
            recorder.record(step)
    recorder.close()
    (run,) = pastnet.read(tmp_path).runs.values()
    assert run.steps.tolist() == [1, 2, 3, 4]
    moved = [[1, 0, 0], [np.nan, 1, 0], [0, 0, 0]]
    np.testing.assert_array_equal(run.variables["w"].moved[1:], moved)


def test_a_look_at_the_end_that_fails_hides_nothing_that_has_moved(tmp_path, monkeypatch):
    weight = np.ones((1, 1), np.float32)
    settings = {"every": 1, "initial_step": 0}
    recorder = pastnet.numpy.Recorder(tmp_path, {"w": lambda: weight}, **settings)
    recorder.record(1)
    weight[:] = 2
    source = recorder._source
    moved = source._moved

    def fails(prints):
        moved(prints)
        raise MemoryError("no memory")

    with monkeypatch.context() as patch:
        patch.setattr(source, "_moved", fails)
        recorder.flush(closed=True)
    recorder.record(2)
    recorder.close()
    (run,) = pastnet.read(tmp_path).runs.values()
    assert run.variables["w"].moved[:, 0].tolist()[1:] == [1]
    assert sum(run.notes.values()) == 1
