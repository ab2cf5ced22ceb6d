"""Each run is read by itself: what one raises becomes its note, and the others are as without it.

A log is untrusted, and readers have faults. What is asked about several runs is tried for all of
them; only if that raises, each is tried by itself, and those that raise again are replaced by empty
runs with a note. So no function below has to care, and an answer without faults costs nothing more.
"""

from __future__ import annotations

import logging
import operator
import traceback
from collections.abc import Callable, Sequence
from functools import partial, wraps
from typing import Concatenate, NamedTuple, ParamSpec, Protocol, TypeVar

from tensorboard import errors

from tb_pastnet.errors import PastNetError, UnreadableRun
from tb_pastnet.reader.notes import NO_MEMORY, UNREAD
from tb_pastnet.reader.series_source import NotListed, RunDeleted

PASSED = (RunDeleted, NotListed, errors.PublicError)
"""Errors about no data of a run: TensorBoard's, and runs that are gone. They go to the caller."""

logger = logging.getLogger(__name__)

_logged: set[tuple[str, str]] = set()
_MOST_LOGGED = 1 << 10


class Readable(Protocol):
    """A run, or what reads it."""

    @property
    def name(self) -> str: ...  # noqa: D102

    def emptied(self: Item, problem: str) -> Item:
        """The same without data, and with a note why."""


class _Named(Protocol):
    @property
    def name(self) -> str: ...


Item = TypeVar("Item", bound=Readable)
Owner = TypeVar("Owner", bound=_Named)
Parameters = ParamSpec("Parameters")
Value = TypeVar("Value")


class Problem(NamedTuple):
    """Why something could not be read."""

    text: str  # for a note: no path, and nothing of the log
    error: BaseException | None = None

    def log(self, name: str) -> str:
        """Logs it, once for a run and a place in the code, and returns its text."""
        if self.error is not None:
            frames = traceback.extract_tb(self.error.__traceback__)
            place = f"{frames[-1].filename}, line {frames[-1].lineno}" if frames else "no line"
            if (name, place) not in _logged and len(_logged) < _MOST_LOGGED:
                _logged.add((name, place))
                kind, text = type(self.error).__name__, str(self.error)
                logger.warning("Could not read %.200r: %s: %.200s (%s)", name, kind, text, place)
                logger.debug("The traceback", exc_info=self.error)
        return self.text


def _problem(error: BaseException) -> Problem:
    while isinstance(error, UnreadableRun) and error.__cause__ is not None:
        error = error.__cause__
    if isinstance(error, MemoryError):
        return Problem(NO_MEMORY, error)
    return Problem(f"{UNREAD}: {type(error).__name__}", error)


def attempt(make: Callable[[], Value], passed: tuple[type[Exception], ...] = ()) -> Value | Problem:
    """A value, or why there is none. `PASSED` and `passed` go to the caller."""
    try:
        return make()
    except (*PASSED, *passed):
        raise
    except Exception as error:  # whatever the data of a run raise
        return _problem(error)


def each_alone(
    items: Sequence[Item],
    make: Callable[[Sequence[Item]], Value],
    passed: tuple[type[Exception], ...] = (),
) -> Value:
    """Makes a value of some runs, of which those that can't be read are empty.

    An error that none of them raises by itself goes to the caller.
    """
    value = attempt(partial(make, items), passed)
    if not isinstance(value, Problem):
        return value
    rest = []
    for item in items:
        alone = value if len(items) == 1 else attempt(partial(make, [item]), passed)
        rest.append(item.emptied(alone.log(item.name)) if isinstance(alone, Problem) else item)
    if value.error is not None and all(map(operator.is_, rest, items)):
        raise value.error
    return make(rest)


def alone(item: Item, make: Callable[[Item], Value]) -> Value:
    """Makes a value of one run; if it can't be read, of the empty one."""
    return each_alone([item], lambda items: make(items[0]))


def reading(
    method: Callable[Concatenate[Owner, Parameters], Value],
) -> Callable[Concatenate[Owner, Parameters], Value]:
    """A method of what reads a run: it raises `UnreadableRun`, or another of our own errors."""

    @wraps(method)
    def read(self: Owner, /, *args: Parameters.args, **more: Parameters.kwargs) -> Value:
        value = attempt(lambda: method(self, *args, **more), (PastNetError, ImportError))
        if isinstance(value, Problem):
            raise UnreadableRun(
                f"Could not read the run {self.name!r}: expected readable data, got "
                f"{type(value.error).__name__}: {value.error!s:.200}. Other runs aren't affected; "
                "pastnet check lists what is damaged."
            ) from value.error
        return value

    return read
