"""The audit of held weights over plain NumPy arrays: when a violation opens, moves on and ends."""

from dataclasses import dataclass, field

import numpy as np
import pytest

from tb_pastnet.core.axes import explicit_axis
from tb_pastnet.record.audit.causes import Facts
from tb_pastnet.record.audit.freeze_audit import (
    Audit,
    AuditSource,
    CauseFinder,
    Channels,
    OpenViolations,
)


def compared(differ, *, fingerprint=(1, 1, 1), expected=(7, 7, 7)):
    """Three channels of four held elements each."""
    largest = np.asarray(differ) / 10
    parts = map(np.asarray, (fingerprint, expected))
    return Channels(np.asarray(differ), np.full(3, 4), largest, *parts)


def spans(violations):
    return [(v.channel, v.first_step, v.last_step, v.elements, v.cause) for v in violations]


class Finder:
    """Finds a new cause, "a", "b" …, at each call, and remembers of which channels."""

    def __init__(self):
        self.asked = []

    def __call__(self, channels):
        self.asked.append(channels.tolist())
        return "abcdefg"[len(self.asked) - 1]


def test_a_violation_opens_moves_on_and_ends():
    opened, find = OpenViolations(), Finder()
    assert spans(opened.enter("k", compared([0, 2, 0]), 5, find)) == [(1, 5, 5, 2, "a")]
    # It stays where it moved to: nothing new.
    assert opened.enter("k", compared([0, 2, 0]), 6, find) == []
    # It moves on: the same violation, with its first step and its cause.
    moved = compared([0, 3, 0], fingerprint=(1, 2, 1))
    assert spans(opened.enter("k", moved, 7, find)) == [(1, 5, 7, 3, "a")]
    # It is as it should be again, another channel is not.
    assert spans(opened.enter("k", compared([1, 0, 0]), 8, find)) == [(0, 8, 8, 1, "b")]
    assert spans(opened.all()) == [(1, 5, 7, 3, "a"), (0, 8, 8, 1, "b")]
    # A cause is looked for only where a violation is new.
    assert find.asked == [[1], [0]]


def test_what_is_held_anew_is_violated_anew():
    opened, find = OpenViolations(), Finder()
    opened.enter("k", compared([1, 0, 0]), 1, find)
    anew = compared([1, 0, 0], expected=(8, 7, 7))
    assert spans(opened.enter("k", anew, 4, find)) == [(0, 4, 4, 1, "b")]
    assert spans(opened.all()) == [(0, 1, 1, 1, "a"), (0, 4, 4, 1, "b")]
    assert find.asked == [[0], [0]]


def test_numbers_of_a_violation_are_those_of_its_channel():
    opened = OpenViolations()
    [violation] = opened.enter("k", compared([0, 0, 3]), 1, Finder())
    assert (violation.variable, violation.held, violation.largest) == ("k", 4, 0.3)


def test_variables_end_one_by_one_or_all():
    opened, find = OpenViolations(), Finder()
    for name in ("k", "b"):
        opened.enter(name, compared([1, 0, 0]), 1, find)
    opened.close("k")
    opened.close("k")
    assert opened.enter("b", compared([1, 0, 0]), 2, find) == []
    assert spans(opened.enter("k", compared([1, 0, 0]), 2, find)) == [(0, 2, 2, 1, "c")]
    opened.close_all()
    assert spans(opened.enter("b", compared([1, 0, 0]), 3, find)) == [(0, 3, 3, 1, "d")]
    assert len(opened.all()) == 4


@dataclass
class Whole:
    """An array that is held whole."""

    name: str
    value: np.ndarray
    trainable: bool = True
    variable: object = None
    flagged: bool = False
    was: np.ndarray | None = None

    def __post_init__(self):
        self.axis = explicit_axis(-1, self.value.shape, self.name)

    def masks(self):
        return None

    def follow(self, masks, *, flagged):
        assert masks is None
        more = flagged and not self.flagged
        self.flagged = flagged
        if more:
            self.was = self.value.copy()
        return more

    def channels(self):
        apart = self.value != self.was
        largest = np.abs(self.value - self.was).max(0)
        held = np.full(apart.shape[1], len(apart))
        print_ = [hash(column.tobytes()) for column in self.value.T]
        expected = [hash(column.tobytes()) for column in self.was.T]
        return Channels(apart.sum(0), held, largest, np.asarray(print_), np.asarray(expected))


