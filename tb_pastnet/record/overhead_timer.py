"""Times what recording takes of the thread that trains, and what the training takes around it.

One clock runs, and what passes goes to where the thread is, so that nothing counts twice.
"""

from __future__ import annotations

import functools
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar

from tb_pastnet.format.overhead import Overhead, encode_overhead
from tb_pastnet.format.tags import TAG_OVERHEAD
from tb_pastnet.record.messages import Message, message_event

OUTSIDE, OTHER, RECORDS, COPIES, MASKS, PROBE = range(6)

_FAILED = "Could not measure what recording takes"

Method = TypeVar("Method", bound=Callable[..., Any])


class OverheadTotals:
    """Totals of a lineage. The training thread adds to them, the writer's reads them."""

    def __init__(self) -> None:
        self.seconds = [0.0] * 6
        self.steps = 0

    def overhead(self, *, writer: float = 0.0, size: int = 0) -> Overhead:
        """These totals, with the writer thread's processor time and the bytes that it wrote."""
        # A copy: the sum has to be that of its parts, also while these grow.
        outside, rest, records, copies, masks, probe = tuple(self.seconds)
        training = outside + rest + records + copies + masks + probe
        return Overhead(self.steps, training, records, copies, masks, probe, rest, writer, size)

    def event(self, lineage: int, step: int, wall_time: float, written: int) -> bytes:
        """The framed event of all so far, for the thread that writes `written` bytes beside it."""
        cost = self.overhead(writer=time.thread_time(), size=written)
        event = b""
        while True:
            # It counts itself, and grows with what it counts: this ends.
            counted = replace(cost, bytes=written + len(event))
            sealed = encode_overhead(counted, tag=TAG_OVERHEAD, step=step, lineage=lineage)
            grown = message_event(Message(TAG_OVERHEAD, step, sealed), wall_time)
            if len(grown) == len(event):
                return grown
            event = grown


class OverheadTimer:
    """Follows the thread that trains into our code and out of it, for `metered`.

    Where another thread calls us meanwhile, such as for a flush, that takes none of the training's
    time, and isn't counted.
    """

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self.totals = OverheadTotals()
        self._clock = clock
        self._inside = threading.Lock()
        self._part = OUTSIDE
        self._since: float | None = None
        self._resting = False
        self._parts = [_Section(self, number) for number in range(6)]

    def enter(self) -> bool:
        """Training calls us. Returns whether `leave` is to be called: not within another call."""
        entered = self._inside.acquire(False)
        if entered:
            if self._resting:
                self._since, self._resting = None, False
            self.turn(OTHER)
        return entered

    def leave(self) -> None:
        """Training goes on."""
        self.turn(OUTSIDE)
        self._inside.release()

    def part(self, number: int) -> _Section:
        """A context for one of the parts; none may lie in itself."""
        return self._parts[number]

    def turn(self, part: int) -> int:
        """Goes to another part, and returns the one until then."""
        clock, previous = self._clock(), self._part
        if self._since is not None:
            self.totals.seconds[previous] += clock - self._since
        self._since, self._part = clock, part
        return previous

    def so_far(self) -> Overhead:
        """The totals up to now, or up to where training went on."""
        if self._part != OUTSIDE:
            self.turn(self._part)
        return self.totals.overhead()

    def rest(self) -> None:
        """Training has ended, as far as it is known: what passes until the next call isn't its."""
        self._resting = True

    def restart(self) -> None:
        """Begins the totals of a new lineage; whoever has the old ones keeps them."""
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


def metered(text: str = "", otherwise: Any = None) -> Callable[[Method], Method]:
    """Decorates what training calls, of objects with a `_timer`, or None, and `_failures`.

    Where the method raises, that `text` couldn't be done is counted as `noted` does, in one call
    for both, and `otherwise` returned; without a text it goes on raising.
    """

    def decorate(method: Method) -> Method:
        @functools.wraps(method)
        def timed(self: Any, *args: Any, **kwargs: Any) -> Any:
            entered: OverheadTimer | None = None
            try:
                timer: OverheadTimer | None = self._timer
                entered = timer if timer is not None and timer.enter() else None
            except Exception as error:
                self._failures.add(_FAILED, error)
            try:
                return method(self, *args, **kwargs)
            except Exception as error:
                if not text:
                    raise
                self._failures.add(text, error)
                return otherwise
            finally:
                if entered is not None:
                    try:
                        entered.leave()
                    except Exception as error:
                        self._failures.add(_FAILED, error)

        return timed  # type: ignore[return-value]

    return decorate
