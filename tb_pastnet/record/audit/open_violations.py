"""The violations of each channel: which began, which go on, which are over."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tb_pastnet.core.violation import Violation
from tb_pastnet.format.limits import MAX_VIOLATIONS

Ints = npt.NDArray[np.int64]


class Channels(NamedTuple):
    """A comparison of held elements with what they should be, each of shape (channels,).

    Attributes:
        differ: int64, held elements that aren't what they should be.
        held: int64, held elements.
        largest: float64, largest |w − expected| of those; infinite where it isn't finite.
        fingerprint: int64 of the held elements.
        expected: int64, a fingerprint of which are held, and of what they should be.
    """

    differ: Ints
    held: Ints
    largest: npt.NDArray[np.float64]
    fingerprint: Ints
    expected: Ints


@dataclass
class _Open:
    """Of one variable: fingerprints and violation of each channel."""

    fingerprint: Ints
    expected: Ints
    violations: dict[int, Violation]


class OpenViolations:
    """Open and past violations of all variables."""

    def __init__(self) -> None:
        self._open: dict[str, _Open] = {}
        self._past: deque[Violation] = deque(maxlen=MAX_VIOLATIONS)

    def all(self) -> list[Violation]:
        """Past and open ones, by their first step."""
        going_on = [each for name in self._open.values() for each in name.violations.values()]
        return sorted([*self._past, *going_on], key=lambda violation: violation.first_step)

    def new(self, name: str, compared: Channels) -> Ints:
        """Channels whose violation isn't open, or is of weights that were held anew since."""
        variable = self._open.get(name)
        if variable is None:
            return np.flatnonzero(compared.differ)
        is_open = np.zeros(len(compared.differ), bool)
        is_open[list(variable.violations)] = True
        same = is_open & (variable.expected == compared.expected)
        return np.flatnonzero((compared.differ > 0) & ~same)

    def enter(self, name: str, compared: Channels, step: int, cause: str) -> list[Violation]:
        """Enters a check: gives violations that are new, or moved since the last."""
        new = set(self.new(name, compared).tolist())
        first = _Open(compared.fingerprint, compared.expected, {})
        variable = self._open.setdefault(name, first)
        for channel in [*variable.violations]:
            if channel in new or not compared.differ[channel]:
                self._past.append(variable.violations.pop(channel))
        moved = variable.fingerprint != compared.fingerprint
        entered = []
        for channel in np.flatnonzero(compared.differ).tolist():
            old = variable.violations.get(channel)
            if old is not None and not moved[channel]:
                continue
            variable.violations[channel] = Violation(
                variable=name,
                channel=channel,
                first_step=step if old is None else old.first_step,
                last_step=step,
                elements=int(compared.differ[channel]),
                held=int(compared.held[channel]),
                largest=float(compared.largest[channel]),
                cause=cause if old is None else old.cause,
            )
            entered.append(variable.violations[channel])
        variable.fingerprint, variable.expected = compared.fingerprint, compared.expected
        return entered

    def close(self, name: str) -> None:
        """Ends those of a variable: it is again as it should be, or isn't held any more."""
        variable = self._open.pop(name, None)
        if variable is not None:
            self._past.extend(variable.violations.values())

    def close_all(self) -> None:
        """Ends all."""
        for name in list(self._open):
            self.close(name)
