"""States of channels are those of plain loops, and depend on nothing that comes later."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tb_pastnet.core import channel_states, overlap
from tb_pastnet.core import statistics as s
from tb_pastnet.core.account import Account
from tb_pastnet.core.axes import explicit_axis
from tb_pastnet.core.channel_states import LatestStates
from tb_pastnet.core.quantize import INFINITE, NAN, ZERO
from tb_pastnet.reader.notes import Notes
from tb_pastnet.reader.overlap_sets import make_channel_sets
from tb_pastnet.reader.series import RecordSeries
from tb_pastnet.reader.state_series import make_state_series
from tests import event_files as files
from tests.all_states import all_states
from tests.examples import examples
from tests.slow_states import first_loud, slow_states

THRESHOLDS = (1e-4, 2.0**-10, 0.03, 1.0)
NEAR = [first_loud(threshold) + more for threshold in THRESHOLDS for more in (-1, 0, 9, 52, 53, 60)]
deltas = st.sampled_from([*3 * [ZERO], *NEAR, -600, 200, NAN, INFINITE])
thresholds = st.sampled_from(THRESHOLDS) | st.floats(1e-9, 10.0) | st.just(0.0)
patience = st.integers(1, 7)
kinds = st.sampled_from(
    [
        *12 * ["trains"],
        "partly",
        "frozen",
        "leaks",
        "pruned",
        "zero",
        "becomes zero",
        "grows",
        "nan",
        "zero nan",
    ]
)
stretches = st.lists(st.tuples(kinds, deltas, st.integers(1, 7)), max_size=9)


def column(kind: str, delta: int) -> list[int]:
    """A record of one channel, in the order of the statistics."""
    made = dict.fromkeys(s.STATISTICS, 0) | {
        "delta_norm": delta,
        "delta_max": delta,
        "changed": ZERO if delta == ZERO else -5,
        "nonfinite": ZERO,
    }
    still = {"delta_norm": ZERO, "delta_max": ZERO, "changed": ZERO}
    made |= {
        "trains": {},
        "partly": {"kept": -16, "trainable": -40},
        "frozen": {"trainable": ZERO, **still},
        "leaks": {"trainable": ZERO, "changed": -20},
        "pruned": {"kept": ZERO, "trainable": ZERO, "norm": ZERO, "past_norm": ZERO, **still},
        "zero": {"norm": ZERO, "past_norm": ZERO, **still},
        "becomes zero": {"norm": ZERO, "changed": 0},
        "grows": {"past_norm": ZERO},
        "nan": {"nonfinite": 16},
        "zero nan": {"nonfinite": 16, "norm": ZERO, "past_norm": ZERO, **still},
    }[kind]
    return [made[name] for name in s.STATISTICS]


@st.composite
def records(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Codes in stretches, steps, and the steps of past values."""
    channels = [
        [column(kind, delta) for kind, delta, count in part for _ in range(count)]
        for part in draw(st.lists(stretches, min_size=1, max_size=3))
    ]
    count = min(map(len, channels))
    codes = np.array([one[:count] for one in channels], np.int16).reshape(
        len(channels), count, len(s.STATISTICS)
    )
    steps = np.cumsum(draw(st.lists(st.integers(1, 9), min_size=count, max_size=count)))
    lag = draw(st.sampled_from([1, 5, 20]))
    return codes.transpose(2, 1, 0), steps.astype(np.int64), steps.astype(np.int64) - lag


def told(
    run: tuple[np.ndarray, np.ndarray, np.ndarray],
    threshold: float,
    *,
    records: int | None = None,
    kernel: bool = True,
    **options: int,
) -> np.ndarray:
    codes, steps, past = run[0][:, :records], run[1][:records], run[2][:records]
    measured = channel_states.seen(codes) if kernel else None
    return all_states(codes, steps, past, measured=measured, threshold=threshold, **options)


@given(records(), thresholds, patience, st.booleans(), st.booleans())
@examples(8)
def test_they_are_those_of_plain_loops(run, threshold, patience, kernel, audited):
    options = {"patience": patience, "audited": audited}
    expected = slow_states(*run, kernel=kernel, threshold=threshold, **options)
    found = told(run, threshold, kernel=kernel, **options)
    np.testing.assert_array_equal(found, expected)


@given(records(), thresholds, patience, st.data())
def test_they_are_those_of_what_was_recorded_until_then(run, threshold, patience, data):
    whole = told(run, threshold, patience=patience)
    cut = data.draw(st.integers(0, len(whole)))
    part = told(run, threshold, patience=patience, records=cut)
    np.testing.assert_array_equal(whole[:cut], part)


@given(records(), thresholds, thresholds, patience)
def test_with_a_larger_threshold_none_is_less_quiet(run, one, other, patience):
    low, high = (
        told(run, threshold, patience=patience) & channel_states.STATE
        for threshold in sorted((one, other))
    )
    assert (high[low == channel_states.QUIET] == channel_states.QUIET).all()
    # And of all others none becomes anything else but quiet.
    changed = low != high
    assert (low[changed] == channel_states.MOVING).all()
    assert (high[changed] == channel_states.QUIET).all()


