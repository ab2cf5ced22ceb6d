"""Parallel work: on helper threads, next to the training thread, across a fork."""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Callable, Sequence
from operator import itemgetter
from queue import SimpleQueue
from threading import Thread
from typing import Any, TypeVar

_MOST = 8

Result = TypeVar("Result")


def processors() -> int:
    """Processors that this process may use, up to the number that share memory bandwidth well."""
    affinity = getattr(os, "sched_getaffinity", None)
    return min(_MOST, len(affinity(0)) if affinity else os.cpu_count() or 1)


def together(actions: Sequence[Callable[[], Result]]) -> list[Result]:
    """Runs actions that don't hold the interpreter's lock, on this thread and on others."""
    waiting = deque(enumerate(actions))
    done: SimpleQueue[tuple[int, Any, Exception | None]] = SimpleQueue()

    def work() -> None:
        while True:
            try:
                number, action = waiting.popleft()
            except IndexError:  # none is left
                return
            try:
                result = action()
            except Exception as error:
                done.put((number, None, error))
                continue
            # Its objects are released before it reports that it is done.
            del action
            done.put((number, result, None))

    _helpers.ask(work, min(processors(), len(actions)) - 1)
    work()
    # It doesn't wait for all helpers: one that wakes later finds nothing to do.
    results = sorted((done.get() for _ in actions), key=itemgetter(0))
    for _, _, error in results:
        if error is not None:
            raise error
    return [result for _, result, _ in results]


def start_helpers() -> None:
    """Starts the threads of `together` now: in a signal handler, starting one may wait for ever."""
    _helpers.start(processors() - 1)


class _Helpers:
    """Threads that run work for the life of the process.

    An executor's round trip takes longer than all small variables of a network.
    """

    def __init__(self) -> None:
        self._asked: SimpleQueue[Callable[[], None]] = SimpleQueue()
        self._count = 0

    def start(self, count: int) -> None:
        """Starts threads, up to a number of them."""
        while self._count < count:
            self._count += 1
            Thread(target=self._serve, name="pastnet-measure", daemon=True).start()

    def ask(self, work: Callable[[], None], times: int) -> None:
        """Runs the same work on several threads."""
        self.start(times)
        for _ in range(times):
            self._asked.put(work)

    def _serve(self) -> None:
        while True:
            self._asked.get()()


def yield_gil() -> None:
    """Releases the interpreter for a moment: called between pieces of work on our thread."""
    # Else the training thread would wait 5 ms for the interpreter, Python's switch interval, each
    # time it comes back from TensorFlow. A sleep of 0 releases it and takes it again at once.
    time.sleep(20e-6)


_pid = os.getpid()
_helpers = _Helpers()


def fork_aware_pid() -> int:
    """The id of this process, cached: it is read at each step, and a system call is slow."""
    return _pid


def _follow() -> None:
    global _pid, _helpers
    # A fork has no helper threads.
    _pid, _helpers = os.getpid(), _Helpers()


# Without it, nothing forks.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_follow)
