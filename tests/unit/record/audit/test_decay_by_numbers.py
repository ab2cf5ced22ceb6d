"""Weight decay is known by its numbers, and nothing else is taken for it."""

from __future__ import annotations

import numpy as np
import pytest

from tb_pastnet.record.audit.decay_by_numbers import DecayByNumbers
from tb_pastnet.record.audit.held_array import HeldArray
from tests.unit.record.test_array_source import Changing

RNG = np.random.default_rng(0)
START = RNG.normal(size=(4, 5)).astype(np.float32)


def cause_of(now, start=START):
    weight = Changing("w", start, 0)
    held = HeldArray(weight)
    held.follow(None, flagged=True)
    weight.array = np.asarray(now, np.float32)
    return DecayByNumbers().cause(held, np.arange(4))


@pytest.mark.parametrize("factor", [0.5, 0.999, 0.99999])
def test_all_elements_that_shrink_by_one_factor_decay(factor):
    assert cause_of(START * factor) == "weight_decay"


@pytest.mark.parametrize("updates", [1, 7])
def test_so_they_do_over_several_updates(updates):
    now = START
    for _ in range(updates):
        now = now - now * np.float32(1e-3)
    assert cause_of(now) == "weight_decay"


OTHERS = {
    "they grow": START * 1.01,
    "they turn around": -START * 0.9,
    "they move by chance": START + 0.01 * RNG.normal(size=START.shape),
    "they shrink by several factors": START * np.linspace(0.5, 0.99, 5),
    "they are zero now": START * 0,
    "some aren't finite": np.where(np.arange(5) < 1, np.nan, START * 0.9),
}


@pytest.mark.parametrize("word", OTHERS)
def test_what_else_moves_is_unknown(word):
    assert cause_of(OTHERS[word]) == "unknown"


@pytest.mark.parametrize("factor", [0.9, 2])
def test_few_elements_say_nothing(factor):
    start = np.zeros((4, 5), np.float32)
    start[0, :3] = [1, 2, 3]
    assert cause_of(start * factor, start) == "unknown"


def test_what_was_zero_says_nothing():
    assert cause_of(START, np.zeros_like(START)) == "unknown"
