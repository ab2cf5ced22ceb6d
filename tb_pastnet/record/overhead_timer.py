"""Measures the recording overhead on the training thread, and the time of the training around it.

One clock runs, and time counts for the part where the thread is: nothing counts twice.
"""

from __future__ import annotations

import functools
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from tb_pastnet.format.overhead import Overhead, encode_overhead
from tb_pastnet.format.tags import TAG_OVERHEAD
from tb_pastnet.record.failures import Method, noted
from tb_pastnet.record.messages import Message, message_event

OUTSIDE, OTHER, RECORDS, COPIES, MASKS, PROBE = range(6)

NOT_MEASURED = "Could not measure the recording overhead"


class OverheadTotals:
    """Totals of a lineage. The training thread adds to them, the writer thread reads them."""

    def __init__(self) -> None:
        self.seconds = [0.0] * 6
        self.steps = 0
        self.memory = 0

    def overhead(self, *, writer: float = 0.0, size: int = 0) -> Overhead:
        """These totals, with the writer thread's CPU time and the bytes that it wrote."""
        # A copy: the sum has to match its parts, even while they grow.
        outside, rest, records, copies, masks, probe = tuple(self.seconds)
        training = outside + rest + records + copies + masks + probe
        parts = training, records, copies, masks, probe, rest, writer
        return Overhead(self.steps, *parts, size, self.memory)

    def event(
        self, lineage: int, step: int, wall_time: float, written: int, writer: float
    ) -> bytes:
        """Encodes the totals as a framed event.

        Args:
            lineage: that it belongs to.
            step: of the event.
            wall_time: of the event.
            written: the log's size so far, without it.
            writer: processor seconds of writing so far.
        """
        cost = self.overhead(writer=writer, size=written)
        event = b""
        while True:
            # It counts its own bytes, and grows with them: this ends.
            counted = replace(cost, bytes=written + len(event))
            sealed = encode_overhead(counted, tag=TAG_OVERHEAD, step=step, lineage=lineage)
            grown = message_event(Message(TAG_OVERHEAD, step, sealed), wall_time)
            if len(grown) == len(event):
                return grown
            event = grown


class OverheadTimer:
    """Follows the training thread into our code and out of it, for `metered`.

    If another thread calls us in the meantime, for example to flush, that takes no training time,
    and isn't counted.
    """

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self.totals = OverheadTotals()
        self.clock = clock
        self._inside = threading.Lock()
        self._part = OUTSIDE
        self._since: float | None = None
        self._resting = False
        self._parts = [_Section(self, number) for number in range(6)]

    def enter(self) -> bool:
        """Training calls us. Returns whether to call `leave`: not within another call."""
        entered = self._inside.acquire(False)
        if entered:
            if self._resting:
                self._since, self._resting = None, False
            self.turn(OTHER)
        return entered

    def leave(self) -> None:
        """Training continues."""
        self.turn(OUTSIDE)
        self._inside.release()

    def passed(self, begun: float) -> None:
        """Counts a short call, which began at a time of `clock` and ends now."""
        if self._part != OUTSIDE or self._inside.locked():
            return  # it is within another one
        seconds, since, now = self.totals.seconds, self._since, self.clock()
        if since is not None and not self._resting:
            begun = max(begun, since)
            seconds[OUTSIDE] += begun - since
            seconds[OTHER] += now - begun
        self._since, self._resting = now, False

    def part(self, number: int) -> _Section:
        """A context for one of the parts; parts don't nest in themselves."""
        return self._parts[number]

    def turn(self, part: int) -> int:
        """Switches to another part, and returns the previous one."""
        now, previous, since = self.clock(), self._part, self._since
        # A signal handler that called us in between has counted up to a later time.
        if since is None or now >= since:
            if since is not None:
                self.totals.seconds[previous] += now - since
            self._since = now
        self._part = part
        return previous

    def so_far(self) -> Overhead:
        """The totals up to now, or to the end of the last call."""
        if self._part != OUTSIDE:
            self.turn(self._part)
        return self.totals.overhead()

    def rest(self) -> None:
        """Training has ended, as far as is known: the time until the next call doesn't count."""
        self._resting = True

    def restart(self) -> None:
        """Starts the totals of a new lineage; the old ones stay valid."""
        self.so_far()
        self.totals = OverheadTotals()


class _Section:
    __slots__ = ("_before", "_number", "_timer")

    def __init__(self, timer: OverheadTimer, number: int) -> None:
        self._timer = timer
        self._number = number
        self._before = OUTSIDE

    def __enter__(self) -> None:
        self._before = self._timer.turn(self._number)

    def __exit__(self, *error: object) -> None:
        self._timer.turn(self._before)


def metered(text: str = "", otherwise: Any = None, attempt: str = "") -> Callable[[Method], Method]:
    """Decorates a method that training calls, of objects with a `_timer`, or None, and `_failures`.

    If the method raises, the failure is counted under `text`, as by `noted`, and `otherwise` is
    returned; without a text it raises. `attempt` is the name of a shorter way, which is enough for
    most calls of a Recorder: a method that returns whether it was.
    """

    def decorate(method: Method) -> Method:
        body = noted(text, otherwise)(method) if text else method

        @functools.wraps(method)
        def timed(self: Any, *args: Any, **kwargs: Any) -> Any:
            if attempt:
                last = self._schedule.last
                try:
                    if getattr(self, attempt)(*args, **kwargs):
                        return otherwise
                except Exception as error:
                    # Else the longer way says what is wrong; with the step made, it would go back.
                    if self._schedule.last != last:
                        self._failures.add(NOT_MEASURED, error)
                        return otherwise
            entered: OverheadTimer | None = None
            try:
                timer: OverheadTimer | None = self._timer
                entered = timer if timer is not None and timer.enter() else None
            except Exception as error:
                self._failures.add(NOT_MEASURED, error)
            try:
                return body(self, *args, **kwargs)
            finally:
                if entered is not None:
                    try:
                        entered.leave()
                    except Exception as error:
                        self._failures.add(NOT_MEASURED, error)

        return timed  # type: ignore[return-value]

    return decorate
