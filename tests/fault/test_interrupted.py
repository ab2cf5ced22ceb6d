"""Ctrl-C and failures inside a Recorder whose variable says its step: no wrong value, ever."""

from __future__ import annotations

import contextlib
import random
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from tb_pastnet import Recorder
from tb_pastnet.core.statistics import DELTA_NORM, NORM, PAST_NORM
from tb_pastnet.record.segments import LocalSegments
from tests.fault.injected import Injector, Point
from tests.fault.observed import eagerly
from tests.recorded import Recorded, read_one

pytestmark = pytest.mark.promise("failing_internals")

STEPS = 12
SETTINGS: tuple[dict[str, Any], ...] = (
    {"every": 1},
    {"every": 2},
    {"every": 2, "past": 3},
    {"every": 3, "past": "record"},
    {"every": 1, "past": "epoch"},
)


def follow(logdir: Path, injector: Injector, point: Point | None, error: Any, **given: Any) -> int:
    """A loop whose user presses Ctrl-C at step 5, and goes on. Says how often that went through."""
    weight = tf.Variable([[0.0, 1.0]])
    interrupts = 0
    recorder = Recorder(logdir, {"dense/kernel": weight}, initial_step=0, **given)
    with injector.here():
        for step in range(1, STEPS + 1):
            injector.armed = False
            weight.assign([[float(step), 1.0]])
            injector.armed = True
            if step == 5:
                injector.aim(point, error)
                injector.again()
            try:
                recorder.record(step)
                if step % 4 == 2:
                    recorder.sync()
                    recorder.flush()
            except KeyboardInterrupt:
                interrupts += 1
    with contextlib.suppress(KeyboardInterrupt):
        recorder.close()
    recorder.close()
    return interrupts


def check(logdir: Path, whole: Recorded) -> None:
    log = read_one(logdir)
    values, steps = log.values("dense/kernel")[:, :, 0], np.array(log.record_steps())
    past = np.array(log.record_past_steps())
    # A record whose past was interrupted names none, and has no delta: with "epoch", all of that
    # epoch are compared with the copy that wasn't taken; otherwise each record has its own.
    unknown = past == steps
    asked = {whole.steps[key]: past_step for key, past_step in whole.past_steps.items()}
    assert len({asked.get(step, step) for step in steps[unknown].tolist()}) <= 1
    for row, known in ((NORM, steps), (PAST_NORM, past), (DELTA_NORM, steps - past)):
        expected = np.where(unknown & (row != NORM), np.nan, known)
        np.testing.assert_allclose(values[:, row], expected, rtol=0.023)
    assert log.last.closed
    assert len(steps) + log.last.thinned + log.last.dropped == log.last.offered
    assert whole.last.offered - log.last.offered <= 1


def fail_at_all(tmp_path: Path, error: Any, share: float, given: dict[str, Any]) -> int:
    counter = Injector()
    follow(tmp_path / "whole", counter, None, error, **given)
    whole = read_one(tmp_path / "whole")
    points = [Point(name, event) for name in sorted(counter.counts) for event in ("call", "return")]
    points = random.Random(1).sample(points, int(share * len(points)))
    raised = 0
    for number, point in enumerate(points):
        injector = Injector()
        logdir = tmp_path / str(number)
        interrupts = follow(logdir, injector, point, error, **given)
        assert interrupts == (injector.raised and error is KeyboardInterrupt), point
        check(logdir, whole)
        raised += injector.raised
    return raised


@pytest.mark.parametrize("error", [MemoryError, KeyboardInterrupt])
def test_some_calls(tmp_path: Path, error: Any) -> None:
    with eagerly():
        assert fail_at_all(tmp_path, error, 0.08, SETTINGS[1]) > 10


@pytest.mark.prove
@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
@pytest.mark.parametrize("given", SETTINGS, ids=repr)
def test_every_call(tmp_path: Path, error: Any, given: dict[str, Any], figure: Any) -> None:
    with eagerly():
        raised = fail_at_all(tmp_path, error, 1.0, given)
    figure(f"{raised} calls of a Recorder ended by {error.__name__}: 0 wrong values")


@pytest.mark.prove
def test_a_blocked_disk_keeps_no_step_waiting(
    tmp_path: Path, monkeypatch: Any, figure: Any
) -> None:
    through, write = threading.Event(), LocalSegments.write
    blocked: list[bool] = []

    def wait(self: LocalSegments, *data: Any) -> None:
        blocked.append(through.wait(120))
        write(self, *data)

    monkeypatch.setattr(LocalSegments, "write", wait)
    weight = tf.Variable(tf.ones((64, 64)))
    seconds = []
    with Recorder(tmp_path, {"dense/kernel": weight}, every=1, initial_step=0) as recorder:
        for step in range(1, 3001):
            begun = time.perf_counter()
            recorder.record(step)
            seconds.append(time.perf_counter() - begun)
            if step == 1500:
                through.set()
                assert recorder.flush()
    log = read_one(tmp_path)
    # Until it was let through nothing was written, and nobody waited for that.
    assert blocked[0]
    assert (log.last.offered, log.last.dropped) == (3000, 0)
    assert len(log.record_steps()) + log.last.thinned == 3000
    stuck, free = (1e3 * np.percentile(part, 99) for part in (seconds[100:1500], seconds[1500:]))
    figure(
        f"a record takes {stuck:.2f} ms at p99 while the disk is blocked, {free:.2f} ms when not"
    )
