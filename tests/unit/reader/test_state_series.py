from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np

from tb_pastnet.core import channel_states
from tb_pastnet.core.account import Account
from tb_pastnet.reader.layer_events import recorded_events
from tb_pastnet.reader.series import RecordSeries
from tb_pastnet.reader.state_series import make_state_series
from tests import event_files as files
from tests.slow_states import slow_states

STEPS = np.arange(1, 41)


def series(codes: np.ndarray, rates: list[float] | None = None) -> RecordSeries:
    steps = np.arange(1, codes.shape[1] + 1)
    rate = np.full(len(steps), 0.1) if rates is None else np.array(rates, float)
    writers = np.zeros(len(steps), np.int64)
    return RecordSeries(steps, steps - 1, steps * 1.0, rate, writers, codes, Account(), Counter())


def test_the_states_are_those_of_plain_loops_at_every_threshold() -> None:
    codes = files.codes(STEPS, 8)
    files.freeze(codes, slice(10, 20), slice(0, 2))
    files.prune(codes, slice(15, None), slice(2, 4))
    files.poison(codes, slice(5, 8), slice(4, 5))
    records = series(codes)
    moves = make_state_series(records, files.variable("c/kernel", 8))
    for threshold in (0.0, 1e-4, 3e-2, 0.1, 10.0):
        expected = slow_states(
            codes, records.steps, records.past_steps, kernel=True, threshold=threshold
        )
        np.testing.assert_array_equal(moves.states(threshold), expected)
    np.testing.assert_array_equal(moves.delta, channel_states.relative_delta(codes))


def test_its_size_is_that_of_its_arrays() -> None:
    codes = files.codes(STEPS, 8)
    codes[files.TRAINABLE, 10:20, :2] = channel_states.ZERO  # while they move on
    held = make_state_series(series(codes), files.variable("c/kernel", 8))
    assert len(held.marks.channels) == 2
    arrays = (*vars(held).values(), *vars(held.marks).values())
    assert held.size == sum(array.nbytes for array in arrays if isinstance(array, np.ndarray))


def test_wide_series_are_computed_in_slabs(monkeypatch) -> None:
    codes = files.codes(STEPS, 7)
    whole = make_state_series(series(codes), files.variable("c/kernel", 7))
    monkeypatch.setattr("tb_pastnet.reader.state_series._SLAB", 80)
    parts = make_state_series(series(codes), files.variable("c/kernel", 7))
    np.testing.assert_array_equal(parts.states(0.01), whole.states(0.01))
    np.testing.assert_array_equal(parts.delta, whole.delta)


def test_zeros_are_measured_as_pruned_in_kernels_alone() -> None:
    codes = files.codes(STEPS, 2)
    codes[:3, 1:, 0] = channel_states.ZERO
    for role, state in (("kernel", channel_states.PRUNED), ("bias", channel_states.QUIET)):
        moves = make_state_series(series(codes), files.variable("c/x", 2, role))
        assert moves.states(1e-4)[-1, 0] == state


def test_held_weights_that_are_pruned_by_command_violate_nothing() -> None:
    codes = files.freeze(files.codes(range(1, 11), 2), slice(None), slice(0, 1))
    codes[4, [3, 6], 0] = 0
    kernel = files.variable("c/kernel", 2)
    assert make_state_series(series(codes), kernel).marks.first_steps.tolist() == [4]
    for commanded, right in (([4], [7]), ([7], [4]), ([3, 8], [4, 7]), ([4, 7], [])):
        moves = make_state_series(series(codes), kernel, np.array(commanded))
        marked = moves.steps[(moves.before_quiet[:, 0] & channel_states.VIOLATED) != 0]
        assert marked.tolist() == right
        assert moves.marks.channels.tolist() == ([0] if right else [])
    # Where the writer has audited, its violations tell, and no record.
    assert not make_state_series(series(codes), kernel, None).marks.channels.size


def test_each_change_of_a_mask_is_an_event() -> None:
    codes = files.codes(STEPS, 4)
    files.freeze(codes, slice(10, 20), slice(0, 2))
    files.prune(codes, slice(30, None), slice(0, 3))
    assert recorded_events(series(codes)) == [
        {
            "step": step,
            "kind": "trainable",
            "text": f"{frozen} of 4 channels frozen, {pruned} pruned",
            "frozen": frozen,
            "pruned": pruned,
            "channels": 4,
        }
        for step, frozen, pruned in ((11, 2, 0), (21, 0, 0), (31, 0, 3))
    ]


def test_a_mask_below_the_level_of_channels_is_told_by_its_share() -> None:
    codes = files.codes(STEPS, 2)
    codes[7, 20:] = -16
    assert recorded_events(series(codes)) == [
        {
            "step": 21,
            "kind": "trainable",
            "text": "0 of 2 channels frozen, 0 pruned, 50 % of weights trainable",
            "frozen": 0,
            "pruned": 0,
            "channels": 2,
        }
    ]


def test_the_learning_rate_is_told_where_it_jumps() -> None:
    codes = files.codes(range(6), 1)
    found = recorded_events(series(codes, [np.nan, 0.1, 0.1, 0.01, 0.009, 0.006]))
    assert [(one["step"], one["text"]) for one in found] == [(4, "learning rate 0.1 → 0.01")]
    assert {one["kind"] for one in found} == {"learning_rate"}


def test_a_resumed_training_is_an_event() -> None:
    records = series(files.codes(range(4), 1))
    resumed = replace(records, writers=np.array([0, 0, 1, 1]))
    assert recorded_events(resumed) == [
        {"step": 3, "kind": "restart", "text": "training was resumed here"}
    ]


def test_there_are_never_too_many_events() -> None:
    codes = files.codes(range(1000), 1)
    files.freeze(codes, slice(0, None, 2), slice(None))
    assert len(recorded_events(series(codes))) == 256
