"""Waits for the writing thread as long as it needs: how fast a disk is must not decide a test."""

from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Callable, Iterator
from unittest import mock

from tb_pastnet.record.background_writer import BackgroundWriter, FlushMarker
from tb_pastnet.record.sink import Sink

PATIENCE = 120.0
CHOSEN = (0.001, 1.0)
"""Seconds that only a test gives, to see what happens once they are over."""


def longer(wait: Callable[..., bool]) -> Callable[..., bool]:
    """A method of the sink with another patience, whoever calls it, unless a test chose a short one."""

    @functools.wraps(wait)
    def waits(sink: Sink, timeout: float | None = None, **given: bool) -> bool:
        low, high = CHOSEN
        timeout = PATIENCE if timeout is None else timeout
        return wait(sink, timeout if low <= timeout < high else PATIENCE, **given)

    return waits


def be_patient() -> None:
    """Makes all sinks of this process wait, also for a lineage that ends, which training never does."""
    for name in ("flush", "close"):
        setattr(Sink, name, longer(getattr(Sink, name)))


@contextlib.contextmanager
def waiting() -> Iterator[list[float]]:
    """How long this thread is ready to wait for a sink meanwhile, each time that it does."""
    thread, limits, wait = threading.get_ident(), [], BackgroundWriter.reach

    def told(self: BackgroundWriter, marker: FlushMarker, timeout: float) -> bool:
        if threading.get_ident() == thread:
            limits.append(timeout)
        return wait(self, marker, timeout)

    with mock.patch.object(BackgroundWriter, "reach", told):
        yield limits
