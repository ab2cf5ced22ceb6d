from __future__ import annotations

import inspect
import pickle
from dataclasses import dataclass

import pytest

from tb_pastnet.core.arguments import answered, check, names_of
from tb_pastnet.errors import InvalidArgument, UnknownArgument


@answered
def record(logdir, every=10, channel_axis=None):
    """Says what it got."""
    return logdir + every if isinstance(every, str) else (logdir, every, channel_axis)


@answered
@dataclass(frozen=True)
class Decay:
    initial: float
    final: float = 0.5


@pytest.mark.parametrize(
    ("given", "expected", "mend"),
    [
        ({"log_dir": "a"}, "expected logdir=, got log_dir=.", "Write logdir=."),
        ({"logdirr": "a"}, "expected logdir=, got logdirr=.", "Write logdir=."),
        ({"logdir": "a", "update_freq": 1}, "expected every=, got update_freq=.", "Write every=."),
        ({"logdir": "a", "axis": 1}, "expected channel_axis=, got axis=.", "Write channel_axis=."),
        ({"logdir": "a", "patience": 1}, "got patience=.", "EarlyStopping takes it"),
        ({"logdir": "a", "qqq": 1}, "some of logdir, every, channel_axis, got qqq=.", "Leave it"),
        ({}, "expected logdir=, got none.", "Write record(logdir=…)."),
    ],
)
def test_an_argument_that_isnt_there_is_answered_with_the_right_one(given, expected, mend):
    with pytest.raises(UnknownArgument) as error:
        record(**given)
    assert str(error.value).startswith("Could not call record: expected ")
    assert expected in str(error.value)
    assert mend in str(error.value)


def test_what_is_taken_by_place_is_answered_with_its_name():
    @answered
    def changes(model, *patterns, statistics=None):
        return patterns

    with pytest.raises(UnknownArgument, match=r"expected patterns by place, got patterns=\. Write"):
        changes(1, patterns=["a"])
    with pytest.raises(UnknownArgument, match="expected statistics=, got statistic="):
        changes(1, "a", statistic="still")
    assert changes(1, "a", "b") == ("a", "b")


def test_the_error_is_still_a_type_error():
    with pytest.raises(TypeError):
        record(log_dir="a")
    assert issubclass(UnknownArgument, InvalidArgument)


def test_a_call_that_fits_is_left_as_it_is():
    assert record("a", channel_axis=2) == ("a", 10, 2)
    assert list(inspect.signature(record).parameters) == ["logdir", "every", "channel_axis"]
    assert record.__doc__ == "Says what it got."
    assert pickle.loads(pickle.dumps(record)) is record


def test_an_error_from_inside_is_left_as_it_is():
    with pytest.raises(TypeError, match="unsupported operand") as error:
        record(1, "a")
    assert not isinstance(error.value, UnknownArgument)


def test_more_arguments_by_place_than_there_are():
    with pytest.raises(UnknownArgument, match=r"record: expected at most 3 arguments by place, go"):
        record(1, 2, 3, 4)


def test_a_class_is_answered_by_its_own_name():
    with pytest.raises(UnknownArgument, match=r"call Decay: expected initial=, got initial_spar"):
        Decay(initial_sparsity=0.1)
    assert Decay(0.1) == Decay(initial=0.1)
    assert pickle.loads(pickle.dumps(Decay(0.1))) == Decay(0.1)


def test_settings_that_are_handed_on_are_checked_by_name():
    names = names_of(record, without=("logdir",))
    assert names == ["every", "channel_axis"]
    check("Callback", {"every": 1}, names)
    with pytest.raises(UnknownArgument, match=r"Could not call Callback: expected every=, got fre"):
        check("Callback", {"every": 1, "freq": 2}, names)
