"""Targets that a training gets wrong are found by the fifth record; right ones aren't mentioned."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tb_pastnet.core.following import FollowRecords, follow_causes

Update = Callable[[np.ndarray, np.ndarray, int], np.ndarray]

CHANNELS, ELEMENTS = 7, 9


def shares(target: np.ndarray, source: np.ndarray, before: np.ndarray) -> tuple[np.ndarray, ...]:
    """By the definition, channel by channel, in float64."""
    rows = []
    for t, s, b in zip(target.astype("f8"), source.astype("f8"), before.astype("f8"), strict=True):
        gap = np.dot(s - b, s - b)
        covered = np.dot(t - b, s - b) / gap if gap else np.nan
        rows.append((np.linalg.norm(t - s), covered, np.linalg.norm(t - b)))
    return tuple(np.array(column) for column in zip(*rows, strict=True))


def followed(
    update: Update, every: int = 1, records: int = 5, *, equal: bool = True, name: str = "target/0",
    statistic: bool = False, dtype: str = "f4",
) -> FollowRecords:  # fmt: skip
    """A source that a training moves, and a target that follows by a rule."""
    rng = np.random.default_rng(1)
    source = rng.normal(size=(CHANNELS, ELEMENTS)).astype("f4")
    target = source.astype(dtype) if equal else rng.normal(size=source.shape).astype(dtype)
    before, rows, steps, unequal = target, [], [], int((target != source).any(axis=1).sum())
    step = 0
    while len(rows) < records:
        step += 1
        source = source + rng.normal(size=source.shape).astype("f4") * np.float32(0.01)
        target = update(target, source, step).astype(dtype)
        if step == 1 or step % every == 0:
            rows.append(shares(target, source, before))
            steps.append(step)
            before = target
    past = [0, *steps[:-1]]
    measures = [np.stack(column) for column in zip(*rows, strict=True)]
    return FollowRecords(
        name, statistic, dtype != "f4", np.array(steps), np.array(past), *measures, unequal
    )  # fmt: skip


def soft(tau: float) -> Update:
    return lambda t, s, _: t + np.float32(tau) * (s - t)


def hard(period: int) -> Update:
    return lambda t, s, step: s.copy() if step % period == 0 else t


def never(t: np.ndarray, s: np.ndarray, step: int) -> np.ndarray:
    return t


def itself(t: np.ndarray, s: np.ndarray, step: int) -> np.ndarray:
    return np.float32(0.99) * t + np.float32(0.01) * t


def away(t: np.ndarray, s: np.ndarray, step: int) -> np.ndarray:
    return t + (t - s) * np.float32(0.05)


def turned(t: np.ndarray, s: np.ndarray, step: int) -> np.ndarray:
    """Soft, with the sign the wrong way round."""
    return t - np.float32(0.01) * (s - t)


WRONG = {
    "never moved": (never, 1, "never_moved"),
    "never moved, seldom recorded": (never, 10, "never_moved"),
    "mixed with itself": (itself, 1, "never_moved"),
    "mixed with itself, seldom recorded": (itself, 10, "never_moved"),
    "away": (away, 1, "moves_away"),
    "away, seldom recorded": (away, 3, "moves_away"),
    "sign turned": (turned, 1, "moves_away"),
    "sign turned, seldom recorded": (turned, 10, "moves_away"),
    "tau swapped": (soft(0.99), 1, "covers_all"),
    "tau swapped, seldom recorded": (soft(0.995), 10, "covers_all"),
    "a copy in each step": (hard(1), 1, "covers_all"),
    "a copy in each step, seldom recorded": (hard(1), 10, "covers_all"),
}
RIGHT = {
    "soft": (soft(0.01), 1, 5),
    "soft, seldom recorded": (soft(0.005), 10, 9),
    "very soft": (soft(1e-4), 1, 40),
    "soft, each hundredth step": (soft(0.01), 100, 5),
    "hard": (hard(20), 2, 12),
    "hard, at each record": (hard(10), 10, 9),
    "hard, between records": (hard(7), 10, 9),
    "hard, often between records": (hard(3), 10, 9),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_target_is_told_by_the_fifth_record(case: str) -> None:
    update, every, cause = WRONG[case]
    assert follow_causes([followed(update, every)]) == [cause]


@pytest.mark.parametrize("case", RIGHT)
def test_a_right_target_is_not_mentioned(case: str) -> None:
    update, every, records = RIGHT[case]
    assert follow_causes([followed(update, every, records)]) == [None]


def test_weights_that_are_left_out_are_told_from_those_that_follow() -> None:
    moving, still = followed(soft(0.01)), followed(never)
    assert follow_causes([moving, still, moving]) == [None, "some_never_moved", None]
    left = followed(never, statistic=True)
    assert follow_causes([moving, left, left]) == [None, *["statistics_never_moved"] * 2]
    assert follow_causes([moving, left, still]) == [None, *["some_never_moved"] * 2]
    assert follow_causes([still, left]) == ["never_moved", "never_moved"]


def test_statistics_that_their_own_inputs_bring_near_their_source_are_not_mentioned() -> None:
    rng = np.random.default_rng(2)

    def of_like_inputs(t: np.ndarray, s: np.ndarray, step: int) -> np.ndarray:
        return s + rng.normal(size=s.shape).astype("f4") * np.float32(1e-3)

    assert follow_causes([followed(of_like_inputs, statistic=True)]) == [None]
    assert follow_causes([followed(hard(1), statistic=True)]) == ["covers_all"]


@pytest.mark.parametrize("records", [1, 5])
def test_other_values_at_the_start_are_told(records: int) -> None:
    pair = followed(soft(0.01), 1, records, equal=False)
    assert follow_causes([pair]) == ["unequal_at_start"]
    assert follow_causes([pair._replace(unequal=None)]) == [None]  # a training that was resumed


def test_copies_of_another_dtype_are_not_taken_for_a_swapped_tau() -> None:
    assert follow_causes([followed(hard(10), 10, 9, dtype="f2")]) == [None]


def test_without_a_moving_source_nothing_is_said() -> None:
    pair = followed(never)
    still = np.zeros_like(pair.distance)
    assert follow_causes([pair._replace(distance=still, covered=still, moved=still)]) == [None]
    gone = np.full_like(still, np.nan)
    assert follow_causes([pair._replace(distance=gone, covered=gone, moved=gone)]) == [None]
