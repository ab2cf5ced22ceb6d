"""A learning rate that jumps is told from one that a schedule moves."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tb_pastnet.core.run_changes import RateJump, joined_jumps, rate_jumps

LAST = 1000
Schedule = Callable[[np.ndarray], np.ndarray]


def warm(schedule: Schedule, until: int) -> Schedule:
    return lambda step: np.minimum(step / until, 1) * schedule(step)


def cosine(step: np.ndarray) -> np.ndarray:
    return 0.05 * (1 + np.cos(np.pi * step / LAST))


SMOOTH: dict[str, Schedule] = {
    "constant": lambda step: np.full(len(step), 0.1),
    "cosine": cosine,
    "linear": lambda step: 0.1 * (1 - step / (LAST + 1)),
    "exponential": lambda step: 0.1 * 0.99**step,
    "inverse root": lambda step: 0.1 / np.sqrt(step),
    "warm-up": warm(lambda step: np.full(len(step), 0.1), 120),
    "short warm-up, cosine": warm(cosine, 7),
    "warm-up, cosine": warm(cosine, 64),
    "long warm-up, cosine": warm(cosine, 400),
    "polynomial": lambda step: 0.1 * (1 - step / (LAST + 1)) ** 2,
}
AT = [300, 600, 800]
JUMPS: dict[str, tuple[Schedule, list[int]]] = {
    "steps": (lambda step: 0.1 * 0.1 ** np.searchsorted(AT, step, side="right"), AT),
    "halves": (lambda step: 0.1 * 0.5 ** np.searchsorted(AT, step, side="right"), AT),
    "restarts": (lambda step: cosine(step % 500 * 2), [500, 1000]),
    "set by hand": (lambda step: np.where(step < 450, 1e-3, 1e-2), [450]),
    "warm-up, steps": (
        warm(lambda step: 0.1 * 0.1 ** np.searchsorted(AT, step, side="right"), 64),
        AT,
    ),
}


def recorded(every: int) -> np.ndarray:
    return np.array([1, *range(max(every, 2), LAST + 1, every)])


@pytest.mark.parametrize("every", [1, 10, 50])
@pytest.mark.parametrize("name", SMOOTH)
def test_a_schedule_is_silent(name: str, every: int) -> None:
    steps = recorded(every)
    assert rate_jumps(steps, SMOOTH[name](steps)) == []


@pytest.mark.parametrize("every", [1, 10, 50])
@pytest.mark.parametrize("name", JUMPS)
def test_a_jump_is_found_once(name: str, every: int) -> None:
    schedule, at = JUMPS[name]
    steps = recorded(every)
    jumps = rate_jumps(steps, schedule(steps))
    assert [each.step for each in jumps] == at
    before = steps[np.searchsorted(steps, at) - 1]
    assert [each.before for each in jumps] == pytest.approx(schedule(before))
    assert [each.after for each in jumps] == pytest.approx(schedule(np.array(at)))


@pytest.mark.parametrize("rates", [[], [0.1], [0.1, 0.01], [np.nan, 0.1, np.nan, 0.01], [0, 0, 0]])
def test_too_few_rates_have_no_jump(rates: list[float]) -> None:
    assert rate_jumps(np.arange(len(rates)), np.array(rates, float)) == []


def test_separate_rates_that_jump_at_one_step_are_one_jump_that_of_the_highest():
    low, high = RateJump(20, 1e-9, 5e-5, ("v",)), RateJump(20, 3e-8, 1e-3, ("q", "k"))
    later = RateJump(30, 1e-4, 1e-5, ("v",))
    both = high._replace(layers=("q", "k", "v"))
    assert joined_jumps([low, later, high], rates=3) == [both, later]
    assert joined_jumps([low, later, high], rates=2) == [high._replace(layers=()), later]
    assert joined_jumps([low, high._replace(layers=())], rates=3)[0].layers == ()
