"""Which weights are idle, from statistics made by hand, and what of it is handed over."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from tb_pastnet.core.axes import explicit_axis
from tb_pastnet.core.statistics import STATISTICS
from tb_pastnet.format.standing import StandingChange
from tb_pastnet.record.failures import Failures
from tb_pastnet.record.source import HELD
from tb_pastnet.record.standing import Standing
from tb_pastnet.record.weight import Network, Weight

CHANNELS = 3
ROWS = {name: row for row, name in enumerate(STATISTICS)}


class Own(Weight):
    def __init__(self, name, dtype="float32", **more):
        super().__init__(name, (2, CHANNELS), dtype, explicit_axis(-1, (2, CHANNELS), name), **more)

    def read(self):
        return np.ones(self.shape, self.dtype)


class Told:
    """A source that answers what it is told, and a sink that takes what comes."""

    def __init__(self, *weights, shrinks=None):
        self.network = Network.of(weights)
        self.answers, self.asked, self.changes, self.full = {}, [], [], False
        self.shrinks = shrinks

    def why_still(self, still, slow, skip=0):
        self.asked.append((list(still), list(slow)))
        return {n: self.answers[n] for n in (*still, *slow) if n in self.answers}

    def decay(self, number):
        return self.shrinks

    def standing(self, step, changes):
        if not self.full:
            self.changes += changes
        return not self.full


def values(weights, norm=1.0, past=1.0, delta=0.1, changed=1.0, moved=None, *, even=False):
    """A record's statistics, each given for all weights or for each; channels move unevenly."""
    rows = {"norm": norm, "past_norm": past, "delta_norm": delta, "changed": changed,
            "delta_max": 0.1, "nonfinite": 0, "kept": 1, "trainable": 1,
            "moved": np.array(changed) > 0 if moved is None else moved}  # fmt: skip
    each = {name: np.broadcast_to(value, weights) for name, value in rows.items()}
    own = np.repeat(np.stack([each[name] for name in STATISTICS]), CHANNELS, axis=1).astype("f4")
    if not even:
        own[ROWS["delta_norm"]] *= np.tile([1, 0.5, 2], weights)
    return own


class Story:
    def __init__(self, *weights, shrinks=None):
        self.told = Told(*weights, shrinks=shrinks)
        self.weights, self.step = len(weights), 0
        self.failures = Failures()
        self.standing = Standing(self.told, self.failures)

    def record(self, steps=1, change=None, **rows):
        self.step += steps
        own = values(self.weights, **rows)
        if change is not None:
            change(own)
        record = SimpleNamespace(step=self.step, past_step=self.step - 1, values=own)
        self.standing.hand(self.told, record)
        assert not self.failures.counts()
        return own


def test_a_cause_is_handed_over_at_the_second_record_from_the_first_on():
    story = Story(Own("a/kernel"), Own("b/kernel"))
    story.told.answers = {0: "rate"}
    for _ in range(4):
        story.record(changed=[0, 1], delta=[0, 0.1])
    assert story.told.asked == [([0], [])] * 3  # at the fourth record the last answer counts
    assert story.told.changes == [StandingChange(1, "a/kernel", "rate")]
    story.told.answers = {0: "no_gradient"}
    story.record(changed=[0, 1], delta=[0, 0.1])
    story.record()
    assert story.told.changes[1:] == [
        StandingChange(5, "a/kernel", "no_gradient"),
        StandingChange(6, "a/kernel", ""),
    ]
    story.record()
    story.record()
    assert story.told.asked[-1] == ([], [])
    assert len(story.told.asked) == 6


def test_without_a_weight_that_stands_still_nobody_is_asked():
    story = Story(Own("a/kernel"), Own("b/kernel"))
    for _ in range(5):
        story.record()
    assert story.told.asked == []


@pytest.mark.parametrize("channel", range(CHANNELS))
def test_a_weight_of_which_one_channel_changed_moves(channel):
    story = Story(Own("a/kernel"))

    def change(own):
        own[ROWS["changed"], channel] = 0.5
        own[ROWS["delta_norm"], channel] = 0.1

    story.record(changed=0, delta=0, change=change)
    assert not any(still for still, _ in story.told.asked)


def test_what_moved_between_records_does_not_stand_still():
    story = Story(Own("a/kernel"))
    story.told.answers = {0: "rate"}
    for moved in (np.nan, 1, 1, 1):
        story.record(changed=0, delta=0, moved=moved)
    assert [still for still, _ in story.told.asked] == [[0], []]
    assert story.told.changes == []


