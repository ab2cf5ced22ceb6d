"""A few threads for work in which zlib and NumPy let others run, shared by all requests."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import islice
from typing import Protocol, TypeVar

Item = TypeVar("Item")
Value = TypeVar("Value")
Other = TypeVar("Other")

THREADS = min(4, os.cpu_count() or 1)


class Each(Protocol):
    """How something is done to many items: one of the functions below."""

    def __call__(self, action: Callable[[Item], Value], items: Iterable[Item]) -> Iterator[Value]:
        """The results, in order."""
        ...


def in_threads(action: Callable[[Item], Value], items: Iterable[Item]) -> Iterator[Value]:
    """Does something to all items at once, as far as there are threads."""
    return _pool().map(action, items)


def a_few_at_once(action: Callable[[Item], Value], items: Iterable[Item]) -> Iterator[Value]:
    """The same for large results: only so many are made ahead as there are threads."""
    left = iter(items)
    while group := list(islice(left, 2 * THREADS)):
        yield from in_threads(action, group)


def in_turn(action: Callable[[Item], Value], items: Iterable[Item]) -> Iterator[Value]:
    """The same one by one, each when its result is asked for."""
    return map(action, items)


def together(first: Callable[[], Value], second: Callable[[], Other]) -> tuple[Value, Other]:
    """Does two things that wait, such as for another process, at once.

    Not in the threads of the others: what computes there would be waited for, too.
    """
    with ThreadPoolExecutor(1, "pastnet-wait") as pool:
        waiting = pool.submit(first)
        result = second()
        return waiting.result(), result


@cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(THREADS, "pastnet")
