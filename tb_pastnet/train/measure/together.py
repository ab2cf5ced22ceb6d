"""Does several things at a time, on threads that wait for the next ones."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from typing import Any, TypeVar

from tb_pastnet.train.process import pid

_MOST = 8

Result = TypeVar("Result")


def processors() -> int:
    """Processors that this process may use, up to as many as share the way to memory well."""
    known = getattr(os, "sched_getaffinity", None)
    return min(_MOST, len(known(0)) if known else os.cpu_count() or 1)


def together(actions: Sequence[Callable[[], Result]]) -> list[Result]:
    """Does things that hold no lock of the interpreter, on this thread and on others.

    Args:
        actions: in any order. If some raise, the others are done nevertheless.

    Returns:
        What each gives.

    Raises:
        Exception: one of those that they raised.

    Example:
        >>> together([lambda: 1, lambda: 2])
        [1, 2]
    """
    results: list[Any] = [None] * len(actions)
    waiting = deque(enumerate(actions))

    def work() -> None:
        while True:
            try:
                number, action = waiting.popleft()
            except IndexError:  # none is left
                return
            results[number] = action()

    helpers = [_pool().submit(work) for _ in range(min(processors(), len(actions)) - 1)]
    try:
        work()
    finally:
        wait(helpers)
    for helper in helpers:
        helper.result()
    return results


_POOLS: dict[int, ThreadPoolExecutor] = {}


def _pool() -> ThreadPoolExecutor:
    # By process: the threads of a pool don't live on in a fork.
    here = pid()
    if here not in _POOLS:
        _POOLS[here] = ThreadPoolExecutor(_MOST, thread_name_prefix="pastnet-measure")
    return _POOLS[here]
