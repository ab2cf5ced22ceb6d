"""A tally says at every threshold what counting the states of the records says."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from tb_pastnet.core import channel_states
from tb_pastnet.core.quantize import INFINITE, NAN, ZERO
from tb_pastnet.reader.tally import make_tally
from tests.examples import examples
from tests.slow_states import slow_quiet

NOT_TRAINED = (
    channel_states.MOVING,
    channel_states.REACTIVATED,
    channel_states.FROZEN,
    channel_states.PRUNED,
    channel_states.NONFINITE,
)
TRAINED = (channel_states.MOVING, channel_states.REACTIVATED)
plain = st.sampled_from([*9 * [channel_states.MOVING], *NOT_TRAINED])
marks = st.sampled_from([*6 * [0], channel_states.VIOLATED])
some_codes = st.sampled_from(
    [*3 * [ZERO], *3 * [-300], -213, -212, -160, -159, -40, -3, -2, -1, 0, 1, NAN, INFINITE]
)
thresholds = st.one_of(
    st.sampled_from([0.0, 1e-300, 1e-4, 1.0, 1e300]), st.floats(1e-9, 2.0, allow_nan=False)
)


@st.composite
def records(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray]:
    shape = draw(st.tuples(st.integers(0, 40), st.integers(0, 6)))
    told = draw(hnp.arrays(np.uint8, shape, elements=plain))
    told |= draw(hnp.arrays(np.uint8, shape, elements=marks))
    return told, draw(hnp.arrays(np.int16, shape, elements=some_codes))


def directly(told: np.ndarray, delta: np.ndarray, threshold: float) -> tuple[np.ndarray, ...]:
    """Counts, violated and mean of each record, channel by channel."""
    records, channels = told.shape
    counts = np.zeros((records, len(channel_states.NAMES)), int)
    moved: list[list[float]] = [[] for _ in range(records)]
    for channel in range(channels):
        state = (told[:, channel] & channel_states.STATE).tolist()
        codes = delta[:, channel].tolist()
        trained = [one in TRAINED and code != NAN for one, code in zip(state, codes, strict=True)]
        quiet = slow_quiet(codes, trained, threshold, 5)
        for t in range(records):
            if state[t] == channel_states.MOVING and quiet[t]:
                counts[t, channel_states.QUIET] += 1
                continue
            counts[t, state[t]] += 1
            if state[t] == channel_states.MOVING and codes[t] != NAN:
                moved[t].append(0.0 if codes[t] == ZERO else min(2.0 ** (min(codes[t], 0) / 16), 1))
    mean = np.array([np.mean(one) if one else np.nan for one in moved])
    violated = np.array([np.count_nonzero(row & channel_states.VIOLATED) for row in told])
    return counts, violated, mean


@given(records(), thresholds)
@examples(8)
def test_a_tally_counts_what_the_records_say(run, threshold):
    told, delta = run
    row = make_tally(told, delta).counts(threshold).at(0)
    counts, violated, mean = directly(told, delta, threshold)
    np.testing.assert_array_equal(row.counts, counts)
    np.testing.assert_array_equal(row.violated, violated)
    np.testing.assert_allclose(row.mean_delta, mean, rtol=1e-6)
