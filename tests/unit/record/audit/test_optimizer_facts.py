"""What is remembered of an optimizer, and so becomes a fact: with one in plain NumPy."""

from __future__ import annotations

import gc
from dataclasses import dataclass, field
from types import SimpleNamespace

import numpy as np
import pytest

from tb_pastnet.core.axes import explicit_axis
from tb_pastnet.record.audit.causes import DECLARED, ENFORCED, FLAG, MOST_UPDATES
from tb_pastnet.record.audit.comparison import sampled
from tb_pastnet.record.audit.optimizer_facts import (
    SAMPLE,
    Applied,
    Average,
    OptimizerCauses,
)

SHAPE = (6, 4)
VIOLATED = np.array([1])


class Weight:
    """A weight of which the channels 1 and 2 are held; masks of which generation enforce that."""

    def __init__(self, name="dense/kernel", flagged=False, enforced=None):
        self.name = name
        generation = enforced or 0
        self.masks = SimpleNamespace(enforced=enforced is not None, generation=generation)
        self.axis = explicit_axis(-1, SHAPE, name)
        self.flagged = flagged
        self.was = np.arange(24, dtype="f")
        self.now = self.was + 1

    def flags(self):
        held = np.zeros(SHAPE, bool)
        held[:, 1:3] = True
        return held

    def sample(self):
        return sampled(self.flags())

    def worst(self, channels, count):
        return np.flatnonzero(np.isin(np.arange(24) % 4, channels))[:count]

    def values_at(self, positions):
        return self.was[positions], self.now[positions]


class Object:
    """A framework's own optimizer."""


@dataclass
class Optimizer:
    """What is read of an optimizer: a slot of it begins at the position of its element."""

    updates: int = 0
    rate: float = 0.1
    schedule: object = None
    applied: Applied = field(default_factory=lambda: Applied(hooked=None))
    betas: tuple[float, ...] = (0.9,)
    overwriting: Average | None = None
    trained: bool = True
    optimizer: object = field(default_factory=Object)
    factor: float = 1.0

    def decay(self, held):
        return 0.01

    def trains(self, held):
        return self.trained

    def average(self, held):
        return self.overwriting

    def slots(self, held, positions):
        return {"momentum": positions * self.factor}


@dataclass
class Training:
    """A training whose optimizer, step and count of assignments tests set."""

    now: Optimizer | None = field(default_factory=Optimizer)
    compiled: object = None
    count: int = 0
    bounded: bool = False
    others: bool = False

    def optimizers(self):
        return lambda held: self.now

    def step(self):
        return self.compiled

    def assigned(self, held):
        return self.count

    def constrained(self, held):
        return self.bounded

    def elsewhere(self, held):
        return self.others


@pytest.fixture
def training():
    return Training()


@pytest.fixture
def causes(training):
    return OptimizerCauses(training)


def begun(causes, held):
    causes.begin([held])
    causes.remember([held])


@pytest.mark.parametrize(
    ("held", "expected"),
    [
        (Weight(flagged=True, enforced=1), FLAG),
        (Weight(flagged=True), FLAG),
        (Weight(), DECLARED),
        (Weight(enforced=1), ENFORCED),
    ],
)
def test_what_holds_it(causes, held, expected):
    begun(causes, held)
    assert causes.facts(held, VIOLATED).held_by == expected


def test_values_are_those_of_the_worst_elements(causes):
    held = Weight()
    begun(causes, held)
    facts = causes.facts(held, VIOLATED)
    assert facts.was.tolist() == [1, 5, 9, 13, 17, 21]
    assert facts.current.tolist() == [2, 6, 10, 14, 18, 22]


def test_only_assignments_since_the_last_check_count(causes, training):
    held = Weight()
    training.count = 2
    causes.begin([held])
    assert causes.facts(held, VIOLATED).assigned
    causes.remember([held])
    assert not causes.facts(held, VIOLATED).assigned
    training.count = 3
    assert causes.facts(held, VIOLATED).assigned


