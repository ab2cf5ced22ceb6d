"""A few threads, shared by all requests, for work in which zlib and NumPy release the GIL."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import islice
from typing import Protocol, TypeVar

Item = TypeVar("Item")
Value = TypeVar("Value")
Other = TypeVar("Other")

THREADS = min(4, os.cpu_count() or 1)


_own = threading.local()


class Progress(Protocol):
    """Shows how far something is."""

    def __call__(self, items: Iterable[Item], text: str, total: int) -> Iterable[Item]:
        """The same items, counted as they are taken; `text` says what is done with them."""


def unseen(items: Iterable[Item], text: str, total: int) -> Iterable[Item]:
    """A progress that isn't shown."""
    del text, total
    return items


def in_threads(action: Callable[[Item], Value], items: Iterable[Item]) -> Iterator[Value]:
    """Results in order, made in parallel; inside one of these threads, one by one.

    A thread that waited for others of the pool might wait for itself. Most answers are small, of
    one item: another thread would only bring the way there and back.
    """
    items = list(items)
    here = len(items) < 2 or hasattr(_own, "pool")
    return map(action, items) if here else _pool().map(action, items)


def a_few_at_once(action: Callable[[Item], Value], items: Iterable[Item]) -> Iterator[Value]:
    """The same for large results: only as many are made ahead as there are threads."""
    left = iter(items)
    while group := list(islice(left, 2 * THREADS)):
        yield from in_threads(action, group)


def together(first: Callable[[], Value], second: Callable[[], Other]) -> tuple[Value, Other]:
    """Runs two waiting actions, such as calls to another process, at once.

    Not in the shared threads: it would also wait for what computes there.
    """
    with ThreadPoolExecutor(1, "pastnet-wait") as pool:
        waiting = pool.submit(first)
        result = second()
        return waiting.result(), result


@cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(THREADS, "pastnet", initializer=lambda: setattr(_own, "pool", True))
