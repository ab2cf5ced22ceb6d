"""Which facts makes which cause; real trainings are in tests/contract/test_planted_leaks.py."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from tb_pastnet.core.violation import CAUSES
from tb_pastnet.record.audit.causes import (
    DECLARED,
    ENFORCED,
    FLAG,
    MOST_UPDATES,
    TABLE,
    Facts,
    cause_of,
)

RNG = np.random.default_rng(5)
WAS = RNG.normal(size=64).astype("f")
RATES = [np.full(10, 0.01)]
SLOT = RNG.normal(size=64).astype("f")


def decayed(was, rate=0.01, decay=0.1, updates=10):
    kind = was.dtype.type
    for _ in range(updates):
        was = was - was * kind(decay) * kind(rate)
    return was


def test_every_cause_has_a_row_and_a_word():
    assert {row.name for row in TABLE} == set(CAUSES) - {"unknown"}


@pytest.mark.parametrize("dtype", ["f2", ml_dtypes.bfloat16, "f4", "f8"])
@pytest.mark.parametrize("updates", [1, 10])
def test_weight_decay(dtype, updates):
    was = WAS.astype(dtype)
    now = decayed(was, rate=0.2, updates=updates)
    assert cause_of(Facts(was, now, decay=0.1, rates=[np.full(updates, 0.2)])) == "weight_decay"


@pytest.mark.parametrize("off", [{"rate": 0.012}, {"decay": 0.09}, {"updates": 8}])
def test_weight_decay_of_another_size_is_none(off):
    assert cause_of(Facts(WAS, decayed(WAS, **off), decay=0.1, rates=RATES)) == "unknown"


@pytest.mark.parametrize("known", [{"gradient_left": True}, {"gradient_zero": True}])
def test_weight_decay_of_the_updates_that_had_a_gradient(known):
    for updates in (1, 3, 9):
        facts = Facts(WAS, decayed(WAS, updates=updates), decay=0.1, rates=RATES, **known)
        assert cause_of(facts) == "weight_decay"
    moved = Facts(WAS, WAS - np.float32(0.001) * SLOT, decay=0.1, rates=RATES, gradient_left=True)
    assert cause_of(moved) == "stale_gradient"


def test_weight_decay_of_one_of_several_intervals():
    rates = [np.full(25, 0.01), np.full(10, 0.01)]
    assert cause_of(Facts(WAS, decayed(WAS), decay=0.1, rates=rates)) == "weight_decay"


def test_weight_decay_goes_before_weights_that_were_set():
    facts = Facts(WAS, decayed(WAS), decay=0.1, rates=RATES, assigned=True)
    assert cause_of(facts) == "weight_decay"


def test_too_long_an_interval_is_not_computed():
    facts = Facts(WAS, WAS * 0, decay=0.1, rates=[np.full(MOST_UPDATES + 1, 0.1)])
    assert cause_of(facts) == "unknown"


def test_the_average_but_for_its_rounding():
    average = WAS + np.float32(0.5)
    now = np.nextafter(average, np.float32(9))
    assert cause_of(Facts(WAS, now, average=average)) == "ema"
    assert cause_of(Facts(WAS, now, average=average, held_by=FLAG)) == "ema"
    assert cause_of(Facts(WAS, average * np.float32(1.00001), average=average)) == "unknown"


def momentum(factor=0.9, updates=10, **settings):
    slots = {"_momentums": (SLOT, (SLOT * factor**updates).astype("f"))}
    settings = {"slots": slots, "betas": [0.9], "updates": updates, **settings}
    return Facts(WAS, WAS + SLOT, **settings)


def test_slots_that_fade():
    assert cause_of(momentum()) == "momentum"


@pytest.mark.parametrize(
    "settings",
    [
        {"updates": 0},
        {"slots": {}},
        {"slots": {"_accumulators": (SLOT, SLOT)}},
        {"slots": {"_momentums": (SLOT, SLOT * -0.5)}},
        {"slots": {"_momentums": (SLOT, SLOT * 0.35 + np.float32(1e-5))}},
        {"slots": {"_momentums": (SLOT * 0, SLOT * 0)}, "decay": 0.1},
        {"slots": {"_momentums": (SLOT * 0, SLOT * 0)}, "average": WAS},
        {"slots": {"_momentums": (SLOT, SLOT * np.nan)}},
        {"slots": {"_momentums": (SLOT[:0], SLOT[:0])}},
    ],
    ids=[
        "at-once",
        "none",
        "constant",
        "sign",
        "gradients",
        "zero-decay",
        "zero-average",
        "nan",
        "empty",
    ],
)
def test_slots_that_do_not_fade(settings):
    assert cause_of(momentum(**settings)) == "unknown"


@pytest.mark.parametrize(
    ("begin", "end", "cause"),
    [
        (SLOT, SLOT * np.float32(1.1), "gradient"),
        (SLOT, np.where(np.arange(SLOT.size) == 3, SLOT * 2, SLOT * 0.5), "gradient"),
        (SLOT * 0, SLOT, "gradient"),
        (SLOT * 0, SLOT * 0, "written"),
        (SLOT * np.nan, SLOT * 0, "written"),
        # Of slots that weren't there, no growth is known.
        (SLOT * np.nan, SLOT, "unknown"),
    ],
)
def test_slots_tell_a_gradient_from_what_wrote_beside_the_optimizer(begin, end, cause):
    assert cause_of(momentum(slots={"_momentums": (begin, end)})) == cause


def test_a_single_slot_has_to_fade_by_a_known_factor():
    one = {"_momentums": (SLOT[:1], SLOT[:1] * np.float32(0.9**10))}
    assert cause_of(momentum(slots=one)) == "momentum"
    assert cause_of(momentum(slots=one, betas=[0.99])) == "unknown"


@pytest.mark.parametrize(("share", "cause"), [(0.5, "momentum"), (5, "weight_decay")])
def test_the_larger_of_two(share, cause):
    by_decay = decayed(WAS) - WAS
    by_momentum = -by_decay * np.float32(1 / share)
    facts = momentum(decay=0.1, rates=RATES)
    moved = WAS + by_decay + by_momentum
    facts = Facts(**{**vars(facts), "current": moved})
    assert cause_of(facts) == cause


@pytest.mark.parametrize(
    ("settings", "cause"),
    [
        ({}, "unknown"),
        ({"assigned": True}, "loaded"),
        ({"assigned": True, "replaced": True}, "loaded"),
        ({"replaced": True}, "optimizer_replaced"),
        ({"bypassed": True}, "unknown"),
        ({"still_trained": True}, "unknown"),
        ({"held_by": FLAG, "still_trained": True}, "not_recompiled"),
        ({"held_by": FLAG, "assigned": True, "still_trained": True}, "loaded"),
        ({"held_by": FLAG, "replaced": True}, "unknown"),
        ({"held_by": ENFORCED, "bypassed": True}, "bypassed"),
        ({"held_by": ENFORCED, "bypassed": True, "replaced": True}, "optimizer_replaced"),
        ({"held_by": ENFORCED, "assigned": True, "bypassed": True}, "loaded"),
        ({"held_by": ENFORCED, "average": WAS + 1}, "written"),
        ({"held_by": ENFORCED}, "written"),
        ({"constrained": True}, "constraint"),
        ({"constrained": True, "assigned": True}, "loaded"),
        ({"held_by": FLAG, "constrained": True, "untrained": True}, "constraint"),
        ({"held_by": FLAG, "constrained": True, "still_trained": True}, "not_recompiled"),
        ({"held_by": FLAG, "elsewhere": True, "untrained": True}, "another_model"),
        ({"held_by": FLAG, "elsewhere": True, "still_trained": True}, "not_recompiled"),
        ({"held_by": FLAG, "untrained": True}, "written"),
        ({"elsewhere": True}, "another_model"),
        ({"elsewhere": True, "updates": 3}, "unknown"),
        ({"untrained": True}, "unknown"),
        ({"held_by": ENFORCED, "unmasked": True}, "unmasked_update"),
        ({"held_by": DECLARED, "unmasked": True}, "unknown"),
        ({"gradient": True}, "gradient"),
        # Values that are put back before the step are no cause.
        ({"gradient": True, "assigned": True}, "gradient"),
        ({"held_by": ENFORCED, "gradient": True}, "written"),
        ({"stateless": True}, "unmasked_update"),
        ({"stateless": True, "assigned": True}, "loaded"),
        ({"held_by": FLAG, "stateless": True}, "unknown"),
    ],
)
def test_what_was_seen_to_happen(settings, cause):
    assert cause_of(Facts(WAS, WAS + 1, **settings)) == cause


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_values_that_are_not_finite_are_no_proof(bad):
    now = np.where(np.arange(64) == 3, np.float32(bad), decayed(WAS))
    assert cause_of(Facts(WAS, now, decay=0.1, rates=RATES, average=WAS)) == "unknown"
    assert cause_of(Facts(WAS, now, decay=0.1, rates=RATES, assigned=True)) == "loaded"


def test_no_element_is_no_proof():
    none = WAS[:0]
    assert cause_of(Facts(none, none, average=none)) == "unknown"
    assert cause_of(Facts(none, none, decay=0.1, rates=RATES)) == "unknown"


def test_a_gradient_that_is_left_says_what_else_moved_it():
    assert cause_of(Facts(gradient_left=True)) == "stale_gradient"
    assert cause_of(Facts(gradient_left=False)) == "written"
    assert cause_of(Facts(gradient_left=False, assigned=True)) == "loaded"
    assert cause_of(Facts(gradient_left=True, held_by=FLAG)) == "unknown"
    assert cause_of(Facts(gradient_zero=True, decay=0.1, betas=[0.9])) == "weight_decay"
    assert cause_of(Facts(gradient_zero=True, betas=[0.9])) == "momentum"
    assert cause_of(Facts(gradient_zero=True)) == "unknown"
    still = {"exp_avg": (0 * SLOT, 0 * SLOT)}
    assert cause_of(Facts(gradient_zero=True, betas=[0.9], slots=still)) == "written"
    decays = Facts(WAS, decayed(WAS), decay=0.1, rates=RATES, gradient_left=True)
    assert cause_of(decays) == "weight_decay"
    fades = {"exp_avg": (SLOT, SLOT * np.float32(0.9**10))}
    momentum = Facts(gradient_left=True, slots=fades, betas=[0.9], updates=10)
    assert cause_of(momentum) == "momentum"
