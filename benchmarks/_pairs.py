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
    """Times what is done after a training step, by turns, beside the step before it.

    Args:
        train: the step.
        actions: what is timed; its first time, which may compile, isn't.
        pairs: rounds, each in the opposite order of the one before.
        calls: of each in a round, whose mean counts.
        shared: whether all actions of a round come after one step, and not each after its own:
            where steps take seconds, and weights are too many to stay in a cache.

    Returns:
        Two float64 (len(actions), pairs): of the steps, and of what was done after them.
    """
    for action in (train, *actions):
        train()
        action()
    times = np.zeros((2, len(actions), pairs))
    for pair in range(pairs):
        for _ in range(calls):
            step = seconds(train) if shared else 0.0
            for at in range(len(actions))[:: -1 if pair % 2 else 1]:
                times[0, at, pair] += step if shared else seconds(train)
                times[1, at, pair] += seconds(actions[at])
    return times[0] / calls, times[1] / calls


def spread(values: Seconds, form: str = ".3f") -> str:
    """Median and the quartiles around it."""
    low, middle, high = np.quantile(values, (0.25, 0.5, 0.75))
    return f"{middle:{form}} ({low:{form}} to {high:{form}})"


def exponent(sizes: list[int], times: list[float]) -> float:
    """The slope of the line through the logarithms: 1 is linear."""
    return float(np.polyfit(np.log(sizes), np.log(times), 1)[0])
