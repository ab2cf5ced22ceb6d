"""Times things against each other on a machine that is noisy and shared."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

PAIRS = 11
Action = Callable[[], object]
Seconds = NDArray[np.float64]


def seconds(action: Action, calls: int = 1) -> float:
    """What one call takes."""
    start = time.perf_counter()
    for _ in range(calls):
        action()
    return (time.perf_counter() - start) / calls


def interleaved(*actions: Action, pairs: int = PAIRS, calls: int = 2) -> Seconds:
    """Times actions by turns, each round in the opposite order of the one before.

    Args:
        actions: what is timed; the first two calls of each aren't.
        pairs: rounds.
        calls: of each in a round, whose mean counts.

    Returns:
        float64 (len(actions), pairs).
    """
    for action in actions:
        action()
        action()
    times = np.empty((len(actions), pairs))
    for pair in range(pairs):
        for at in range(len(actions))[:: -1 if pair % 2 else 1]:
            times[at, pair] = seconds(actions[at], calls)
    return times


def after(
    train: Action,
    actions: Sequence[Action],
    pairs: int = PAIRS,
    calls: int = 1,
    *,
    shared: bool = False,
) -> tuple[Seconds, Seconds]:
    """Times what is done after a training step, beside that step.

    By turns each is done for some steps in a row, as in a training that does it at each: where
    others come between, what it needs has left the caches. The first step of a row isn't counted.

    Args:
        train: the step.
        actions: what is timed.
        pairs: rounds, each in the opposite order of the one before.
        calls: steps in a row that are counted, whose mean is taken.
        shared: whether all actions of a round come after one step, and not in rows of their own:
            where steps take seconds, and weights are too many to stay in a cache.

    Returns:
        Two float64 (len(actions), pairs): of the steps, and of what was done after them.
    """
    for action in (train, *actions):
        train()
        action()
    times = np.empty((2, len(actions), pairs))
    for pair in range(pairs):
        order = range(len(actions))[:: -1 if pair % 2 else 1]
        if shared:
            times[0, :, pair] = seconds(train)
            for at in order:
                times[1, at, pair] = seconds(actions[at])
        else:
            for at in order:
                times[:, at, pair] = in_a_row(train, actions[at], calls)
    return times[0], times[1]


def in_a_row(train: Action, action: Action, calls: int) -> Seconds:
    """What a step takes, and what is done after it: float64 (2,), the means.

    Args:
        train: the step.
        action: what is done after each.
        calls: how many steps are counted, after one that isn't.
    """
    row = [(seconds(train), seconds(action)) for _ in range(1 + calls)]
    counted: Seconds = np.array(row[1:])
    return np.asarray(counted.mean(axis=0))


def spread(values: Seconds, form: str = ".3f") -> str:
    """Median and the quartiles around it."""
    low, middle, high = np.quantile(values, (0.25, 0.5, 0.75))
    return f"{middle:{form}} ({low:{form}} to {high:{form}})"


def exponent(sizes: list[int], times: list[float]) -> float:
    """The slope of the line through the logarithms: 1 is linear."""
    return float(np.polyfit(np.log(sizes), np.log(times), 1)[0])
