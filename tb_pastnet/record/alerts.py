"""Alerts the user to held weights that moved, as soon as the audit finds them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tb_pastnet.core.counted import counted, named
from tb_pastnet.core.expected import Outcome
from tb_pastnet.core.violation import CAUSES, Violation
from tb_pastnet.errors import InvalidArgument
from tb_pastnet.record.failures import LOGGER, Failures

Wish = str | Callable[[Sequence[Any]], object]
"""What to do: "log", "stop", or a function that gets new violations, or contradictions."""

LOG, STOP = "log", "stop"


class Alerts:
    """Calls a function, or logs lines: one for each cause, with the variables that are new.

    Raises InvalidArgument if training should stop, and other processes train the same network.
    """

    def __init__(self, wish: Wish, failures: Failures, workers: int = 1) -> None:
        if wish == STOP and workers > 1:
            raise InvalidArgument(
                "Could not stop training on a violation: expected on_violation='log' or a "
                f"function, got 'stop' in one of {workers} processes. The others would wait for "
                "the process that writes the log: use 'log', and stop them together."
            )
        self._wish = wish
        self._failures = failures
        self._told: set[tuple[str, str]] = set()
        self.violated = False

    @property
    def stops(self) -> bool:
        """Whether training should end now."""
        return self.violated and self._wish == STOP

    def tell(self, violations: Sequence[Violation]) -> None:
        """Reports new violations; never raises."""
        if not violations:
            return
        self.violated = True
        if callable(self._wish):
            self._call(self._wish, violations)
            return
        news: dict[str, list[Violation]] = {}
        for violation in violations:
            if (violation.variable, violation.cause) not in self._told:
                news.setdefault(violation.cause, []).append(violation)
        for group in news.values():
            LOGGER.warning("%s", _line(group))
            self._told.update((each.variable, each.cause) for each in group)

    def contradict(self, outcomes: Sequence[Outcome]) -> None:
        """Reports what contradicts `expect=`; never raises."""
        self.violated = True
        if callable(self._wish):
            self._call(self._wish, outcomes)
            return
        for outcome in outcomes:
            LOGGER.warning("Contradicts expect=: %s.", outcome.text)

    def _call(self, wish: Callable[[Any], object], found: Sequence[Violation | Outcome]) -> None:
        try:
            wish(found)
        except Exception as error:
            self._failures.add("Could not call the function of on_violation=", error)


class Stop(str):
    """What "stop" is of a callback, which can stop its trainer: Recorders take it from no other."""

    __slots__ = ()


def checked(wish: Any, *, stops: bool) -> Wish:
    """A user's wish; raises InvalidArgument for an invalid one.

    `stops`: whether it is for a callback, which can stop its trainer.
    """
    if callable(wish) or wish == LOG or isinstance(wish, Stop):
        return wish  # type: ignore[no-any-return]
    if stops and wish == STOP:
        return Stop(STOP)
    if wish == STOP:
        raise InvalidArgument(
            "Could not stop training on a violation: expected on_violation='log' or a function, "
            "got 'stop' in a loop that no Recorder can end. Pass a function that sets a flag, and "
            "check it in your loop, or use a callback of Keras, Lightning or Hugging Face."
        )
    expected = "'log', 'stop' or a function" if stops else "'log' or a function"
    raise InvalidArgument(
        f"Could not use on_violation=: expected {expected}, got {wish!r:.60}. A function is called "
        "with a list of violations."
    )


def _line(violations: Sequence[Violation]) -> str:
    """A line about violations of one cause."""
    first = min(violations, key=lambda each: each.first_step)
    variables = named(dict.fromkeys(each.variable for each in violations), "variable")
    return (
        f"{counted(len(violations), 'channel')} of {variables} changed while frozen or pruned, "
        f"first seen at step {first.first_step:,}. Likely cause: "
        f"{CAUSES.get(first.cause, first.cause)}."
    )
