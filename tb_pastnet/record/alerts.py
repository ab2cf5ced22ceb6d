"""Tells a user of held weights that moved, as soon as it is found."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tb_pastnet.core.violation import CAUSES, Violation
from tb_pastnet.errors import InvalidArgument
from tb_pastnet.record.failures import LOGGER, Failures

Wish = str | Callable[[Sequence[Violation]], object]
"""What is done: "log", "stop", or a function that gets the violations that are new."""

LOG, STOP = "log", "stop"


class Alerts:
    """Calls a function, or logs a line for each variable and cause, once.

    Attributes:
        violated: whether anything was told.
    """

    def __init__(self, wish: Wish, failures: Failures) -> None:
        check(wish)
        self._wish = wish
        self._failures = failures
        self._told: set[tuple[str, str]] = set()
        self.violated = False

    @property
    def stops(self) -> bool:
        """Whether training shall end now."""
        return self.violated and self._wish == STOP

    def tell(self, violations: Sequence[Violation]) -> None:
        """Tells of violations that are new; never raises."""
        if not violations:
            return
        self.violated = True
        if callable(self._wish):
            try:
                self._wish(violations)
            except Exception as error:
                self._failures.add("Could not call the function of on_violation=", error)
            return
        groups: dict[tuple[str, str], list[Violation]] = {}
        for violation in violations:
            groups.setdefault((violation.variable, violation.cause), []).append(violation)
        for key, group in groups.items():
            if key not in self._told:
                LOGGER.warning("%s", _line(group))
        self._told.update(groups)


def check(wish: object) -> None:
    """Raises InvalidArgument for what can't be done."""
    if not callable(wish) and wish not in (LOG, STOP):
        raise InvalidArgument(
            f"Could not choose what follows a violation: expected on_violation='log', 'stop' or "
            f"a function, got {wish!r:.60}. A function gets a list of violations."
        )


def _line(violations: Sequence[Violation]) -> str:
    """Of one variable and cause."""
    first = violations[0]
    count = len(violations)
    channels = f"{count:,} channel{'' if count == 1 else 's'}"
    return (
        f"{channels} of {first.variable} changed while frozen or pruned, first seen at step "
        f"{first.first_step:,}. Likely cause: {CAUSES.get(first.cause, first.cause)}."
    )
