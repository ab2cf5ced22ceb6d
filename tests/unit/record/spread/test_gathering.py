"""Statistics that ranks gather are those of whole weights, also where one of them fails."""

from __future__ import annotations

import numpy as np
import pytest

from tb_pastnet.core.axes import explicit_axis
from tb_pastnet.core.statistics import VALUE_ROWS, channel_statistics
from tb_pastnet.errors import InvalidArgument
from tb_pastnet.record.spread.gathering import check_alike
from tests.ranks import CUTS, SHAPE, on_each

AXIS = explicit_axis(0, SHAPE, "w")


def values(step):
    rng = np.random.default_rng(step)
    moved = {name: rng.normal(size=SHAPE).astype(np.float32) for name in CUTS}
    for value in moved.values():
        value[3] = step // 2  # a channel that stays now and then
    return moved


def defined(now, past):
    pairs = [(values(now)[name], values(past)[name]) for name in CUTS]
    return np.concatenate([channel_statistics(*pair, AXIS)[:VALUE_ROWS] for pair in pairs], axis=1)


def train(rank, steps):
    """What rank 0 gathers at each step; None elsewhere, or where it has nothing."""
    gathered = []
    for step in steps:
        rank.give(values(step))
        rank.measures.follow(step)
        try:
            gathered.append(rank.measures.gathered()[:VALUE_ROWS])
        except RuntimeError:
            gathered.append(None)
    return gathered


def test_they_are_those_of_whole_weights():
    first, second = on_each(lambda rank: train(rank, [1, 2, 3]))
    for step, rows in enumerate(first[1:], 2):
        np.testing.assert_allclose(rows, defined(step, step - 1), rtol=1e-6)
    assert second == [None] * 3


def test_past_values_by_hand_and_steps_that_go_back():
    def action(rank):
        train(rank, [1, 2])
        rank.measures.sync()
        last = train(rank, [3, 4])[-1]
        # Back at step 3 these values are the past ones.
        return last, train(rank, [3, 5])[-1]

    (last, after), _ = on_each(action, past="epoch")
    np.testing.assert_allclose(last, defined(4, 2), rtol=1e-6)
    np.testing.assert_allclose(after, defined(5, 3), rtol=1e-6)


def test_a_rank_that_fails_leaves_its_rows_without_numbers():
    def action(rank):
        compare = rank.source.compare

        def broken(*_, **__):
            raise MemoryError("no room")

        train(rank, [1])
        if rank.rank == 1:
            rank.source.compare = broken
        (failed,) = train(rank, [2])
        rank.source.compare = compare
        return failed, train(rank, [3, 4])[-1], rank.failures.counts()

    (failed, later, notes), (_, _, own) = on_each(action)
    # The first two weights are shared; of the third rank 0 has all.
    names = np.repeat([*CUTS], SHAPE[0])
    assert np.isnan(failed[:, names == "columns"]).all()
    assert np.isnan(failed[:, names == "rows"]).sum() == 2 * VALUE_ROWS
    assert np.isfinite(failed[:, names == "whole"]).all()
    np.testing.assert_allclose(later, defined(4, 3), rtol=1e-6)
    assert notes == {"Could not measure the rows of another rank": 1}
    # The copy that it couldn't take is missing at the next step, too.
    assert own["Could not measure the rows of this rank: MemoryError: no room"] == 1


def test_ranks_that_count_otherwise_record_no_more():
    def action(rank):
        return train(rank, [1, 2 + rank.rank, 5])[1:], rank.failures.counts()

    for gathered, notes in on_each(action):
        assert gathered == [None, None]
        (text,) = notes
        assert "expected all ranks at one step, got steps 2 to 3. Call record on each" in text


def test_the_origin_is_that_of_all_ranks_and_settings_have_to_be_alike():
    first, second = on_each(lambda rank: rank.measures.agree(10))
    assert first == second
    assert len(first) == 32

    def differ(rank):
        with pytest.raises(
            InvalidArgument, match=r"Could not record on 2 ranks: .* and "
        ) as raised:
            rank.measures.agree(10 + rank.rank)
        return str(raised.value)

    first, second = on_each(differ)
    assert first == second


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ((0.1, "log", None, None), "got budget=0.1. Leave it out"),
        ((None, "stop", None, None), "got on_violation='stop'. Leave it out"),
        ((None, "log", {"w": False}, None), "Could not use trainable= or kept="),
    ],
)
def test_what_a_rank_would_decide_for_itself_is_refused(settings, text):
    check_alike(None, "log", None, None)
    with pytest.raises(InvalidArgument, match=text):
        check_alike(*settings)
