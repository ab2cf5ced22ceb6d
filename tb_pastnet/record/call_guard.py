"""One call at a time into a Recorder: threads take turns, a signal handler never waits."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
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

    @contextmanager
    def trying(self) -> Iterator[bool]:
        """A context in which the call is in, or isn't, as its value says."""
        entered = self.enter()
        try:
            yield entered
        finally:
            if entered:
                self.leave()


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


def quickly(attempt: str) -> Callable[[Method], Method]:
    """Decorates a method with a shorter way: of most calls, what the name `attempt` says is enough.

    That method returns whether it was; if it raises, or wasn't, the decorated one is called.
    """

    def decorate(method: Method) -> Method:
        @functools.wraps(method)
        def attempting(self: Any, *args: Any, **kwargs: Any) -> Any:
            try:
                if getattr(self, attempt)(*args, **kwargs):
                    return None
            except Exception:  # noqa: S110 - the other way says what is wrong
                pass
            return method(self, *args, **kwargs)

        return attempting  # type: ignore[return-value]

    return decorate
