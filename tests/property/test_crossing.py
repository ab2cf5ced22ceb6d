"""One pass for all thresholds says what settling and pooling say for each of them."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from tb_pastnet.core import states
from tb_pastnet.core.crossing import crossing, settling
from tb_pastnet.core.pooling import pool_states
from tb_pastnet.core.quantize import INFINITE, NAN, ZERO

UNSETTLED = (states.MOVING, states.REACTIVATED, states.FROZEN, states.PRUNED)
plain = st.sampled_from([*3 * [states.MOVING], *UNSETTLED])
marks = st.sampled_from([0, 0, 0, states.NONFINITE, states.VIOLATED])
few_codes = st.sampled_from([ZERO, ZERO + 1, -3, -2, -1, 0, 1, 2, NAN, INFINITE])
thresholds = st.sampled_from([0.0, 1e-300, *(2 ** (code / 16) for code in range(-4, 5)), 1e300])


@st.composite
def records(draw):
    shape = draw(st.tuples(st.integers(1, 45), st.integers(1, 5)))
    told = draw(hnp.arrays(np.uint8, shape, elements=plain))
    told |= draw(hnp.arrays(np.uint8, shape, elements=marks))
    delta = draw(hnp.arrays(np.int16, shape, elements=few_codes))
    cuts = draw(st.sets(st.integers(1, shape[0]), max_size=shape[0]))
    starts = np.array([0, *sorted(cuts - {shape[0]})], np.int64)
    return told, delta, starts


def tied(*told: int):
    """One column of one channel that is quiet at each record."""
    column = np.array(told, np.uint8)[:, None]
    return column, np.full(column.shape, -1, np.int16), np.zeros(1, np.int64)


M, R, F, P = UNSETTLED


@given(records(), thresholds, st.integers(1, 5))
@example(tied(R, R, M, M, F), 1.0, 1)
@example(tied(P, P, M, M, F), 1.0, 1)
@example(tied(F, F, P, P, M), 0.0, 1)
@example(tied(M, R), 1.0, 1)
@example((np.ones((1, 1), np.uint8), np.full((1, 1), -1, np.int16), np.zeros(1, np.int64)), 1.0, 1)
@settings(max_examples=400)
def test_limits_say_what_pooled_states_say(run, threshold, patience):
    unsettled, delta, starts = run
    settled = states.settle(unsettled, delta, threshold=threshold, patience=patience)
    expected = pool_states(settled, starts) & states.STATE
    found = crossing(settling(delta, unsettled, patience), unsettled & states.STATE, starts)
    limit = states.quiet_limit(threshold)
    told = np.where(found.settled_from <= limit, np.uint8(states.SETTLED), found.between)
    told[limit < found.moving_below] = states.MOVING
    np.testing.assert_array_equal(told, expected)
    assert (found.moving_below <= found.settled_from).all()


@pytest.mark.parametrize("size", [1, 2, 3, 7, 8, 31, 32, 33, 100])
def test_a_column_of_any_number_of_records_has_its_median(size):
    rng = np.random.default_rng(size)
    delta = rng.integers(-500, 0, (size, 20)).astype(np.int16)
    moving = np.full(delta.shape, states.MOVING, np.uint8)
    found = crossing(settling(delta, moving, 1), moving, np.zeros(1, np.int64))
    ranked = np.sort(delta + 1, axis=0)
    expected = np.clip(delta[-1] + 1, ranked[(size - 1) // 2], ranked[size // 2])
    assert (found.moving_below[0] == expected).all()
