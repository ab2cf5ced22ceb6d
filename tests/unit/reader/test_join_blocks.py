from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tb_pastnet.core.quantize import NAN, ZERO
from tb_pastnet.core.statistics import KEPT, MOVED, STATISTICS, TRAINABLE
from tb_pastnet.format.block import Block, encode_block, open_block
from tb_pastnet.format.layout import ROWS
from tb_pastnet.reader.joined_blocks import (
    choose,
    concatenate,
    join_blocks,
    join_by_rows,
    restored,
)


def blocks(
    count: int, size: int = 4, channels: int = 2, changes: tuple[int, ...] = ()
) -> list[Block]:
    """Records 0 … count - 1 in blocks; the kept mask changes at some of them."""
    sequence = np.arange(count)
    codes = np.zeros((len(STATISTICS), count, channels), np.int16)
    for at in changes:
        codes[KEPT, at:, 0] = np.where(codes[KEPT, at:, 0] == ZERO, 0, ZERO)
    return [
        Block(part, part + 100, part + 99, codes[:, part])
        for part in (sequence[at : at + size] for at in range(0, count, size))
    ]


def test_what_fits_stays_whole() -> None:
    records, left_out = join_blocks(blocks(10), 2, most_cells=20)
    assert records.sequence.tolist() == list(range(10))
    assert left_out == 0


def test_no_blocks_make_no_records() -> None:
    records, left_out = join_blocks([], 3)
    assert records.codes.shape == (len(STATISTICS), 0, 3)
    assert left_out == 0


def test_too_many_records_are_thinned_evenly() -> None:
    records, left_out = join_blocks(blocks(100), 2, most_cells=20)
    assert records.sequence.tolist() == list(range(0, 100, 16))
    assert left_out == 93


def test_a_change_of_a_mask_is_never_left_out() -> None:
    records, left_out = join_blocks(blocks(100, changes=(33, 34, 71)), 2, most_cells=40)
    assert {33, 34, 71} <= set(records.sequence.tolist())
    assert len(records.sequence) + left_out == 100


@pytest.mark.parametrize("seed", range(5))
def test_what_moved_in_a_record_that_is_left_out_is_in_the_next_one(seed: int) -> None:
    moved = np.random.default_rng(seed).random((500, 3)) < 0.01
    made = blocks(500, 7, 3, changes=(33, 34, 71))
    for block in made:
        block.codes[MOVED] = np.where(moved[block.sequence], 0, ZERO)
    records, _ = join_blocks(made, 3, most_cells=120)
    begin = 0
    for row, number in enumerate(records.sequence.tolist()):
        expected = moved[begin : number + 1].any(axis=0)
        assert (records.codes[MOVED, row] == 0).tolist() == expected.tolist()
        begin = number + 1
    assert len(records.sequence) < 50


def test_masks_that_change_all_the_time_dont_burst_the_bound() -> None:
    records, left_out = join_blocks(blocks(200, changes=tuple(range(200))), 2, most_cells=40)
    assert len(records.sequence) <= 20
    assert len(records.sequence) + left_out == 200


@pytest.mark.parametrize("channels", [1, 2, 3])
def test_the_bound_is_reached(channels: int) -> None:
    records, left_out = join_blocks(blocks(8, 3, channels), channels, most_cells=8 * channels)
    assert (len(records.sequence), left_out) == (8, 0)
    records, left_out = join_blocks(blocks(8, 3, channels), channels, most_cells=8 * channels - 1)
    assert (len(records.sequence), left_out) == (4, 4)


@given(st.integers(0, 120), st.integers(1, 9), st.integers(1, 3), st.integers(1, 60))
def test_the_bound_and_the_count_hold(
    count: int, size: int, channels: int, most_cells: int
) -> None:
    records, left_out = join_blocks(blocks(count, size, channels), channels, most_cells)
    assert len(records.sequence) + left_out == count
    assert len(records.sequence) <= max(most_cells // channels, 1) or count == 0
    assert (np.diff(records.sequence) > 0).all()


def test_choosing_all_copies_nothing() -> None:
    (block,) = blocks(4)
    assert choose(block, np.ones(4, bool)) is block
    assert choose(block, np.arange(4)) is block
    assert concatenate([block], 2) is block


@pytest.mark.parametrize("which", [np.array([True, False, False, True]), np.array([0, 3])])
def test_some_records_are_chosen_by_flag_or_by_place(which: np.ndarray) -> None:
    chosen = choose(blocks(4)[0], which)
    assert chosen.steps.tolist() == [100, 103]
    assert chosen.codes.shape == (len(STATISTICS), 2, 2)


@pytest.mark.parametrize("rows", [ROWS, (KEPT, TRAINABLE, MOVED), (0, 1, KEPT)])
@pytest.mark.parametrize("seed", range(6))
def test_joined_row_by_row_they_are_the_same(seed: int, rows: tuple[int, ...]) -> None:
    rng = np.random.default_rng(seed)
    count, channels, most_cells = int(rng.integers(0, 60)), 3, int(rng.integers(1, 120))
    made = blocks(count, 7, channels, changes=tuple(rng.integers(0, 60, seed)))
    sealed = []
    for block in made:
        block.codes[:KEPT] = rng.integers(-50, 50, block.codes[:KEPT].shape)
        block.codes[MOVED] = rng.choice([0, ZERO, NAN], block.codes[MOVED].shape)
        sealed.append((encode_block(block, tag="t", lineage=1), int(block.steps[-1])))
    opened = [open_block(data, tag="t", step=step, lineage=1, rows=rows) for data, step in sealed]
    records, left_out = join_by_rows(opened, channels, most_cells)
    expected, expected_left_out = join_blocks(restored(opened), channels, most_cells)
    assert left_out == expected_left_out
    for name in ("sequence", "steps", "past_steps", "codes"):
        np.testing.assert_array_equal(getattr(records, name), getattr(expected, name))
