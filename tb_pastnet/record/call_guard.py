"""One call at a time into a Recorder: threads take turns, a signal handler never waits."""

from __future__ import annotations

import functools
import sys
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any, TypeVar

Method = TypeVar("Method", bound=Callable[..., Any])

WAIT_SECONDS = 1.0
"""How long a call waits for one of another thread, which may wait for what this thread holds."""


class CallGuard:
    """Lets one call in at a time.

    Attributes:
        thread: the one whose call is in, 0 if none is.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.thread = 0

    def enter(self) -> bool:
        """Whether the call may begin; it doesn't while this thread, or another, is in one."""
        me = threading.get_ident()
        if self.thread == me and not self._within():
            return True  # Ctrl-C, say, came before it could leave
        # The thread's own stack can't continue before this returns.
        wait = 0.0 if self.thread == me else WAIT_SECONDS
        if not (self._lock.acquire(blocking=False) or (wait and self._lock.acquire(timeout=wait))):
            return False
        self.thread = me
        return True

    def leave(self) -> None:
        """The call has ended."""
        self.thread = 0
        self._lock.release()

    def run(self, method: Callable[..., Any], **given: Any) -> bool:
        """Calls a method as long as no other call is in; returns whether it did."""
        guard = self
        if not guard.enter():
            return False
        try:
            method(**given)
        finally:
            guard.leave()
        return True

    def _within(self) -> bool:
        """Whether what has called `enter` was itself called within a call."""
        frame: FrameType | None = sys._getframe(3)
        while frame is not None:
            if frame.f_code.co_filename == __file__ and frame.f_locals.get("guard") is self:
                return True
            frame = frame.f_back
        return False


def guarded(text: str) -> Callable[[Method], Method]:
    """Decorates a method of an object with a `_guard` and `_failures`; `text` says what fails.

    Called within another call of the same object, by a signal handler or by another thread that
    doesn't end, it does nothing: that is counted.
    """

    def decorate(method: Method) -> Method:
        @functools.wraps(method)
        def guarding(self: Any, *args: Any, **kwargs: Any) -> Any:
            guard: CallGuard = self._guard
            if not guard.enter():
                self._failures.add(f"{text}: a signal handler or thread called within another call")
                return None
            try:
                return method(self, *args, **kwargs)
            finally:
                guard.leave()

        return guarding  # type: ignore[return-value]

    return decorate
