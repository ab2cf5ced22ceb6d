"""Trainable channels that stand still, beside a plain reading of the definition."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from hypothesis import given
from hypothesis import strategies as st

from tb_pastnet.core import statistics
from tb_pastnet.core.channel_states import FROZEN, MOVING, PRUNED, STALLED, VIOLATED, stalled
from tb_pastnet.core.quantize import ZERO
from tb_pastnet.core.statistics import STATISTICS


def codes(records: int, channels: int = 1) -> npt.NDArray[np.int16]:
    """Channels that stand still, and no mask."""
    made = np.zeros((len(STATISTICS), records, channels), np.int16)
    made[[statistics.DELTA_NORM, statistics.NONFINITE]] = ZERO
    return made


def moving(records: int, channels: int = 1) -> npt.NDArray[np.uint8]:
    return np.full((records, channels), MOVING, np.uint8)


def since(made: npt.NDArray[np.int16], state: npt.NDArray[np.uint8]) -> list[int]:
    """The record since which each channel is stalled; -1 if it isn't."""
    flags = stalled(made, state)
    assert not len(flags) or not (flags[:-1] & ~flags[1:]).any()  # up to the newest
    return [int(own.argmax()) if own.any() else -1 for own in flags.T]


def test_it_takes_twenty_records() -> None:
    assert STALLED == 20
    assert since(codes(19), moving(19)) == [-1]
    assert since(codes(20), moving(20)) == [0]
    assert since(codes(0), moving(0)) == [-1]
    assert since(codes(25, 0), moving(25, 0)) == []


def test_one_record_of_movement_begins_anew() -> None:
    made = codes(41)
    made[statistics.DELTA_NORM, 20] = -500
    assert since(made, moving(41)) == [21]
    made[statistics.DELTA_NORM, 21] = -500
    assert since(made, moving(41)) == [-1]


def test_what_a_mask_holds_in_part_and_what_is_pruned_or_broken_is_not_meant_to_train() -> None:
    made = codes(30, 5)
    made[statistics.KEPT, 12, 0] = -1
    made[statistics.TRAINABLE, 12, 1] = ZERO
    made[statistics.NONFINITE, 12, 2] = 0
    state = moving(30, 5)
    state[:, 3] = PRUNED
    assert since(made, state) == [-1, -1, -1, -1, 0]


def test_marks_do_not_matter() -> None:
    assert since(codes(20), moving(20) | np.uint8(VIOLATED)) == [0]
    assert since(codes(20), np.full((20, 1), FROZEN, np.uint8)) == [0]


@given(st.lists(st.booleans(), max_size=60))
def test_it_is_the_unbroken_end(still: list[bool]) -> None:
    made = codes(len(still))
    made[statistics.DELTA_NORM, [not one for one in still], 0] = 0
    end = 0
    while end < len(still) and still[-1 - end]:
        end += 1
    expected = len(still) - end if end >= 20 else -1
    assert since(made, moving(len(still))) == [expected]