@given(st.floats(1e-9, 1.0), st.floats(0.01, 20))
def test_ten_times_the_threshold_is_told_as_precisely_as_records_are(threshold, times):
    """Beyond 10.5 times it is always out, below 9.5 times never: one code is 4.4 %."""
    if 9.5 < times < 10.5:
        return
    codes = np.zeros((len(s.STATISTICS), 6, 1), np.int16)
    codes[[s.NONFINITE, s.DELTA_NORM]] = ZERO
    codes[s.DELTA_NORM, 5] = int(np.rint(16 * np.log2(threshold * times)))
    steps = np.arange(6)
    found = all_states(codes, steps, steps - 1, measured=None, threshold=threshold)
    assert found[:, 0].tolist()[:5] == [channel_states.QUIET] * 5
    assert (found[5, 0] == channel_states.QUIET) == (times < 10)


@given(records(), st.lists(st.booleans(), min_size=3, max_size=3), thresholds, st.data())
def test_record_by_record_they_are_those_of_all_together(run, kernels, threshold, data):
    codes, steps, past = run
    channels = codes.shape[2]
    follows = data.draw(st.lists(st.booleans(), min_size=channels, max_size=channels))
    kernels = np.array(kernels[:channels])
    latest = LatestStates(np.ones(channels, np.int64), kernels, np.array(follows), threshold)
    found = [latest.add(codes[:, record])[0] for record in range(codes.shape[1])]
    for channel in range(channels):
        own = codes[:, :, channel : channel + 1]
        expected = all_states(
            own,
            steps,
            past,
            measured=channel_states.seen(own) if kernels[channel] else None,
            threshold=threshold,
            audited=True,
            follows=follows[channel],
        )
        assert [int(states[channel]) for states in found] == expected[:, 0].tolist()


@given(records(), thresholds, patience)
def test_what_follows_is_never_trained(run, threshold, patience):
    options = {"patience": patience, "threshold": threshold}
    plain = told(run, threshold, patience=patience) & channel_states.STATE
    found = all_states(*run, measured=channel_states.seen(run[0]), follows=True, **options)
    held = np.isin(plain, [channel_states.FROZEN, channel_states.PRUNED, channel_states.NONFINITE])
    expected = np.where(held, plain, channel_states.FOLLOWING)
    np.testing.assert_array_equal(found & channel_states.STATE, expected)


SIZES = (1, 7, 8, 63, 64, 65, 129, 4097)
PRUNED, BROKEN = channel_states.PRUNED, channel_states.NONFINITE


@st.composite
def weights(draw: st.DrawFn) -> np.ndarray:
    """Weights before each record and after the last, (records + 1, 3, channels).

    Some channels are zero from the beginning, or now and then, and some have NaN or infinity.
    """
    channels, count = draw(st.sampled_from(SIZES)), draw(st.integers(1, 12))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    made = rng.normal(size=(count + 1, 3, channels))
    zero = rng.random((count + 1, channels)) < rng.choice([0, 0.5, 1], channels)
    zero |= np.arange(count + 1)[:, None] < rng.integers(0, count + 2, channels)
    made.transpose(0, 2, 1)[zero] = 0
    broken = rng.random(made.shape) < rng.choice([0, 0, 0, 0.1, 1], channels)
    made[broken] = rng.choice([np.nan, np.inf, -np.inf], int(broken.sum()))
    return made


@given(weights(), st.data())
@examples(2)
def test_what_is_pruned_or_nonfinite_is_so_in_the_weights_in_whatever_window(made, data):
    now = made[1:]
    finite = np.isfinite(made)
    broken = ~finite[1:].all(axis=1)
    held = np.logical_or.accumulate(((made != 0) & finite).any(axis=1))[1:]
    pruned = (now == 0).all(axis=1) & held
    axis = explicit_axis(-1, made.shape[1:], "w")
    each = [s.channel_statistics(*pair, axis) for pair in zip(now, made, strict=False)]
    codes = np.stack([s.quantize_statistics(statistics) for statistics in each], axis=1)
    records, channels = broken.shape
    kernel = files.variable("c/kernel", channels)

    def states(some: np.ndarray) -> np.ndarray:
        steps = np.arange(1, some.shape[1] + 1)
        clock = (steps * 1.0, steps * 1.0, steps)
        series = RecordSeries(steps, steps - 1, *clock, some, Account(), Notes())
        sets = make_channel_sets(series, kernel)
        kept = overlap.words(np.packbits(~pruned[: some.shape[1], own], axis=1))
        rows = np.searchsorted(sets.steps, steps, side="right") - 1
        np.testing.assert_array_equal(sets.kept[rows], kept)
        return make_state_series(series, kernel).states(1e-4) & channel_states.STATE

    own = slice(None)
    whole = states(codes)
    np.testing.assert_array_equal(whole == BROKEN, broken)
    np.testing.assert_array_equal(whole == PRUNED, pruned)
    delta = channel_states.relative_delta(codes)
    assert (delta[broken] == NAN).all()
    # Until a cursor, of a channel alone, and one record after the other.
    until, channel = data.draw(st.integers(1, records)), data.draw(st.integers(0, channels - 1))
    np.testing.assert_array_equal(states(codes[:, :until]), whole[:until])
    own = slice(channel, channel + 1)
    np.testing.assert_array_equal(states(codes[:, :, own]), whole[:, own])
    latest = LatestStates(np.array([channels]), np.array([True]), np.array([False]))
    one_by_one = [latest.add(codes[:, record])[0] for record in range(records)]
    np.testing.assert_array_equal(one_by_one, whole)
