"""When the writing thread sleeps and what wakes it: its loop without a thread, in a script's time."""

from __future__ import annotations

import contextlib
import tempfile
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tb_pastnet.record import background_writer as module
from tb_pastnet.record import sink as sinks
from tb_pastnet.record.background_writer import BackgroundWriter
from tb_pastnet.record.changes import Change
from tb_pastnet.record.segments import BLOCK_SECONDS
from tests.fault.sinking import make_sink, mask, offer
from tests.recorded import read_lineages

TICK = 1 / 1024  # sums of it are exact


class Loop(BackgroundWriter):
    """Actions of a script, (gap, action), happen while it sleeps, those without a gap after a pass."""

    def __init__(self, *given):
        self.now, self.woken, self.made, self.changed = 1000.0, 0, [], []
        super().__init__(*given)

    def _run(self):
        pass

    def follow(self, script):
        """Until it sleeps for good. What was made or changed, at some times, is written in time."""
        self.script, self.slept = list(script), []
        while self.slept[-1:] != [None]:
            self._wait()
            self._process()
            if self._writer.batch.changes.empty and Change not in map(type, self.items):
                self.changed.clear()
            waiting = [*self.made[self.written :], *self.changed]
            assert all(self.now - since < BLOCK_SECONDS for since in waiting)
            while self.script and not self.script[0][0]:
                self.script.pop(0)[1]()

    def _pause(self, seconds):
        left = float("inf") if seconds is None else seconds
        while self._wake.empty() and self.script and self.script[0][0] < left:
            gap, action = self.script.pop(0)
            self.now, left = self.now + gap, left - gap
            action()
        if not self._wake.empty():
            self.woken += 1
            return
        self.slept.append(seconds)
        if seconds is not None:
            self.now += left
            self.script[:1] = [(gap - left, action) for gap, action in self.script[:1]]


@contextlib.contextmanager
def looped(directory):
    """A sink whose loop is to be followed, and its failures."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sinks, "BackgroundWriter", Loop)
        patch.setattr(sinks, "_OPEN", [])
        patch.setattr(module, "_TAKEOVER_SECONDS", 0.0)
        sink, failures = make_sink(str(directory))
        loop = sink._background
        patch.setattr(module.time, "monotonic", lambda: loop.now)
        loop.follow([])
        loop.woken = 0
        try:
            yield sink, loop, failures
        finally:
            sinks._close_all()


def records(sink, count, gap=TICK):
    return [(gap, partial(offer, sink, step)) for step in range(1, count + 1)]


def read(directory):
    """The steps of the records and of the changes of each lineage."""
    logs = read_lineages(Path(directory))
    for log in logs:
        if log.steps:
            values = log.values("a/bias")[:, 0, 0]
            np.testing.assert_allclose(values, log.record_steps(), rtol=0.022)
    return [(log.record_steps(), [c.step for c in log.changes.values()]) for log in logs]


def test_a_block_wakes_it_and_it_does_not_look_in_vain(tmp_path):
    with looped(tmp_path) as (sink, loop, _):
        loop.follow(records(sink, 162))
        assert loop.woken == 11  # by the first, and by each block
        assert loop.slept[1:] == [BLOCK_SECONDS, None]
    assert read(tmp_path) == [(list(range(1, 163)), [])]


def test_what_comes_slowly_is_written_together_when_the_first_is_old(tmp_path):
    with looped(tmp_path) as (sink, loop, _):
        loop.follow([(60.0, partial(offer, sink, 0)), *records(sink, 8, gap=0.5)])
        assert loop.slept == [BLOCK_SECONDS] * 4 + [None]
        loop._took = offer(sink, 300)
        loop.now += 1.5
        loop._wait()
        assert loop.slept[-1] == 0.5
    (log,) = read_lineages(tmp_path)
    assert [len(timeline.steps) for timeline in log.timelines] == [4, 4, 1, 1]


@pytest.mark.parametrize(("size", "woken"), [(640, 13), (1 << 20, 1)])
def test_bytes_wake_it_before_a_block_is_full(tmp_path, monkeypatch, size, woken):
    monkeypatch.setattr(module, "WAKING_BYTES", size)
    with looped(tmp_path) as (sink, loop, _):
        loop.follow(records(sink, 13))
        assert loop.woken == woken


def test_records_that_fail_together_are_quantised_one_by_one(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "quantized", lambda records: 1 // 0)
    with looped(tmp_path) as (sink, loop, failures):
        loop.follow(records(sink, 17))
        assert sink.flush()
        assert [": ZeroDivisionError: " in text for text in failures.counts()] == [True]
    assert read(tmp_path) == [(list(range(1, 18)), [])]


GAPS = st.sampled_from([0, 0, TICK, TICK, 0.125, 0.75, 2.0, 3.0])
ACTIONS = st.sampled_from(["record", "record", "block", "change", "flush", "begin"])


@given(st.lists(st.tuples(GAPS, ACTIONS), max_size=40))
def test_in_any_order_all_is_in_the_file_in_time(script):
    with tempfile.TemporaryDirectory() as directory, looped(directory) as (sink, loop, _):
        offered = [([], [])]

        def act(step, name):
            for place in range({"record": 1, "block": 18}.get(name, 0)):
                loop.made.append(loop.now)
                offered[-1][0].append(step + place)
                assert offer(sink, step + place)
            if name == "change":
                loop.changed.append(loop.now)
                offered[-1][1].append(step)
                sink.masks(step, [mask(step)])
            elif name == "begin":
                offered.append(([], []))
                sink.begin(make_sink(directory)[0]._background._writer)
            elif name == "flush":
                assert sink.flush()
                assert read(directory) == offered

        loop.follow((gap, partial(act, 20 * n, name)) for n, (gap, name) in enumerate(script, 1))
        assert read(directory) == offered
