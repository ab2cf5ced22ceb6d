"""Tells the log what recording has cost: beside each timeline, so that any part of it knows."""

from __future__ import annotations

import time
from dataclasses import replace

from tb_pastnet.core.names import TAG_OVERHEAD
from tb_pastnet.format.overhead import encode_overhead
from tb_pastnet.record.messages import Message, message_event
from tb_pastnet.record.overhead_timer import OverheadTotals


class OverheadWriter:
    """Makes the events that say it, on the thread that writes, whose time it reads."""

    def __init__(self, totals: OverheadTotals, lineage: int) -> None:
        self._totals = totals
        self._lineage = lineage

    def event(self, step: int, wall_time: float, written: int) -> bytes:
        """The framed event of all so far; `written` are bytes with its group, but without it."""
        cost = self._totals.overhead(writer=time.thread_time(), size=written)
        event = b""
        while True:
            # It counts itself, and grows with what it counts: this ends.
            counted = replace(cost, bytes=written + len(event))
            sealed = encode_overhead(counted, tag=TAG_OVERHEAD, step=step, lineage=self._lineage)
            grown = message_event(Message(TAG_OVERHEAD, step, sealed), wall_time)
            if len(grown) == len(event):
                return grown
            event = grown
