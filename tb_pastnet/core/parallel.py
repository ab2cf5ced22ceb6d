"""Several things at a time: on helper threads, beside the thread that trains, across a fork."""

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
    """Processors that this process may use, up to as many as share the way to memory well."""
    affinity = getattr(os, "sched_getaffinity", None)
    return min(_MOST, len(affinity(0)) if affinity else os.cpu_count() or 1)


def together(actions: Sequence[Callable[[], Result]]) -> list[Result]:
    """Does things that hold no lock of the interpreter, on this thread and on others."""
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
            # What it holds is let go of before anybody hears that it is done.
            del action
            done.put((number, result, None))

    _helpers.ask(work, min(processors(), len(actions)) - 1)
    work()
    # Not until each helper has been here: one that isn't awake yet will find nothing to do.
    results = sorted((done.get() for _ in actions), key=itemgetter(0))
    for _, _, error in results:
        if error is not None:
            raise error
    return [result for _, result, _ in results]


class _Helpers:
    """Threads that do what they are asked for, as long as the process lives.

    To ask an executor, and to hear from it, takes longer than all small variables of a network.
    """

    def __init__(self) -> None:
        self._asked: SimpleQueue[Callable[[], None]] = SimpleQueue()
        self._count = 0

    def ask(self, work: Callable[[], None], times: int) -> None:
        """Lets some threads do the same."""
        while self._count < times:
            self._count += 1
            Thread(target=self._serve, name="pastnet-measure", daemon=True).start()
        for _ in range(times):
            self._asked.put(work)

    def _serve(self) -> None:
        while True:
            self._asked.get()()


def yield_gil() -> None:
    """Gives the interpreter back for a moment: called between pieces of work on our thread."""
    # Else the training thread would wait 5 ms for the interpreter, Python's switch interval, each
    # time it comes back from TensorFlow. A sleep of 0 gives it back and takes it again at once.
    time.sleep(20e-6)


_pid = os.getpid()
_helpers = _Helpers()


def fork_aware_pid() -> int:
    """The id of this process: asked for at each step, at which a call of the system is slow."""
    return _pid


def _follow() -> None:
    global _pid, _helpers
    # Threads don't live on in a fork.
    _pid, _helpers = os.getpid(), _Helpers()


# Where there is none, nothing forks.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_follow)
