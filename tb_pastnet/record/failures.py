"""Failures while observing: logged once per cause, and counted."""

from __future__ import annotations

import functools
import logging
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, TypeVar

from tb_pastnet.core import arguments

LOGGER = logging.getLogger("tb_pastnet")

Method = TypeVar("Method", bound=Callable[..., Any])

_BEFORE = (
    "Graph execution error",
    "Detected at node",
    "Exception encountered",
    "Node: ",
    " ",
    "\t",
)
"""Beginnings of the lines that come before the reason of a failed execution."""

_LONGEST = 500

_MOST = 5
"""Different reasons of one kind that are told apart: one may contain the step."""

NO_STEP = "Could not make a record: expected a step from 0 to 2 ** 53, got another"
NOT_COUNTED = (
    "Could not make a record: expected a step, as nothing here counts updates, got none. Write "
    "record(step)"
)
WENT_BACK = (
    "Step %s was recorded after step %s: records from there on are replaced, as after restoring a "
    "checkpoint. Count steps through all epochs, or call restart(step) where training goes back."
)


class Failures:
    """Counts failures by their text."""

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}

    def add(self, text: str, error: BaseException | None = None) -> None:
        """Counts a failure by text and error, and logs the first of its kind. It never raises."""
        line = self.count(text, error)
        if line is not None:
            self.log(line)

    def count(self, text: str, error: BaseException | None = None, times: int = 1) -> str | None:
        """Counts a failure by text and error; returns what is to be logged, None if it was."""
        if error is not None:
            kind, text = f"{text}: {type(error).__name__}: ", f"{text}: {reason_of(error)}"
            alike = [each for each in self.counts() if each.startswith(kind)]
            text = text if text in alike or len(alike) < _MOST else f"{kind}other reasons"
        count = self._counts.get(text, 0)
        self._counts[text] = count + times
        return None if count else text

    @staticmethod
    def log(text: str) -> None:
        """Logs a failure."""
        # The user's own handlers may raise.
        with suppress(Exception):
            LOGGER.warning("%s. Training continues; repeats are only counted.", text.rstrip("."))

    def counts(self) -> dict[str, int]:
        """A copy of what was counted, by text."""
        return dict(self._counts)


class DeferredFailures:
    """Counts failures at once, and logs them when asked.

    The writing thread must not log while it holds the sink's lock: a signal handler may have
    interrupted the training thread within `logging`, and wait for what is written.
    """

    def __init__(self, failures: Failures) -> None:
        self._failures = failures
        self._texts: deque[str] = deque()

    def add(self, text: str, error: BaseException | None = None) -> None:
        """Counts a failure by text and error. It never raises."""
        first = self._failures.count(text, error)
        if first is not None:
            self._texts.append(first)

    def counts(self) -> dict[str, int]:
        """See `Failures`."""
        return self._failures.counts()

    def log(self) -> None:
        """Logs what was counted since, each kind once."""
        # Two threads may do so at once: each takes what the other hasn't.
        with suppress(IndexError):
            while True:
                self._failures.log(self._texts.popleft())


def noted(text: str, otherwise: Any = None) -> Callable[[Method], Method]:
    """Decorates a method that only observes, so never raises: failures go to `self._failures`."""

    def decorate(method: Method) -> Method:
        @functools.wraps(method)
        def observing(self: Any, *args: Any, **kwargs: Any) -> Any:
            try:
                return method(self, *args, **kwargs)
            except Exception as error:
                self._failures.add(text, _meant(method, (self, *args), kwargs, error))
                return otherwise

        return observing  # type: ignore[return-value]

    return decorate


def _meant(
    method: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any], error: Exception
) -> Exception:
    """The error that says how to write a call, if that is what is wrong."""
    if isinstance(error, TypeError):
        try:
            arguments.explain(method, method.__name__, args, kwargs, error)
        except Exception as meant:
            return meant
    return error


def reason_of(error: BaseException) -> str:
    r"""Class and reason of a failed execution in one line.

    Example:
        >>> reason_of(ValueError("Graph execution error:\n\nDetected at node\nno such w"))
        'ValueError: no such w'
    """
    return f"{type(error).__name__}: {_reason(error)}"


def _reason(error: BaseException) -> str:
    with suppress(Exception):
        # Not str(error): it names a file, and so would differ with every segment.
        text = str(getattr(error, "strerror", None) or error)
        lines = [line for line in text.splitlines() if line and not line.startswith(_BEFORE)]
        return " ".join(lines[0].split())[:_LONGEST] if lines else "no reason given"
    return "a reason that can't be shown"
