"""Lets calls inside tb_pastnet fail: each function of ours, and each function that ours call.

It raises where such a call begins, or where it ends, after all that the call has done. Calls that
come from outside, as those of Keras, aren't ours to guard: only what happens below them fails.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, NamedTuple

OURS = str(Path(__file__).parents[2] / "tb_pastnet")
GUARDS = (
    "failures.py:observing",
    "failures.py:add",
    "callback.py:_failures",
    "recording.py:notes",
)
"""Where failures end: what decorates a method, and what counts them."""
SILENT = {
    "freeze_audit.py": {"cause", "_masks_changed"},
    "model_audit.py": {"updates", "rate", "decay", "slots"},
    "assignments.py": {"__call__"},
    "recording.py": {"_passed"},
}
"""What leaves out a cause, or a fact, that it can't read, or is tried in a longer way."""
ENFORCED = "masks/optimizers.py"
"""What holds weights in each update is no observer: it raises, as all commands do."""
AROUND = "carried.py:method"
"""Around the user's own call of `fit`: what Keras calls in there comes from outside."""


class Point(NamedTuple):
    """A call.

    Attributes:
        function: file and name; of one that isn't ours behind that of its caller.
        event: its beginning ("call"), or its end ("return").
        nth: which one from when it was aimed at.
    """

    function: str
    event: str
    nth: int = 1


class Injector:
    """Counts calls, and raises at one of them.

    Attributes:
        counts: calls of each function since `aim`.
        raised: at the point that is aimed at.
        silent: it was below what looks for a cause, and leaves out what it can't read.
        armed: nothing is counted while it is False, as while the user commands something.
    """

    def __init__(self) -> None:
        self.armed = True
        self.aim(None)

    def aim(self, point: Point | None, error: type[BaseException] = RuntimeError) -> None:
        """Aims at a point, from this thread's next call on; None to count alone."""
        self.counts: dict[str, int] = {}
        self.raised = self.silent = False
        self._point, self._error = point, error

    @contextlib.contextmanager
    def everywhere(self) -> Iterator[None]:
        """In force meanwhile in this thread, and in threads that start in it."""
        threading.settrace(self._trace)
        try:
            with self.here():
                yield
        finally:
            threading.settrace(None)  # type: ignore[arg-type]

    @contextlib.contextmanager
    def here(self) -> Iterator[None]:
        """In force meanwhile in this thread."""
        before = sys.gettrace()
        self.again()
        try:
            yield
        finally:
            sys.settrace(before)

    def again(self) -> None:
        """In force again: Python forgets what traces as soon as it raises."""
        sys.settrace(self._trace)

    def _trace(self, frame: FrameType, event: str, arg: Any) -> Any:
        if self.raised or not self.armed or not _near(frame):
            return None
        name = _name(frame)
        if name is None:
            return None
        self.counts[name] = self.counts.get(name, 0) + 1
        point = self._point
        if point is None or (name, self.counts[name]) != (point.function, point.nth):
            return None
        self.silent = any(names & {*_stack(frame, file)} for file, names in SILENT.items())
        if point.event == "call":
            self._raise()
        frame.f_trace_lines = False
        return self._end

    def _end(self, frame: FrameType, event: str, arg: Any) -> Any:
        if event == "return" and not self.raised:
            self._raise()
        return self._end

    def _raise(self) -> None:
        self.raised = True
        raise self._error("injected")


def _near(frame: FrameType) -> bool:
    """Whether it is ours or called by one of ours: nearly all of a training's calls are not."""
    caller = frame.f_back
    return frame.f_code.co_filename.startswith(OURS) or (
        caller is not None and caller.f_code.co_filename.startswith(OURS)
    )


def _name(frame: FrameType) -> str | None:
    """Its name where it is ours, or called by one of ours, and one of ours is behind it."""
    if frame.f_code.co_flags & inspect.CO_GENERATOR:
        return None  # one that is let go is entered by nobody, and ends there
    caller = frame.f_back
    own = _ours(frame.f_code)
    by = None if caller is None else _ours(caller.f_code)
    if own is not None:
        behind = _ours_behind(caller)
        if behind is None or own in GUARDS or behind in GUARDS:
            return None
    elif by is None or by == GUARDS[0]:
        return None
    if any(_stack(frame, ENFORCED)):
        return None
    return own or f"{by} > {_text(frame.f_code)}"


def _ours_behind(frame: FrameType | None) -> str | None:
    while frame is not None:
        name = _ours(frame.f_code)
        if name is not None and name != AROUND:
            return name
        frame = frame.f_back
    return None


def _stack(frame: FrameType | None, file: str) -> Iterator[str]:
    while frame is not None:
        if frame.f_code.co_filename.endswith(file):
            yield frame.f_code.co_name
        frame = frame.f_back


def _ours(code: CodeType) -> str | None:
    return _text(code) if code.co_filename.startswith(OURS) else None


def _text(code: CodeType) -> str:
    return f"{_file(code.co_filename)}:{code.co_name}"


@functools.cache
def _file(path: str) -> str:
    return Path(path).name