def test_weights_that_are_held_later_dont_move_the_state_at_the_check(causes, training):
    first, second = Weight("first"), Weight("second")
    begun(causes, first)
    training.now.updates = 3
    causes.begin([second])
    training.now.updates = 5
    assert [len(rates) for rates in causes.facts(first, VIOLATED).rates] == [5, 5]
    assert [len(rates) for rates in causes.facts(second, VIOLATED).rates] == [5, 2]


def test_weights_behind_one_without_an_optimizer_have_theirs(training, monkeypatch):
    none, trained = Weight("none"), Weight("trained")
    monkeypatch.setattr(
        training, "optimizers", lambda: {none: None, trained: training.now}.__getitem__
    )
    causes = OptimizerCauses(training)
    causes.begin([none, trained])
    causes.remember([none, trained])
    assert causes.facts(trained, VIOLATED).still_trained
    assert causes.facts(none, VIOLATED).untrained


def test_without_an_optimizer_values_and_assignments_are_known(training):
    training.now = None
    causes = OptimizerCauses(training)
    held = Weight()
    begun(causes, held)
    training.count = 1
    facts = causes.facts(held, VIOLATED)
    assert facts.assigned
    assert not facts.rates
    assert not facts.slots
    assert causes.cause(held, VIOLATED) == "loaded"


def test_one_that_is_met_later_replaces_none(training):
    training.now = None
    causes = OptimizerCauses(training)
    held = Weight()
    begun(causes, held)
    training.now = Optimizer(updates=1)
    facts = causes.facts(held, VIOLATED)
    assert not facts.replaced
    assert not facts.still_trained


def test_another_optimizer_has_replaced_the_one_of_the_beginning(causes, training):
    held = Weight()
    begun(causes, held)
    assert not causes.facts(held, VIOLATED).replaced
    training.now = Optimizer(updates=4)
    facts = causes.facts(held, VIOLATED)
    assert facts.replaced
    assert not facts.slots
    assert not facts.still_trained
    # It keeps none alive.
    gc.collect()
    assert causes.facts(held, VIOLATED).replaced


def test_rates_are_of_updates_since_the_last_check_and_since_it_is_held(causes, training):
    held = Weight()
    training.now.updates = 10
    causes.begin([held])
    training.now.updates = 15
    causes.remember([held])
    training.now.updates = 18
    rates = causes.facts(held, VIOLATED).rates
    assert [rate.tolist() for rate in rates] == [[0.1] * 3, [0.1] * 8]
    assert causes.facts(held, VIOLATED).updates == 8


def test_a_replaced_optimizer_counts_its_updates_from_none(causes, training):
    held = Weight()
    training.now.updates = 10
    begun(causes, held)
    training.now = Optimizer(updates=3)
    rates = causes.facts(held, VIOLATED).rates
    # Both intervals, since the last check and since it is held, begin with the new optimizer.
    assert [rate.tolist() for rate in rates] == [[0.1] * 3, [0.1] * 3]


def test_facts_that_are_made_anew_for_each_weight_tell_optimizers_apart(causes, training):
    optimizers = {"a": Object(), "b": Object()}

    def of(held):
        return Optimizer(optimizer=optimizers[held.name[0]])

    training.optimizers = lambda: of
    held = [Weight(f"{name}/{number}") for name in "ab" for number in range(8)]
    causes.begin(held)
    causes.remember(held)
    assert not any(causes.facts(each, VIOLATED).replaced for each in held)


def test_a_replaced_optimizer_that_was_checked_since(causes, training):
    held = Weight()
    training.now.updates = 10
    begun(causes, held)
    training.now = Optimizer(updates=13)
    causes.remember([held])
    training.now.updates = 15
    rates = causes.facts(held, VIOLATED).rates
    assert [len(rate) for rate in rates] == [2, 15]


