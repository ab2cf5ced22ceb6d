"""The violations of each channel: which began, which go on, which are over."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

import numpy as np

from tb_pastnet.core.violation import Violation
from tb_pastnet.format.limits import MAX_VIOLATIONS
from tb_pastnet.keras.audit.watch import Channels, Ints


@dataclass
class _Page:
    """Open violations of one variable: number, fingerprints and entry of each channel."""

    now: Ints
    then: Ints
    entries: dict[int, Violation]


class Book:
    """Open and past violations of all variables."""

    def __init__(self) -> None:
        self._open: dict[str, _Page] = {}
        self._past: deque[Violation] = deque(maxlen=MAX_VIOLATIONS)

    def all(self) -> list[Violation]:
        """Past and open ones, by their first step."""
        entries = [one for page in self._open.values() for one in page.entries.values()]
        return sorted([*self._past, *entries], key=lambda one: one.first_step)

    def new(self, name: str, found: Channels) -> Ints:
        """Channels whose violation isn't open, or is one of what was held before.

        Args:
            name: the variable's id.
            found: as of this check.
        """
        page = self._open.get(name)
        if page is None:
            return np.flatnonzero(found.differ)
        is_open = np.zeros(len(found.differ), bool)
        is_open[list(page.entries)] = True
        return np.flatnonzero((found.differ > 0) & ~(is_open & (page.then == found.then)))

    def enter(self, name: str, found: Channels, step: int, cause: str) -> list[Violation]:
        """Enters what a check found.

        Args:
            name: the variable's id.
            found: as of this check.
            step: of this check.
            cause: of those that are new.

        Returns:
            Entries that are new, or moved since the last check.
        """
        new = set(self.new(name, found).tolist())
        page = self._open.setdefault(name, _Page(found.now, found.then, {}))
        for channel in [*page.entries]:
            if channel in new or not found.differ[channel]:
                self._past.append(page.entries.pop(channel))
        moved = page.now != found.now
        told = []
        for channel in np.flatnonzero(found.differ).tolist():
            old = page.entries.get(channel)
            if old is not None and not moved[channel]:
                continue
            page.entries[channel] = Violation(
                variable=name,
                channel=channel,
                first_step=step if old is None else old.first_step,
                last_step=step,
                elements=int(found.differ[channel]),
                held=int(found.held[channel]),
                largest=float(found.largest[channel]),
                cause=cause if old is None else old.cause,
            )
            told.append(page.entries[channel])
        page.now, page.then = found.now, found.then
        return told

    def close(self, name: str) -> None:
        """Ends those of a variable: it is again as it should be, or isn't held any more."""
        page = self._open.pop(name, None)
        if page is not None:
            self._past.extend(page.entries.values())

    def close_all(self) -> None:
        """Ends all."""
        for name in list(self._open):
            self.close(name)
