"""The facts of a preflight, and the random state that it puts back."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tb_pastnet.core import standing, violation
from tb_pastnet.core.checks import is_whole
from tb_pastnet.core.counted import counted
from tb_pastnet.errors import InvalidArgument

_LISTED = 6


@dataclass(frozen=True)
class Preflight:
    """What some steps would do to a network; `str()` of it is a report.

    Attributes:
        steps: how many were made, and taken back.
        weights: how many weights were compared by their bits.
        values: their elements.
        still: weights that should train, but didn't move or only by weight decay, and the cause: a
            key of `core.standing.CAUSES`, such as "no_gradient".
        leaks: frozen weights that moved, and the cause: a key of `core.violation.CAUSES`, such as
            "weight_decay".
        frozen: weights that are frozen, including those in `leaks`.
        left_out: weights that should train, but that no optimizer has.
        foreign: parameters of the optimizer that aren't the model's, in words.
        statistics: statistics that moved though all weights of their layer are frozen.

    Example:
        >>> print(Preflight(steps=2, weights=2, values=8, still={"head/bias": "no_gradient"}))
        2 steps, 2 weights, 8 values: 1 moved, 0 frozen and unchanged
        doesn't train: head/bias: their gradient is None: the loss doesn't depend on them (...
    """

    steps: int
    weights: int
    values: int
    still: Mapping[str, str] = field(default_factory=dict)
    leaks: Mapping[str, str] = field(default_factory=dict)
    frozen: Sequence[str] = ()
    left_out: Sequence[str] = ()
    foreign: Sequence[str] = ()
    statistics: Sequence[str] = ()

    @property
    def ok(self) -> bool:
        """Whether all that should train moved, and nothing that is frozen."""
        return not (self.still or self.leaks or self.left_out or self.foreign or self.statistics)

    def __str__(self) -> str:
        moved = self.weights - len(self.still) - len(self.frozen)
        held = len(self.frozen) - len(self.leaks)
        head = f"{counted(self.steps, 'step')}, {counted(self.weights, 'weight')}"
        return "\n".join(
            [
                f"{head}, {self.values:,} values: {moved:,} moved, {held:,} frozen and unchanged",
                *_by_cause("doesn't train", self.still, standing.in_words),
                *_by_cause("frozen, but moved", self.leaks, _of_violation),
                *_listed("no optimizer has", self.left_out),
                *_listed("in the optimizer, but not in the model", self.foreign),
                *_listed("statistics that moved in a frozen layer", self.statistics),
            ]
        )


def check_steps(step: object, steps: object) -> None:
    """Raises InvalidArgument if these can't be the arguments of a preflight."""
    if not callable(step):
        raise InvalidArgument(
            f"Could not make a preflight: expected step= a function that makes one update, got "
            f"{step!r:.60}. Pass the function itself, without calling it."
        )
    if not is_whole(steps) or int(steps) < 1:  # type: ignore[call-overload]
        raise InvalidArgument(
            f"Could not make a preflight: expected steps= a whole number from 1 on, got "
            f"{steps!r:.60}. Leave it out for 2."
        )


@contextmanager
def random_state_kept() -> Iterator[None]:
    """Puts the random state of Python and NumPy back at the end."""
    python, numpy = random.getstate(), np.random.get_state()  # noqa: NPY002  what users have
    try:
        yield
    finally:
        random.setstate(python)
        np.random.set_state(numpy)  # noqa: NPY002


def _of_violation(cause: str) -> str:
    return violation.CAUSES.get(cause, cause)


def _by_cause(head: str, causes: Mapping[str, str], in_words: Any) -> Iterator[str]:
    names: dict[str, list[str]] = {}
    for name, cause in causes.items():
        names.setdefault(cause, []).append(name)
    for cause, own in names.items():
        yield f"{head}: {_names(own)}: {in_words(cause)}"


def _listed(head: str, names: Sequence[str]) -> Iterator[str]:
    if names:
        yield f"{head}: {_names(names)}"


def _names(names: Sequence[str]) -> str:
    more = f" and {len(names) - _LISTED:,} more" if len(names) > _LISTED else ""
    return ", ".join(names[:_LISTED]) + more
