"""Trainable channels that stand still, beside a plain reading of the definition."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tb_pastnet.core import statistics
from tb_pastnet.core.channel_states import FROZEN, MOVING, PRUNED, STALLED, VIOLATED, unchanged
from tb_pastnet.core.quantize import NAN, ZERO
from tb_pastnet.core.statistics import STATISTICS


def codes(records: int, channels: int = 1) -> npt.NDArray[np.int16]:
    """Channels that stand still, and no mask."""
    made = np.zeros((len(STATISTICS), records, channels), np.int16)
    made[[statistics.DELTA_NORM, statistics.NONFINITE, statistics.MOVED]] = ZERO
    return made


def told(
    made: npt.NDArray[np.int16],
    state: int = MOVING,
    *,
    steps: list[int] | None = None,
    **more: bool,
) -> list[tuple[str, int] | None]:
    """Of each channel the kind, and the record since which it is; None if it is of no kind."""
    _, records, channels = made.shape
    states = np.full((records, channels), state, np.uint8)
    at = np.array(range(records) if steps is None else steps, np.int64)
    result: list[tuple[str, int] | None] = [None] * channels
    for kind, flags in unchanged(made, states, at, **more).items():
        assert not (flags[:-1] & ~flags[1:]).any()  # up to the newest
        for channel in np.flatnonzero(flags.any(axis=0)):
            assert result[channel] is None
            result[channel] = kind, int(flags[:, channel].argmax())
    return result


def test_it_takes_twenty_records_to_be_stalled_and_two_to_be_worth_a_word() -> None:
    assert STALLED == 20
    assert told(codes(20)) == [("stalled", 0)]
    assert told(codes(19)) == [("unchanged", 0)]
    assert told(codes(2)) == [("unchanged", 0)]
    assert told(codes(1)) == told(codes(0)) == [None]
    assert told(codes(25, 0)) == []


def test_stalled_is_half_of_the_steps_not_of_the_records() -> None:
    made = codes(45)
    made[statistics.DELTA_NORM, 20] = -500
    assert told(made) == [("stalled", 21)]
    # Long runs are thinned: the early steps have more records.
    assert told(made, steps=[*range(25), *range(1000, 3000, 100)]) == [("stalled", 21)]
    assert told(made, steps=[*range(0, 2500, 100), *range(2501, 2521)]) == [("unchanged", 21)]
    made[statistics.DELTA_NORM, 25] = -500
    assert told(made) == [None]


def test_what_a_mask_holds_in_part_and_what_is_pruned_or_broken_is_not_meant_to_train() -> None:
    made = codes(30, 5)
    made[statistics.KEPT, 29, 0] = -1
    made[statistics.TRAINABLE, 29, 1] = ZERO
    made[statistics.NONFINITE, 29, 2] = 0
    assert told(made) == [None, None, None, ("stalled", 0), ("stalled", 0)]
    assert told(made, PRUNED) == [None] * 5


def test_a_first_record_without_a_past_has_not_changed() -> None:
    made = codes(20)
    made[statistics.DELTA_NORM, 0] = NAN
    assert told(made) == [("stalled", 0)]
    made[statistics.DELTA_NORM, 1] = NAN
    assert told(made) == [None]


def test_another_norm_shows_a_change_between_records() -> None:
    made = codes(45, 2)
    made[statistics.NORM, :22, 1] = 16
    assert told(made) == [("stalled", 0), ("stalled", 22)]
    made[statistics.NORM, 30:, 1] = 32
    assert told(made) == [("stalled", 0), None]


def test_marks_do_not_matter() -> None:
    assert told(codes(20), MOVING | VIOLATED) == [("stalled", 0)]
    assert told(codes(20), FROZEN) == [("stalled", 0)]


def test_rows_that_no_step_looked_up_are_told_apart_if_others_changed() -> None:
    made = codes(40, 3)
    made[statistics.DELTA_NORM, 3, 0] = -500
    assert told(made) == [("stalled", 4), ("stalled", 0), ("stalled", 0)]
    assert told(made, rows=True) == [None, ("rows", 0), ("rows", 0)]
    assert told(codes(40, 3), rows=True) == [("stalled", 0)] * 3


@pytest.mark.parametrize("channels", [1, 65, 4097])
@given(st.lists(st.booleans(), max_size=60))
def test_it_is_the_unbroken_end(channels: int, still: list[bool]) -> None:
    made = codes(len(still), channels)
    made[statistics.DELTA_NORM, [not one for one in still], channels - 1] = 0
    end = 0
    while end < len(still) and still[-1 - end]:
        end += 1
    expected = None
    if end >= 20 and 2 * (end - 1) >= len(still) - 1:
        expected = "stalled", len(still) - end
    elif end >= 20 or end == len(still) >= 2:
        expected = "unchanged", len(still) - end
    assert told(made)[-1] == expected
