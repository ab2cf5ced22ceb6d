"""When the writing thread sleeps and what wakes it: its loop without a thread, in a script's time."""

from __future__ import annotations

import contextlib
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tb_pastnet.core.statistics import STATISTICS
from tb_pastnet.record import background_writer as module
from tb_pastnet.record import sink as sinks
from tb_pastnet.record.background_writer import BackgroundWriter
from tb_pastnet.record.changes import Change
from tb_pastnet.record.segments import BLOCK_SECONDS
from tests.fault.sinking import make_sink, mask, offer
from tests.recorded import read_lineages, read_one

TICK = 1 / 1024  # sums of it are exact


class Loop(BackgroundWriter):
    """Actions of a script, (seconds, action), happen while it sleeps, those without a gap after a pass."""

    now, woken = 1000.0, 0

    def _run(self):
        pass

    def follow(self, script, made=(), changed=None):
        """Runs until it sleeps for good. What was made or changed at some times is written in time."""
        self.script, self.slept, changed = list(script), [], [] if changed is None else changed
        while self.slept[-1:] != [None]:
            self._wait()
            self._process()
            waits = [*self.items, *([] if self._writer.batch.changes.empty else [Change(0)])]
            if not any(isinstance(item, Change) for item in waits):
                changed.clear()
            assert all(self.now - at < BLOCK_SECONDS for at in [*made[self.written :], *changed])
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
        patch.setattr(module.time, "monotonic", lambda: sink._background.now)
        sink._background.follow([])
        sink._background.woken = 0
        try:
            yield sink, sink._background, failures
        finally:
            sinks._close_all()


def records(sink, count):
    return [(TICK, lambda step=step: offer(sink, step)) for step in range(1, count + 1)]


def test_a_full_block_wakes_it_and_silence_lets_it_sleep_for_good(tmp_path):
    with looped(tmp_path) as (sink, loop, _):
        loop.follow(records(sink, 162))
        assert loop.woken == 11  # by the first, and by each block
        # The rest is written by its age. Nothing else comes for as long: it doesn't poll.
        assert loop.slept[1:] == [BLOCK_SECONDS, None]
    assert read_one(tmp_path).record_steps() == list(range(1, 163))


def test_records_that_come_slowly_are_written_together_when_the_first_is_old(tmp_path):
    with looped(tmp_path) as (sink, loop, _):
        loop.follow(
            [
                (60.0 if step == 1 else 0.5, lambda step=step: offer(sink, step))
                for step in range(1, 10)
            ]
        )
        assert loop.slept == [BLOCK_SECONDS] * 4 + [None]
    assert [len(timeline.steps) for timeline in read_one(tmp_path).timelines] == [4, 4, 1, 0]


def test_what_came_while_it_wrote_keeps_its_age(tmp_path):
    with looped(tmp_path) as (sink, loop, _):
        loop._took = offer(sink, 1)
        loop.now += 1.5
        loop._wait()
        assert loop.slept[-1] == 0.5


def test_bytes_wake_it_before_a_block_is_full(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "WAKING_BYTES", 2 * len(STATISTICS) * 40 * 8)
    with looped(tmp_path) as (sink, loop, _):
        loop.follow(records(sink, 13))
        assert loop.woken == 5  # by the first, and by each three


def test_records_that_fail_together_are_quantised_one_by_one(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "quantized", lambda records: 1 // 0)
    with looped(tmp_path) as (sink, loop, failures):
        loop.follow(records(sink, 17))
        assert sink.flush()
        assert list(failures.counts()) == [
            "Could not prepare records: ZeroDivisionError: integer division or modulo by zero"
        ]
    assert read_one(tmp_path).record_steps() == list(range(1, 18))


GAPS = st.sampled_from([0, 0, TICK, TICK, 0.125, 0.75, 2.0, 3.0])
ACTIONS = st.sampled_from(["record", "record", "block", "change", "flush", "begin"])


@given(st.lists(st.tuples(GAPS, ACTIONS), max_size=40))
def test_in_any_order_all_is_in_the_file_in_time(script):
    with tempfile.TemporaryDirectory() as directory, looped(directory) as (sink, loop, _):
        made, changed, offered = [], [], [([], [])]

        def act(number, name):
            steps, changes = offered[-1]
            for step in range(20 * number, 20 * number + {"record": 1, "block": 18}.get(name, 0)):
                made.append(loop.now)
                steps.append(step)
                assert offer(sink, step)
            if name == "change":
                changed.append(loop.now)
                changes.append(20 * number)
                sink.masks(20 * number, [mask(20 * number)])
            elif name == "begin":
                offered.append(([], []))
                sink.begin(make_sink(directory)[0]._background._writer)
            elif name == "flush":
                assert sink.flush()
                assert read(directory) == offered

        actions = [
            (gap, lambda number=number, name=name: act(number, name))
            for number, (gap, name) in enumerate(script, start=1)
        ]
        loop.follow(actions, made, changed)
        assert read(directory) == offered


def read(directory):
    """The steps of the records and of the changes of each lineage."""
    logs = read_lineages(Path(directory))
    return [(log.record_steps(), [c.step for c in log.changes.values()]) for log in logs]