@pytest.mark.parametrize(("updates", "counts"), [(MOST_UPDATES, 2), (MOST_UPDATES + 1, 0), (0, 0)])
def test_no_rates_of_no_update_or_of_too_many(causes, training, updates, counts):
    held = Weight()
    begun(causes, held)
    training.now.updates = updates
    assert len(causes.facts(held, VIOLATED).rates) == counts


def test_a_rate_that_was_changed_may_have_been_at_each_update(causes, training):
    held = Weight()
    begun(causes, held)
    training.now.updates, training.now.rate = 2, 0.5
    rates = [rate.tolist() for rate in causes.facts(held, VIOLATED).rates]
    assert rates[:3] == [[0.5, 0.5], [0.1, 0.5], [0.1, 0.1]]
    training.now.updates = 65
    rates = causes.facts(held, VIOLATED).rates
    # Too many to try each: at the first, or at the last.
    assert [set(rate.tolist()) for rate in rates] == [{0.5}, {0.1}] * 2


def test_a_rate_that_was_not_known_is_the_current_one(causes, training):
    held = Weight()
    training.now.rate = float("nan")
    begun(causes, held)
    training.now.updates, training.now.rate = 2, 0.5
    rates = causes.facts(held, VIOLATED).rates
    assert [rate.tolist() for rate in rates] == [[0.5, 0.5]] * 2


def test_rates_of_a_schedule_are_those_of_its_updates(causes, training):
    held = Weight()
    training.now.updates = 100
    begun(causes, held)
    training.now.updates, training.now.schedule = 600, lambda update: 1 / (1 + update)
    rates = causes.facts(held, VIOLATED).rates[0]
    np.testing.assert_allclose(rates, 1 / (1 + np.arange(100, 600)), rtol=2e-3)
    assert rates[[0, -1]].tolist() == [1 / 101, 1 / 600]


def test_still_trained_as_long_as_the_step_is_the_same(causes, training):
    held = Weight(flagged=True)
    training.compiled = test_still_trained_as_long_as_the_step_is_the_same
    begun(causes, held)
    assert causes.facts(held, VIOLATED).still_trained
    training.now.trained = False
    assert not causes.facts(held, VIOLATED).still_trained
    training.now.trained, training.compiled = True, test_what_holds_it
    assert not causes.facts(held, VIOLATED).still_trained


def average(**settings):
    settings = {"values_at": lambda positions: positions + 0.5, "momentum": 0.9, **settings}
    return Average(**{"overwrites_every": None, **settings})


@pytest.mark.parametrize(
    ("every", "checked", "updates", "overwritten"),
    [(5, 9, 10, True), (5, 10, 14, False), (5, 4, 9, True), (5, 10, 10, False)],
)
def test_an_average_that_overwrites_now_and_then(
    causes, training, every, checked, updates, overwritten
):
    held = Weight()
    training.now.updates = checked
    begun(causes, held)
    training.now.updates, training.now.overwriting = updates, average(overwrites_every=every)
    facts = causes.facts(held, VIOLATED)
    assert (facts.average is not None) == overwritten
    if overwritten:
        assert facts.average.tolist() == [1.5, 5.5, 9.5, 13.5, 17.5, 21.5]


@pytest.mark.parametrize(("updates", "overwritten"), [(87, True), (88, False)])
def test_an_average_without_a_frequency_overwrites_until_it_has_forgotten(
    causes, training, updates, overwritten
):
    held = Weight()
    begun(causes, held)
    training.now.updates, training.now.overwriting = updates, average()
    assert (causes.facts(held, VIOLATED).average is not None) == overwritten


def test_slots_are_those_of_the_violated_channels(causes, training):
    held = Weight()
    begun(causes, held)
    training.now.updates, training.now.factor = 2, 0.81
    begin, now = causes.facts(held, VIOLATED).slots["momentum"]
    assert begin.tolist() == [1, 5, 9, 13, 17, 21]
    np.testing.assert_allclose(now, begin * 0.81)


def test_slots_of_channels_without_a_sample_are_those_of_all(causes):
    held = Weight()
    begun(causes, held)
    begin, _ = causes.facts(held, np.array([3])).slots["momentum"]
    assert begin.tolist() == [1, 2, 5, 6, 9, 10, 13, 14, 17, 18, 21, 22]


