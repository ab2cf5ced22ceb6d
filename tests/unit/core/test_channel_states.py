"""States and their precedence, on series written down by hand."""

import numpy as np
import pytest

from tb_pastnet.core import statistics as s
from tb_pastnet.core.channel_states import (
    FROZEN,
    MOVING,
    NONFINITE,
    PRUNED,
    QUIET,
    REACTIVATED,
    STATE,
    VIOLATED,
    relative_delta,
    seen,
)
from tb_pastnet.core.quantize import INFINITE, NAN, ZERO, quantize
from tests.all_states import all_states


def series(records, **rows):
    """One channel of norm 1 that moves by 1 % a record, with the given rows instead."""
    codes = np.full((len(s.STATISTICS), records, 1), ZERO, np.int16)
    codes[[s.NORM, s.PAST_NORM, s.CHANGED, s.KEPT, s.TRAINABLE]] = 0
    codes[[s.DELTA_NORM, s.DELTA_MAX]] = quantize(0.01)
    for name, values in rows.items():
        codes[s.STATISTICS.index(name), :, 0] = quantize(values)
    return codes


def states(codes, *, past=None, kernel=True, **options):
    steps = 10 * np.arange(1, codes.shape[1] + 1)
    past_steps = steps - 1 if past is None else np.asarray(past)
    measured = seen(codes) if kernel else None
    return all_states(codes, steps, past_steps, measured=measured, **options)[:, 0]


def still(records):
    return {"delta_norm": np.zeros(records), "changed": np.zeros(records)}


def test_a_channel_that_changes_moves():
    assert states(series(7)).tolist() == [MOVING] * 7


def test_five_records_below_the_threshold_make_it_quiet():
    delta = [0.01] + [1e-5] * 6 + [0.01, 1e-5]
    expected = [MOVING] * 5 + [QUIET] * 2 + [MOVING] * 2
    assert states(series(9, delta_norm=delta)).tolist() == expected


def test_four_quiet_records_dont():
    delta = [0.01] + [1e-5] * 4 + [2e-4] + [1e-5] * 4
    assert states(series(10, delta_norm=delta)).tolist() == [MOVING] * 10


def test_a_few_restless_records_leave_it_quiet():
    quiet, restless = 1e-5, 2e-4
    delta = [quiet] * 5 + [restless] * 4 + [quiet] + [restless] * 4 + [quiet] * 2
    expected = [MOVING] * 4 + [QUIET] * 12
    assert states(series(16, delta_norm=delta)).tolist() == expected


def test_five_restless_records_in_a_row_end_it():
    delta = [1e-5] * 5 + [2e-4] * 7 + [1e-5] * 6
    expected = [MOVING] * 4 + [QUIET] * 5 + [MOVING] * 7 + [QUIET] * 2
    assert states(series(18, delta_norm=delta)).tolist() == expected


def test_one_record_of_ten_times_the_threshold_ends_it():
    for size, state in ((9e-4, QUIET), (11e-4, MOVING), (np.inf, MOVING)):
        found = states(series(7, delta_norm=[1e-5] * 5 + [size, 1e-5]))
        assert found.tolist() == [MOVING] * 4 + [QUIET, state, state]


def test_a_channel_that_never_moved_is_quiet_from_the_first_record_on():
    assert states(series(6, **still(6))).tolist() == [QUIET] * 6
    late = [0, 0, 2e-4, 0, 0]
    assert states(series(5, delta_norm=late)).tolist() == [QUIET] * 5
    moved = [0, 0, 2e-3, 0, 0]
    assert states(series(5, delta_norm=moved)).tolist() == [QUIET] * 2 + [MOVING] * 3
    first = [1e-9, 0, 0, 0, 0]
    assert states(series(5, delta_norm=first)).tolist() == [MOVING] * 4 + [QUIET]


def test_a_hold_and_nan_end_it():
    codes = series(8, trainable=[1] * 3 + [0] + [1] * 4, **still(8))
    assert states(codes).tolist() == [QUIET] * 3 + [FROZEN] + [REACTIVATED] * 4
    codes = series(9, nonfinite=[0] * 2 + [1] + [0] * 6, **still(9))
    expected = [QUIET] * 2 + [NONFINITE] + [REACTIVATED] * 5 + [QUIET]
    assert states(codes).tolist() == expected


