from __future__ import annotations

import os
import subprocess
import sys
import threading
import weakref
from queue import SimpleQueue

import pytest

from tb_pastnet.core import parallel as module
from tb_pastnet.core.parallel import fork_aware_pid, processors, together


@pytest.fixture
def four(monkeypatch):
    monkeypatch.setattr(module, "processors", lambda: 4)


@pytest.mark.usefixtures("four")
def test_results_are_in_order_and_threads_share_the_work():
    meet = threading.Barrier(4, timeout=10)

    def action(number):
        meet.wait()
        return number, threading.get_ident()

    found = together([lambda number=number: action(number) for number in range(4)])
    assert [number for number, _ in found] == [0, 1, 2, 3]
    assert len({thread for _, thread in found}) == 4
    assert threading.get_ident() in {thread for _, thread in found}


@pytest.mark.usefixtures("four")
def test_what_raises_is_raised_after_all_is_done():
    done = []

    def fails():
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        together([fails, *[lambda: done.append(1) or threading.Event().wait(0.01)] * 20])
    assert len(done) == 20


def test_nothing_is_nothing():
    assert together([]) == []
    assert processors() >= 1


@pytest.mark.usefixtures("four")
@pytest.mark.skipif(not hasattr(os, "fork"), reason="Windows doesn't fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_a_fork_has_threads_of_its_own():
    assert together([lambda: 1] * 8) == [1] * 8
    child = os.fork()
    if child == 0:
        os._exit(together([lambda: 2] * 8) != [2] * 8)
    assert os.waitpid(child, 0)[1] == 0


FORKS = """
import os
from tb_pastnet.core.parallel import fork_aware_pid
parent = fork_aware_pid()
child = os.fork()
if child == 0:
    os._exit(0 if fork_aware_pid() == os.getpid() != parent else 1)
assert fork_aware_pid() == os.getpid() == parent
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
"""


def test_it_is_that_of_the_system():
    assert fork_aware_pid() == os.getpid()


def test_a_fork_has_its_own():
    done = subprocess.run(
        [sys.executable, "-c", FORKS], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_what_an_action_holds_is_let_go_of_once_all_are_done(monkeypatch):
    both, gate = threading.Barrier(2), threading.Event()
    main = threading.current_thread()

    class Slow(SimpleQueue):
        """A helper that has handed its result on stays here."""

        def put(self, item):
            super().put(item)
            if threading.current_thread() is not main:
                gate.wait(10)

    class Action:
        def __call__(self):
            return both.wait(10)

    monkeypatch.setattr(module, "SimpleQueue", Slow)
    monkeypatch.setattr(module, "processors", lambda: 2)
    actions = [Action(), Action()]
    references = [weakref.ref(action) for action in actions]
    try:
        assert sorted(together(actions)) == [0, 1]
        del actions
        assert [reference() for reference in references] == [None, None]
    finally:
        gate.set()


def test_processors_are_those_that_the_process_may_use(monkeypatch):
    monkeypatch.setattr(os, "cpu_count", lambda: 6)
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0, 2, 5}, raising=False)
    assert processors() == 3
    monkeypatch.delattr(os, "sched_getaffinity")
    assert processors() == 6
    monkeypatch.setattr(os, "cpu_count", lambda: 64)
    assert processors() == 8