@pytest.mark.parametrize("held", [Weight(flagged=True), Weight(enforced=1)])
def test_no_slots_are_asked_for_where_the_optimizer_does_not_go_on(causes, training, held):
    training.now.slots = lambda held, positions: 1 / 0 if len(positions) else {}
    begun(causes, held)
    assert not causes.facts(held, VIOLATED).slots


def test_of_a_slot_that_is_new_the_beginning_is_not_known(causes, training):
    held = Weight()
    begun(causes, held)
    training.now.slots = lambda held, positions: {"velocity": positions}
    ((begin, now),) = causes.facts(held, VIOLATED).slots.values()
    assert np.isnan(begin).all()
    assert now.tolist() == [1, 5, 9, 13, 17, 21]


@pytest.mark.parametrize(
    ("held", "told"), [(Weight(flagged=True), True), (Weight(), True), (Weight(enforced=1), False)]
)
def test_constraint_and_other_models_matter_where_no_hook_holds(causes, training, held, told):
    training.bounded = training.others = True
    training.now.trained = False
    training.now.applied = Applied()
    begun(causes, held)
    facts = causes.facts(held, VIOLATED)
    assert (facts.constrained, facts.elsewhere, facts.untrained) == (told, told, told)


@pytest.mark.parametrize(("flagged", "looks"), [(True, 1), (False, 0)])
def test_other_models_are_looked_for_only_where_they_may_decide(causes, training, flagged, looks):
    """That takes long in a large process: not for masks whose own optimizer has made updates."""
    held, looked = Weight(flagged=flagged), []
    training.elsewhere = looked.append
    begun(causes, held)
    training.now.updates += 2
    assert not causes.facts(held, VIOLATED).elsewhere
    assert len(looked) == looks


def test_enforced_masks_need_a_hook(causes, training):
    held = Weight(enforced=1)
    training.now.applied = Applied()
    begun(causes, held)
    assert not causes.facts(held, VIOLATED).replaced
    training.now = Optimizer()
    assert causes.facts(held, VIOLATED).replaced


NAMES = ("first", "dense/kernel")


@pytest.mark.parametrize(
    ("applied", "names"),
    [
        (Applied(updates=6, hooked=5, generation=2), set()),
        (Applied(updates=8, hooked=7, generation=2), set()),
        # Through the hook, by a step that knew only the masks of the first generation.
        (Applied(updates=7, hooked=6, generation=1), {"dense/kernel"}),
        (Applied(updates=7, hooked=6, generation=0), set(NAMES)),
        # Such a step that was last run before these masks came.
        (Applied(updates=6, hooked=5, generation=1), set()),
        # Beside the hook.
        (Applied(updates=8, hooked=6, generation=2), set(NAMES)),
        # A counter that was loaded says nothing.
        (Applied(updates=70, hooked=6, generation=2, loaded=1), set()),
    ],
    ids=["none", "all-hooked", "one-generation-late", "two", "not-since", "beside", "loaded"],
)
def test_masks_that_updates_were_made_without(causes, training, applied, names):
    weights = [Weight(name, enforced=number) for number, name in enumerate(NAMES, start=1)]
    # One update had gone beside the hook before these masks came.
    training.now.applied = Applied(updates=6, hooked=5, generation=2)
    causes.begin(weights)
    training.now.applied = applied
    assert causes.newly_bypassed(weights) == names
    assert {each.name for each in weights if causes.facts(each, VIOLATED).bypassed} == names


@pytest.mark.parametrize(("applied", "count"), [(Applied(3, 0, 3, 1), 0), (Applied(3, 0, 2, 1), 1)])
def test_an_optimizer_without_updates_when_masks_came(causes, training, applied, count):
    held = Weight(enforced=1)
    causes.begin([held])
    training.now.applied = applied
    assert len(causes.newly_bypassed([held])) == count


