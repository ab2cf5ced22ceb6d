"""Waits for the writing thread as long as it needs: how fast a disk is must not decide a test."""

from __future__ import annotations

import functools
from collections.abc import Callable

from tb_pastnet.record.sink import Sink

PATIENCE = 120.0
CHOSEN = (0.001, 1.0)
"""Seconds that only a test gives, to see what happens once they are over."""


def longer(wait: Callable[..., bool]) -> Callable[..., bool]:
    """A method of the sink with another patience, whoever calls it, unless a test chose a short one."""

    @functools.wraps(wait)
    def waits(sink: Sink, timeout: float = PATIENCE, **given: bool) -> bool:
        low, high = CHOSEN
        return wait(sink, timeout if low <= timeout < high else PATIENCE, **given)

    return waits


def be_patient() -> None:
    """Makes all sinks of this process wait, also for a lineage that ends, which training never does."""
    for name in ("flush", "close"):
        setattr(Sink, name, longer(getattr(Sink, name)))