@pytest.mark.parametrize(
    "weight",
    [Own("a/mean", statistic=True), Own("a/kernel", follows=True)],
)
def test_what_no_optimizer_trains_is_not_asked_about(weight):
    story = Story(weight, Own("b/kernel"))
    story.record(changed=0, delta=0)
    assert story.told.asked == [([1], [])]


@pytest.mark.parametrize(("row", "value"), [("trainable", 0), ("nonfinite", 1)])
def test_what_is_frozen_or_not_finite_is_not_asked_about(row, value):
    story = Story(Own("a/kernel"))
    story.record(changed=0, delta=0, change=lambda own: own[ROWS[row]].fill(value))
    assert not any(still for still, _ in story.told.asked)


def test_a_record_without_a_past_says_nothing():
    story = Story(Own("a/kernel"))
    story.told.answers = {0: "rate"}
    story.record(changed=0, delta=0)
    story.record(changed=np.nan, delta=np.nan, past=np.nan)
    story.record(changed=0, delta=0)
    assert story.told.changes == [StandingChange(1, "a/kernel", "rate")]


def test_what_comes_and_goes_has_to_stand_still_for_longer():
    story = Story(Own("a/kernel"))
    story.told.answers = {0: "rate"}
    lengths = []
    for still in range(1, 30):
        before = len(story.told.changes)
        for _ in range(still):
            story.record(changed=0, delta=0)
        story.record()
        if len(story.told.changes) > before:
            lengths.append(still)
    # Twice as long each time, up to the records that a stalled weight needs.
    assert lengths == [2, 4, 8, 16, *range(20, 30)]


def test_a_lineage_begins_without_causes():
    story = Story(Own("a/kernel"))
    story.told.answers = {0: "rate"}
    for _ in range(3):
        story.record(changed=0, delta=0)
    story.standing.begin()
    for _ in range(3):
        story.record(changed=0, delta=0)
    assert [change.step for change in story.told.changes] == [1, 4]


def test_what_the_sink_dropped_is_handed_over_again():
    story = Story(Own("a/kernel"))
    story.told.answers, story.told.full = {0: "rate"}, True
    for _ in range(3):
        story.record(changed=0, delta=0)
    story.told.full = False
    story.record(changed=0, delta=0)
    assert story.told.changes == [StandingChange(1, "a/kernel", "rate")]


def test_a_held_weight_is_frozen_in_its_record():
    story = Story(Own("a/kernel"), Own("b/kernel"))
    story.told.answers = {0: HELD, 1: "rate"}
    for _ in range(3):
        own = story.record(changed=0, delta=0)
        np.testing.assert_array_equal(own[ROWS["trainable"]], [0] * CHANNELS + [1] * CHANNELS)
    assert {change.variable for change in story.told.changes} == {"b/kernel"}


@pytest.mark.parametrize(
    ("delta", "norm", "decays"),
    [
        (1e-3, 1 - 1e-3, True),
        (1.01e-3, 1 - 1.01e-3, True),
        (1.1e-3, 1 - 1e-3, False),  # in this step, more
        (1e-3, 1 - 2e-3, False),  # since the last record, more
        (0.9e-3, 1 - 1e-3, False),
    ],
)
def test_only_what_shrinks_as_by_weight_decay_stands_still(delta, norm, decays):
    story = Story(Own("a/kernel"), shrinks=(1e-3, 1e-3))
    story.told.answers = {0: "weight_decay"}
    for number in range(6):
        scale = norm**number
        story.record(norm=norm * scale, past=scale, delta=delta * scale, even=True)
    assert [c.cause for c in story.told.changes] == ["weight_decay"] * decays


def test_what_only_looks_slow_is_asked_about_ever_more_rarely():
    story = Story(Own("a/kernel"))
    for _ in range(200):
        story.record(delta=1e-3, even=True)
    assert 5 < sum(bool(slow) for _, slow in story.told.asked) < 20


@pytest.mark.parametrize(("dtype", "asked"), [("float32", False), ("float16", True)])
def test_few_changed_elements_of_16_bits_are_asked_about(dtype, asked):
    story = Story(Own("a/kernel", dtype=dtype))
    story.record(changed=0.4)
    assert story.told.asked == ([([], [0])] if asked else [])