@dataclass
class Told(CauseFinder):
    """What an audit asks for causes."""

    begun: list = field(default_factory=list)
    remembered: list = field(default_factory=list)
    beside: set = field(default_factory=set)
    broken: bool = False

    def begin(self, held):
        self.begun += [each.name for each in held]

    def remember(self, held):
        self.remembered.append([weight.name for weight in held])

    def newly_bypassed(self, held):
        return self.beside

    def facts(self, held, channels):
        if self.broken:
            raise RuntimeError
        return Facts(held.was, held.value, assigned=True)


class Source(AuditSource):
    def __init__(self, *weights):
        self.weights, self.causes, self.key = weights, Told(), 0

    def held(self, weight):
        return weight

    def moved(self, held):
        return [not np.array_equal(weight.value, weight.was) for weight in held]

    def quick_key(self):
        return self.key

    def trainable(self):
        return [weight.trainable for weight in self.weights]


@pytest.fixture
def source():
    return Source(
        Whole("k", np.ones((2, 3), np.float32), trainable=False),
        Whole("b", np.ones((1, 3), np.float32)),
    )


def test_only_what_is_held_is_compared_and_only_from_then_on(source):
    kernel, bias = source.weights
    bias.value += 1
    audit = Audit(source, lambda: None)
    assert (source.causes.begun, source.causes.remembered) == (["k"], [["k"]])
    assert audit.check(1) == []
    kernel.value[0, 1] = 5
    bias.value += 1
    assert spans(audit.check(2)) == [(1, 2, 2, 1, "loaded")]
    assert audit.check(3) == []
    kernel.value[0, 1] = 1
    assert audit.check(4) == []
    assert spans(audit.violations) == [(1, 2, 2, 1, "loaded")]
    assert source.causes.remembered == [["k"]] * 5


def test_one_that_is_held_behind_a_free_one_is_looked_at():
    free, held = (Whole(name, np.ones((1, 3), np.float32), trainable=name == "a") for name in "ab")
    audit = Audit(Source(free, held), lambda: None)
    held.value[0, 2] = 5
    assert [violation.variable for violation in audit.check(1)] == ["b"]


def test_a_weight_that_is_free_again_is_held_anew_as_it_is(source):
    kernel = source.weights[0]
    audit = Audit(source, lambda: None)
    kernel.value[:] = 2
    assert len(audit.check(1)) == 3
    kernel.trainable = True
    assert audit.check(2) == []
    kernel.flagged = False
    kernel.value[:] = 3
    kernel.trainable = False
    assert audit.check(3) == []
    assert source.causes.begun == ["k", "k"]
    assert {violation.last_step for violation in audit.violations} == {1}


def test_a_quick_look_asks_for_flags_only_where_their_key_changed(source):
    audit = Audit(source, lambda: None)
    source.weights[1].trainable = False
    audit.observe(quick=True)
    assert source.causes.begun == ["k"]
    source.key += 1
    audit.observe(quick=True)
    assert source.causes.begun == ["k", "b"]
    assert source.causes.remembered == [["k"]]  # only the first look stands for a check


def test_without_anything_held_nothing_is_asked():
    source = Source(Whole("b", np.ones((1, 3), np.float32)))
    source.moved = None  # not even what moved
    assert Audit(source, lambda: None).check(1) == []


def test_a_cause_that_cannot_be_read_is_unknown(source):
    audit = Audit(source, lambda: None)
    source.causes.broken = True
    source.weights[0].value[:] = 0
    assert {violation.cause for violation in audit.check(1)} == {"unknown"}


def test_after_a_restart_violations_are_found_anew(source):
    audit = Audit(source, lambda: None)
    source.weights[0].value[0, 0] = 0
    audit.check(1)
    audit.restart()
    assert [violation.first_step for violation in audit.check(2)] == [2]
    assert [violation.first_step for violation in audit.violations] == [1, 2]


def test_a_step_that_goes_around_a_mask_is_noted_once(source):
    audit = Audit(source, lambda: None)
    source.causes.beside = {"k"}
    audit.check(1)
    audit.check(2)
    [note] = audit.notes
    assert note.startswith("Could not hold 'k' in a training step")
