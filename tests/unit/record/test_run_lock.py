"""The lock of a run: one process has it, and gives it back however it ends."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from tb_pastnet.numpy import Recorder
from tb_pastnet.record import run_lock
from tb_pastnet.record.lineage import EarlierRuns
from tb_pastnet.record.run_lock import RunLock

HOLDER = """
import sys
from tb_pastnet.record.run_lock import RunLock
lock = RunLock(sys.argv[1])
print(lock.take(), flush=True)
sys.stdin.read()
"""


@contextmanager
def another(directory: Path) -> Iterator[subprocess.Popen[str]]:
    """A process that has asked for the lock, and said whether it got it."""
    pipe = subprocess.PIPE
    command = [sys.executable, "-c", HOLDER, str(directory)]
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as process:
        yield process
        process.kill()


def said(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def test_one_process_has_it_until_it_is_killed(tmp_path: Path) -> None:
    lock = RunLock(str(tmp_path))
    with another(tmp_path) as process:
        assert said(process) == "True"
        assert not lock.take()
        assert not lock.held
        process.kill()
        process.wait()
        assert lock.take()
    with another(tmp_path) as process:
        assert said(process) == "False"
    lock.release()
    with another(tmp_path) as process:
        assert said(process) == "True"


def test_all_of_a_process_have_it_until_the_last_gives_it_back(tmp_path: Path) -> None:
    locks = [RunLock(str(tmp_path)) for _ in range(2)]
    assert all(lock.take() for lock in locks)
    for lock, free in zip(locks, ("False", "True"), strict=True):
        lock.release()
        lock.release()
        assert [*tmp_path.iterdir()] == ([tmp_path / ".pastnet.lock"] if free == "False" else [])
        with another(tmp_path) as process:
            assert said(process) == free


def test_a_fork_that_ends_gives_nothing_back(tmp_path: Path) -> None:
    lock = RunLock(str(tmp_path))
    lock.take()
    child = os.fork()
    if not child:
        lock.release()
        os._exit(0)
    os.waitpid(child, 0)
    with another(tmp_path) as process:
        assert said(process) == "False"
    lock.release()


@pytest.mark.parametrize("directory", ["s3://bucket/a", "/proc/nothing"])
def test_where_there_are_no_locks_it_is_free(directory: str) -> None:
    lock = RunLock(directory)
    assert lock.take()
    lock.release()


def test_without_locks_of_the_system_it_is_free(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(run_lock, "_fcntl", None)
    with another(tmp_path) as process:
        said(process)
        assert RunLock(str(tmp_path)).take()


WINDOWS = """
import fcntl, sys, types
def locking(file, mode, size):
    fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
sys.modules["msvcrt"] = types.SimpleNamespace(locking=locking, LK_NBLCK=2)
sys.modules["fcntl"] = None
"""


def test_windows_has_locks_of_its_own(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(sys.modules[__name__], "HOLDER", WINDOWS + HOLDER)
    with another(tmp_path) as first, another(tmp_path) as second:
        assert {said(first), said(second)} == {"True", "False"}
    with another(tmp_path) as process:
        assert said(process) == "True"


def test_a_program_that_closes_nothing_ends_without_a_word(tmp_path: Path) -> None:
    program = (
        "import sys, numpy, tb_pastnet.numpy as pastnet\n"
        "recorder = pastnet.Recorder(sys.argv[1], {'w': lambda: numpy.ones((2, 2))}, every=1)\n"
        "recorder.record(1)\n"
        "sys.modules['keeps'] = recorder\n"  # as what a framework holds at its end
    )
    command = [sys.executable, "-c", program, str(tmp_path / "a")]
    ended = subprocess.run(command, capture_output=True, text=True, check=True)
    assert ended.stderr == ""
    assert not (tmp_path / "a" / ".pastnet.lock").exists()


def test_a_run_that_another_process_writes_is_left_alone(tmp_path: Path, caplog) -> None:
    home = tmp_path / "a"
    home.mkdir()
    with another(home) as process:
        assert said(process) == "True"
        earlier = EarlierRuns(str(home))
        place, lock = earlier.free(0)
        assert place == str(home / "a_2")
        assert f"{home}: another process" not in caplog.text
        assert f"Recording into {place}: another process is recording into {home}." in caplog.text
        lock.release()
    place, lock = earlier.free(0)
    assert place == str(home)
    lock.release()


def test_a_run_beside_another_process_is_given_back_at_the_end(tmp_path: Path) -> None:
    home = tmp_path / "a"
    home.mkdir()
    with another(home) as process:
        assert said(process) == "True"
        # Without a first step it looks for its run twice, and finds the same.
        with Recorder(str(home), {"w": lambda: np.ones((2, 3), np.float32)}) as recorder:
            recorder.record(1)
            assert (home / "a_2" / ".pastnet.lock").exists()
        assert not (home / "a_2" / ".pastnet.lock").exists()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes only fork on POSIX")
def test_a_fork_that_records_is_another_process(tmp_path: Path) -> None:
    lock = RunLock(str(tmp_path))
    assert lock.take()
    child = os.fork()
    if not child:
        os._exit(RunLock(str(tmp_path)).take())
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    lock.release()
