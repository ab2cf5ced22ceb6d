"""The time axis and the account of a lineage come back as they were written."""

import numpy as np
import pytest

from tb_pastnet.errors import DamagedRecord, InvalidArgument
from tb_pastnet.format import envelope, varint
from tb_pastnet.format.timeline import Timeline, decode_timeline, encode_timeline

TAG = "timeline"


def timeline(**changes) -> Timeline:
    values = {
        "sequence": np.array([4, 6, 7]),
        "steps": np.array([40, 60, 70]),
        "wall_times": np.array([1.7e9, 1.7e9 + 0.25, 1.7e9 - 3]),
        "learning_rates": np.array([0.1, np.nan, 1e-5]),
        "offered": 8,
        "thinned": 2,
        "dropped": 3,
        "notes": {"disk full": 3, "naïve": 1},
        "group_rates": np.array([[0.5, np.nan, 0.25]]),
    }
    return Timeline(**{**values, **changes})


def roundtrip(value: Timeline, step: int) -> Timeline:
    message = encode_timeline(value, tag=TAG, step=step, lineage=1)
    return decode_timeline(message, tag=TAG, step=step, lineage=1)


def test_everything_comes_back():
    value = timeline()
    back = roundtrip(value, 70)
    for name in ("sequence", "steps", "wall_times", "learning_rates", "group_rates"):
        np.testing.assert_array_equal(getattr(back, name), getattr(value, name))
    for name in ("offered", "thinned", "dropped", "closed", "notes"):
        assert getattr(back, name) == getattr(value, name)


def test_a_clock_that_goes_back_is_kept_as_it_was():
    assert roundtrip(timeline(), 70).wall_times[2] < roundtrip(timeline(), 70).wall_times[0]


def test_a_closing_timeline_may_be_empty():
    back = roundtrip(Timeline(offered=9, closed=True), 71)
    assert len(back.steps) == 0
    assert back.closed
    assert back.offered == 9


def test_arrays_of_different_length_are_refused():
    with pytest.raises(
        InvalidArgument, match=r"expected 3 entries in each array, got \[2, 3, 3, 3\]"
    ):
        roundtrip(timeline(sequence=np.array([1, 2])), 70)
    with pytest.raises(InvalidArgument, match=r"got \[3, 3, 3, 2\]"):
        roundtrip(timeline(group_rates=np.zeros((1, 2))), 70)


def test_steps_that_go_back_are_refused():
    with pytest.raises(InvalidArgument, match="expected strictly increasing steps"):
        roundtrip(timeline(steps=np.array([40, 30, 70])), 70)


@pytest.mark.parametrize(
    ("payload", "text"),
    [
        (varint.encode([2, 0, 0, 0, 0]) + bytes(2 + 2 + 2 + 16 + 2), "increasing steps"),
        (varint.encode([0, 0, 0, 0, 2]), "a number of at most 1, got 2"),
        (varint.encode([0, 0, 0, 0, 0, 1, 50]), "50 more bytes, got 0"),
        (varint.encode([0, 0, 0, 0, 0, 0, 0, 0]), "the end of the record"),
        (varint.encode([0, 0, 0, 0, 0, 0, 1 << 13]), "a number of at most 4096"),
    ],
)
def test_a_payload_that_does_not_hold_together_is_damaged(payload, text):
    message = envelope.seal(payload, envelope.Kind.TIMELINE, tag=TAG, step=1, lineage=1)
    with pytest.raises(DamagedRecord, match=text):
        decode_timeline(message, tag=TAG, step=1, lineage=1)