def test_the_threshold_is_the_viewers():
    codes = series(6)
    assert states(codes, threshold=0.02).tolist() == [MOVING] * 4 + [QUIET] * 2
    assert states(codes, threshold=0.02, patience=1).tolist() == [QUIET] * 6
    assert states(series(6, **still(6)), threshold=0).tolist() == [MOVING] * 6


def test_a_delta_at_the_threshold_is_not_under_it():
    codes = series(1, delta_norm=[2.0**-10])
    assert states(codes, threshold=2.0**-10, patience=1).tolist() == [MOVING]
    assert states(codes, threshold=1.01 * 2.0**-10, patience=1).tolist() == [QUIET]


def test_released_channels_are_reactivated_for_five_records():
    trainable = [1, 0, 0] + [1] * 7
    codes = series(10, trainable=trainable, delta_norm=[0.01, 0, 0] + [0.01] * 7)
    codes[s.CHANGED, 1:3] = ZERO
    expected = [MOVING] + [FROZEN] * 2 + [REACTIVATED] * 5 + [MOVING] * 2
    assert states(codes).tolist() == expected


def test_reactivated_comes_before_quiet():
    codes = series(8, trainable=[0] + [1] * 7, **still(8))
    assert states(codes).tolist() == [FROZEN] + [REACTIVATED] * 5 + [QUIET] * 2


def test_pruned_comes_before_frozen():
    codes = series(2, kept=[0, 0], trainable=[0, 0], **still(2))
    assert states(codes).tolist() == [PRUNED] * 2


def test_partly_held_channels_still_move():
    assert states(series(3, kept=[0.5] * 3, trainable=[0.01] * 3)).tolist() == [MOVING] * 3


def test_zeros_are_measured_as_pruned_for_kernels_only():
    zeros = {"norm": [1] + [0] * 6, "past_norm": [1, 1] + [0] * 5}
    delta = {"delta_norm": [0.01, 1] + [0] * 5, "changed": [1, 1] + [0] * 5}
    codes = series(7, **zeros, **delta)
    assert states(codes).tolist() == [MOVING] + [PRUNED] * 6
    assert states(codes, kernel=False).tolist() == [MOVING] * 6 + [QUIET]


def test_a_channel_that_is_zero_since_the_first_record_isnt_pruned():
    zeros = {"norm": [0] * 4 + [1, 0, 0], "past_norm": [0] * 5 + [1, 0]}
    delta = {"delta_norm": [0] * 4 + [1, 1, 0], "changed": [0] * 4 + [1, 1, 0]}
    codes = series(7, **zeros, **delta)
    # Once it grew, it may be.
    expected = [QUIET] * 4 + [MOVING] + [PRUNED] * 2
    assert states(codes).tolist() == expected
    both = np.concatenate([codes, series(7)], axis=2)  # what the other channels hold is no matter
    assert states(both).tolist() == expected


def test_a_channel_was_seen_once_it_held_something():
    codes = np.concatenate([series(4, norm=[0] * 4, past_norm=[0] * 4)] * 2, axis=2)
    assert not seen(codes).any()
    codes[s.NORM, 2, 1] = 0
    codes[s.PAST_NORM, 1, 0] = 0
    assert seen(codes)[:, 0].tolist() == [False, True, True, True]
    assert seen(codes)[:, 1].tolist() == [False, False, True, True]
    assert seen(codes[:, :, :0]).shape == (4, 0)


def test_a_channel_that_has_just_become_zero_is_pruned_if_the_past_wasnt():
    codes = series(2, norm=[0, 0], past_norm=[1, 0], delta_norm=[1, 0], changed=[1, 0])
    assert states(codes).tolist() == [PRUNED, PRUNED]
    codes = series(3, norm=[0] * 3, past_norm=[1] * 3)  # compared with the initial weights
    assert states(codes).tolist() == [PRUNED] * 3