@pytest.mark.parametrize(
    ("applied", "count"),
    [(Applied(7, 0, 2, 1), 0), (Applied(8, 0, 2, 1), 1), (Applied(90, 1, 2, 1), 0)],
    ids=["all-hooked", "beside", "loaded"],
)
def test_updates_before_a_hook_came_are_not_around_it(causes, training, applied, count):
    held = Weight(enforced=1)
    training.now.applied = Applied(5, hooked=None)
    causes.begin([held])
    assert causes.newly_bypassed([held]) == set()
    training.now.applied = applied
    assert len(causes.newly_bypassed([held])) == count


@pytest.mark.parametrize("gone", ["masks", "enforcing", "optimizer", "another"])
def test_nothing_is_bypassed_without_masks_that_this_optimizer_holds(causes, training, gone):
    held = Weight(enforced=None if gone == "enforcing" else 2)
    training.now.applied = Applied(updates=5, hooked=5, generation=2)
    begun(causes, held)
    training.now.applied = Applied(updates=9, hooked=6, generation=0)
    if gone == "optimizer":
        training.now = None
    if gone == "another":
        training.now = Optimizer(applied=training.now.applied)
    assert causes.newly_bypassed([] if gone == "masks" else [held]) == set()


def test_what_can_not_be_read_is_unknown(causes, training):
    held = Weight()
    begun(causes, held)
    training.now.decay = lambda held: 1 / 0
    assert causes.cause(held, VIOLATED) == "unknown"


def test_some_of_a_few_held_elements_are_all_of_them():
    held = np.zeros((5, 7), bool)
    held[1, 2] = held[4, 6] = held[0, 0] = True
    assert sampled(held).tolist() == [0, 9, 34]


def test_some_of_many_are_from_all_over_and_held():
    held = np.random.default_rng(0).random((1 << 10, 1 << 10)) < 0.5
    positions = sampled(held)
    assert len(positions) == SAMPLE
    assert held.reshape(-1)[positions].all()
    assert (np.diff(positions) > 0).all()
    assert len(np.unique(positions * 16 // held.size)) == 16


def test_a_table_of_even_width_is_sampled_in_more_than_one_column():
    held = np.ones((1 << 11, 1 << 9), bool)
    assert len(np.unique(sampled(held) % held.shape[1])) > SAMPLE // 2


def test_where_the_stride_meets_none_that_is_held_all_are_looked_at():
    held = np.zeros(1 << 18, bool)
    held[[7, 100_001]] = True
    assert sampled(held).tolist() == [7, 100_001]


def test_nothing_held_gives_no_position():
    assert sampled(np.zeros(9, bool)).size == 0


def test_masks_that_were_seen_in_force_are_not_asked_for_again(causes, training, monkeypatch):
    asked, held = [], Weight(enforced=2)
    training.now.applied = Applied(4, 0, 4, 1)
    causes.begin([held])
    monkeypatch.setattr(
        training, "optimizers", lambda: lambda each: asked.append(1) or training.now
    )
    for generation in (1, 2, 2):
        training.now.applied = Applied(4, 0, 4, generation)
        assert causes.newly_bypassed([held]) == set()
    # Not before the last masks are in force, and once then.
    assert len(asked) == 2


def test_each_weight_is_judged_by_the_optimizer_that_trains_it(causes, training, monkeypatch):
    """Two optimizers, of which the second alone made updates that decay explains."""
    first, second = Weight("first"), Weight("second")
    of = {"first": Optimizer(updates=3), "second": Optimizer(updates=5, rate=0.5)}
    monkeypatch.setattr(training, "optimizers", lambda: lambda held: of[held.name])
    begun(causes, first)
    causes.begin([second])
    causes.remember([first, second])
    of["second"].updates = 6
    assert causes.facts(first, VIOLATED).updates == 0
    facts = causes.facts(second, VIOLATED)
    assert (facts.updates, [rate.tolist() for rate in facts.rates]) == (1, [[0.5], [0.5]])
