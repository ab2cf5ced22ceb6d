"""A tally says at every threshold what counting the pooled records says."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from tb_pastnet.core import pooling, states
from tb_pastnet.core.quantize import INFINITE, NAN, ZERO, dequantize
from tb_pastnet.serve.views.tally import make_tally

UNSETTLED = (states.MOVING, states.REACTIVATED, states.FROZEN, states.PRUNED)
plain = st.sampled_from([*4 * [states.MOVING], *UNSETTLED])
marks = st.sampled_from([0, 0, 0, states.NONFINITE, states.VIOLATED])
some_codes = st.sampled_from([ZERO, -300, -213, -40, -3, -2, -1, 0, 1, NAN, INFINITE])
thresholds = st.one_of(
    st.sampled_from([0.0, 1e-300, 1e-4, 1.0, 1e300]), st.floats(1e-9, 2.0, allow_nan=False)
)


@st.composite
def records(draw):
    shape = draw(st.tuples(st.integers(0, 40), st.integers(0, 6)))
    told = draw(hnp.arrays(np.uint8, shape, elements=plain))
    told |= draw(hnp.arrays(np.uint8, shape, elements=marks))
    delta = draw(hnp.arrays(np.int16, shape, elements=some_codes))
    steps = np.cumsum(draw(hnp.arrays(np.int64, shape[0], elements=st.integers(1, 9))))
    edges = np.array(sorted(draw(st.sets(st.integers(-5, 200), max_size=12))), np.int64)
    return told, delta, steps, edges


def directly(told, delta, threshold):
    """Counts, violated, nonfinite and mean of one column, from its records settled and pooled."""
    pooled = pooling.pool_states(told, np.zeros(1, np.int64))[0]
    state = pooled & states.STATE
    counts = np.bincount(state, minlength=len(states.NAMES))
    values = dequantize(delta)
    known = ~np.isnan(values).all(axis=0) & (state == states.MOVING)
    largest = np.minimum(np.nanmax(values[:, known], axis=0), 1) if known.any() else []
    mean = np.float32(np.mean(largest)) if len(largest) else np.nan
    violated, nonfinite = (
        np.count_nonzero(pooled & mark) for mark in (states.VIOLATED, states.NONFINITE)
    )
    return counts, violated, nonfinite, mean


@given(records(), thresholds, st.integers(0, 40), st.integers(0, 40))
@settings(max_examples=400)
def test_a_tally_counts_what_the_records_say(run, threshold, first, last):
    told, delta, steps, edges = run
    row = make_tally(told, delta, steps, edges, slice(first, last)).row(threshold)
    # What has settled is told by all records, also by those that aren't counted.
    settled = states.settle(told, delta, threshold=threshold)
    column = np.maximum(np.searchsorted(edges, steps, side="right") - 1, 0)
    counted = (np.arange(len(steps)) >= first) & (np.arange(len(steps)) < last)
    for at in range(len(edges)):
        here = (column == at) & counted
        if not here.any():
            expected = [told.shape[1], 0, 0, 0, 0, 0], 0, 0, np.nan
        else:
            expected = directly(settled[here], delta[here], threshold)
        np.testing.assert_array_equal(row.counts[at], expected[0])
        assert (row.violated[at], row.nonfinite[at]) == expected[1:3]
        np.testing.assert_allclose(row.mean_delta[at], expected[3], rtol=1e-6)
