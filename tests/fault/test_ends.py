"""Acknowledged means readable, however the program ends; and it ends."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.recorded import read_lineages, read_one

ROOT = Path(__file__).parents[2]


def start(logdir, *arguments):
    command = [sys.executable, "-m", "tests.fault.sinking", str(logdir), *map(str, arguments)]
    return subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def finish(process):
    try:
        out, err = process.communicate(timeout=240)
    except subprocess.TimeoutExpired:
        process.kill()
        raise
    return [int(line) for line in out.split()], err, process.returncode


@pytest.mark.promise("kill_9")
@pytest.mark.parametrize("kills", [6, pytest.param(20, marks=pytest.mark.prove)])
def test_kill_9_at_random_points_loses_no_acknowledged_record(tmp_path, kills):
    random.seed(5)
    last = 0
    acknowledged: list[int] = []
    for _ in range(kills):
        process = start(tmp_path, "run", last + 1)
        for _ in range(random.randint(1, 60)):
            line = process.stdout.readline()
            acknowledged.append(int(line))
        time.sleep(random.uniform(0, 0.002))  # somewhere between two lines
        process.kill()
        more, _, _ = finish(process)
        acknowledged += more
        last = acknowledged[-1]
    lineages = read_lineages(tmp_path)
    assert [log.ordinal for log in lineages] == list(range(1, kills + 1))
    for log in lineages:
        assert log.descriptions
        steps = log.record_steps()
        # Each value says its step: what can be read is also right, and nothing is missing before it.
        assert steps == list(range(steps[0], steps[0] + len(steps)))
        values = log.values("a/kernel")[:, 0, 0]
        assert abs(values / steps - 1).max() < 0.022
    known = {step for log in lineages for step in log.record_steps()}
    assert set(acknowledged) <= known


@pytest.mark.promise("ends")
@pytest.mark.parametrize(
    ("end", "code", "text"),
    [
        ("return", 0, ""),
        ("raise", 1, "RuntimeError: the training failed"),
        ("exit", 3, ""),
        ("_exit", 4, ""),
        ("sigterm", -15, ""),
    ],
)
def test_every_end(tmp_path, end, code, text):
    acknowledged, errors, returned = finish(start(tmp_path, end))
    assert returned == code, errors
    assert text in errors
    log = read_one(tmp_path)
    assert set(acknowledged) <= set(log.record_steps())
    in_order = end not in ("_exit", "sigterm")
    assert log.last.closed == (end in ("return", "exit"))
    assert (log.record_steps() == list(range(1, 41))) or not in_order


@pytest.mark.promise("failing_internals")
def test_an_interrupt_in_the_middle_of_a_write(tmp_path):
    acknowledged, errors, returned = finish(start(tmp_path, "interrupt"))
    assert returned != 0
    assert "KeyboardInterrupt" in errors
    log = read_one(tmp_path)
    assert not log.last.closed
    assert set(acknowledged) <= set(log.record_steps())
    assert len(log.record_steps()) + log.last.dropped == log.last.offered


@pytest.mark.promise("failing_internals")
def test_a_blocked_disk_does_not_keep_the_program(tmp_path):
    # The write takes an hour.
    _, errors, returned = finish(start(tmp_path, "blocked"))
    assert returned == 0, errors


@pytest.mark.promise("ends")
def test_a_forked_child_leaves_the_files_alone(tmp_path):
    _, errors, returned = finish(start(tmp_path, "fork"))
    assert returned == 0, errors
    log = read_one(tmp_path)
    assert log.record_steps() == [1, 2]
    assert (log.last.offered, log.last.dropped, log.last.closed) == (2, 0, True)