def test_growing_from_zero_is_moving_at_the_top_of_the_scale():
    codes = series(1, past_norm=[0])
    assert relative_delta(codes)[0, 0] == INFINITE
    assert states(codes).tolist() == [MOVING]
    assert relative_delta(series(1, norm=[0], past_norm=[0], delta_norm=[0]))[0, 0] == ZERO


def test_nan_comes_before_all_other_states():
    held = {"kept": [1, 1, 0, 0], "trainable": [1, 0, 0, 0]}
    codes = series(4, nonfinite=[3] * 4, **held, **still(4))
    assert states(codes).tolist() == [NONFINITE] * 4
    assert states(codes, follows=True).tolist() == [NONFINITE] * 4
    codes[s.CHANGED] = 0
    assert states(codes)[3] == NONFINITE | VIOLATED


def test_nan_has_no_relative_delta_and_no_norm_of_its_own():
    nothing = {"nonfinite": [3] * 2, "norm": [0] * 2, **still(2)}
    codes = series(2, past_norm=[1, 0], **nothing)
    assert relative_delta(codes)[:, 0].tolist() == [NAN, NAN]
    for row, missing in {
        s.NORM: [True, True],
        s.PAST_NORM: [False, True],
        s.DELTA_NORM: [True, True],
        s.DELTA_MAX: [True, True],
        s.CHANGED: [False, False],
        s.NONFINITE: [False, False],
    }.items():
        assert np.isnan(s.dequantize_statistic(row, codes))[:, 0].tolist() == missing
    some = series(1, nonfinite=[3])  # beside finite elements
    assert relative_delta(some).tolist() == [[NAN]]
    assert s.dequantize_statistic(s.NORM, some).tolist() == [[1]]


def test_a_past_of_nan_has_no_relative_delta():
    codes = series(3, past_norm=[0, 0, 0], norm=[1, 0, 1], delta_norm=[0, 0, 1])
    assert relative_delta(codes)[:, 0].tolist() == [NAN, ZERO, INFINITE]
    past = s.dequantize_statistic(s.PAST_NORM, codes)[:, 0]
    np.testing.assert_array_equal(past, [np.nan, 0, 0])


def test_a_held_channel_that_changes_is_violated():
    codes = series(4, trainable=[0] * 4)
    # The first record can't be judged: nobody knows what was held at its past value.
    assert states(codes).tolist() == [FROZEN] + [FROZEN | VIOLATED] * 3
    assert (states(codes) & STATE).tolist() == [FROZEN] * 4
    codes = series(4, kept=[0] * 4, trainable=[0] * 4)
    assert states(codes)[1:].tolist() == [PRUNED | VIOLATED] * 3


def test_where_the_writer_audits_the_records_mark_nothing():
    codes = series(4, kept=[0] * 4, trainable=[0] * 4)
    assert states(codes, audited=True).tolist() == [PRUNED] * 4


def test_it_is_no_violation_to_differ_from_a_time_before_the_hold():
    codes = series(5, trainable=[1, 1, 0, 0, 0])
    initial = states(codes, past=[0] * 5)
    assert not (initial & VIOLATED).any()
    at_last_record = states(codes, past=[0, 10, 20, 30, 40])
    assert ((at_last_record & VIOLATED) != 0).tolist() == [False, False, False, True, True]


def test_statistics_of_a_held_layer_are_not_held():
    assert not (states(series(4)) & VIOLATED).any()


@pytest.mark.parametrize("shape", [(0, 3), (1, 3), (3, 0)])
def test_few_records_or_channels(shape):
    codes = np.zeros((len(s.STATISTICS), *shape), np.int16)
    steps = np.arange(shape[0])
    assert all_states(codes, steps, steps, measured=seen(codes)).shape == shape


def test_statistics_that_were_not_recorded_mark_nothing():
    codes = series(6, trainable=[0] * 6, **still(6))
    codes[s.CHANGED] = 0
    assert states(codes).tolist() == [FROZEN] + [FROZEN | VIOLATED] * 5
    for row in (s.CHANGED, s.NONFINITE, s.KEPT):
        codes[row] = NAN
    assert states(codes).tolist() == [FROZEN] * 6
    codes[s.TRAINABLE] = NAN
    assert set(states(codes)) <= {MOVING, QUIET}
