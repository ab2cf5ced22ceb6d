"""Properties of the pure code, over inputs that nobody would write down."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from tb_pastnet.core import channel_states, names, quantize, statistics, thinning
from tb_pastnet.core.account import settle
from tb_pastnet.core.axes import channel_axis, explicit_axis
from tb_pastnet.core.lineage import supersede
from tb_pastnet.core.quantize import quantize_shares
from tb_pastnet.errors import UnreadableRecord
from tb_pastnet.format import varint
from tb_pastnet.format.block import Block, decode_block, encode_block
from tb_pastnet.format.timeline import Timeline, decode_timeline, encode_timeline
from tests.all_states import all_states

any_codes = hnp.arrays(
    np.int16, st.tuples(st.just(len(statistics.STATISTICS)), st.integers(1, 6), st.integers(1, 9))
)
positive = st.floats(min_value=5e-324, allow_infinity=False, allow_nan=False)
counts = st.integers(0, 1000)


def increasing(count: int):
    gaps = st.lists(st.integers(1, 1 << 40), min_size=count, max_size=count)
    return gaps.map(lambda values: np.cumsum(np.array(values, np.int64)))


@st.composite
def blocks(draw):
    codes = draw(any_codes)
    steps = draw(increasing(codes.shape[1]))
    lags = draw(hnp.arrays(np.int64, len(steps), elements=st.integers(-5, 1 << 40)))
    return Block(draw(increasing(len(steps))), steps, steps - lags, codes)


@given(blocks(), st.text(max_size=20), st.integers(0, 2**32 - 1))
def test_blocks_come_back(block, tag, lineage):
    message = encode_block(block, tag=tag, lineage=lineage)
    back = decode_block(message, tag=tag, step=int(block.steps[-1]), lineage=lineage)
    for name in ("sequence", "steps", "past_steps", "codes"):
        np.testing.assert_array_equal(getattr(back, name), getattr(block, name))


@given(blocks(), st.data())
def test_a_damaged_block_is_never_believed(block, data):
    message = bytearray(encode_block(block, tag="t", lineage=1))
    at = data.draw(st.integers(0, 8 * len(message) - 1))
    message[at // 8] ^= 1 << at % 8
    with pytest.raises(UnreadableRecord):
        decode_block(bytes(message), tag="t", step=int(block.steps[-1]), lineage=1)


@given(increasing(4), hnp.arrays(np.float64, (3, 4)), counts, counts, st.booleans())
def test_timelines_come_back(steps, rates, offered, dropped, closed):
    account = offered, 1, dropped, closed, {"é": 2}
    value = Timeline(np.arange(4), steps, np.arange(4.0), rates[0], *account, rates[1:])
    place = {"tag": "timeline", "step": int(steps[-1]), "lineage": 9}
    back = decode_timeline(encode_timeline(value, **place), **place)
    np.testing.assert_array_equal(back.steps, steps)
    np.testing.assert_array_equal(back.learning_rates, rates[0])
    np.testing.assert_array_equal(back.group_rates, rates[1:])
    assert (back.offered, back.dropped, back.closed) == (offered, dropped, closed)


@given(st.lists(st.integers(-(2**60), 2**60)))
def test_signed_numbers_come_back(numbers):
    reader = varint.Reader(varint.encode_signed(numbers))
    assert reader.signed_array(len(numbers)).tolist() == numbers
    reader.end()


@given(positive, positive)
@example(5e-324, 1.7976931348623157e308)
def test_codes_keep_order_and_precision(a, b):
    codes = quantize.quantize([a, b])
    back = quantize.dequantize(codes)
    assert (back > 0).all()
    assert np.isfinite(back).all()
    if a <= b:
        assert codes[0] <= codes[1]
    # At the ends of the range of doubles a value is only kept from becoming zero or infinite.
    normal = (np.array([a, b]) > 1e-300) & (np.array([a, b]) < 1e307)
    assert (np.abs(back / [a, b] - 1)[normal] <= 0.022).all()


@given(st.integers(0, 49_152), st.integers(49_152, 2**40))
@example(49_152, 49_153)
def test_counts_are_exact_or_nearly(few, many):
    codes = quantize.quantize_counts([few, many, np.nan, np.inf])
    back = quantize.dequantize_counts(codes)
    assert back[0] == few
    assert abs(back[1] / many - 1) <= 0.0007
    assert np.isnan(back[2])
    assert codes[0] <= codes[1] <= codes[3]


@given(st.floats(0, 1))
def test_shares_stay_inside(share):
    back = float(quantize.dequantize(quantize_shares(share)))
    assert (back == 0) == (share == 0)
    assert (back == 1) == (share == 1)
    assert 0 <= back <= 1


weights = st.floats(-(2.0**100), 2.0**100, width=32)


@given(
    hnp.arrays(np.float32, (3, 4), elements=weights),
    hnp.arrays(np.float32, (3, 4), elements=weights),
)
def test_a_delta_is_zero_exactly_where_nothing_changed(current, past):
    axis = explicit_axis(-1, (3, 4), "w")
    found = statistics.quantize_statistics(statistics.channel_statistics(current, past, axis))
    same = (current == past).all(axis=0)
    for row in (statistics.DELTA_NORM, statistics.DELTA_MAX, statistics.CHANGED):
        np.testing.assert_array_equal(found[row] == quantize.ZERO, same)


@given(
    hnp.array_shapes(min_dims=0, max_dims=4, max_side=4),
    st.sampled_from(["Dense", "LSTMCell", "X"]),
)
def test_an_axis_splits_every_element_into_one_channel(shape, layer):
    axis = channel_axis([layer], "kernel", shape)
    split = axis.split(np.arange(int(np.prod(shape))).reshape(shape))
    assert split.shape == (axis.channels, axis.elements)
    assert sorted(split.ravel()) == list(range(split.size))


@given(any_codes, st.floats(1e-9, 1), st.integers(1, 7))
def test_every_channel_has_one_state(codes, threshold, patience):
    steps = np.arange(codes.shape[1])
    seen = channel_states.seen(codes)
    found = all_states(
        codes, steps, steps - 1, measured=seen, threshold=threshold, patience=patience
    )
    plain = found & channel_states.STATE
    assert not (plain == channel_states.FOLLOWING).any()
    without_past = codes[statistics.PAST_NORM] == quantize.NAN
    assert without_past[plain == channel_states.NO_DATA].all()
    held = plain >= channel_states.FROZEN
    assert held[(found & channel_states.VIOLATED) != 0].all()


@given(increasing(30), st.integers(1, 40))
def test_columns_cover_every_record_once(steps, most):
    starts = thinning.columns(steps, most)
    assert starts[0] == 0
    assert len(starts) <= most
    assert (np.diff(starts) > 0).all()


@pytest.mark.promise("supersession")
@given(st.lists(st.lists(counts, unique=True).map(sorted), max_size=5))
def test_after_superseding_every_step_stands_at_most_once(entries):
    lineages = [np.array(steps, np.int64) for steps in entries]
    standing = [
        step
        for steps, keep in zip(lineages, supersede(lineages, [None] * len(lineages)), strict=True)
        for step in steps[keep].tolist()
    ]
    assert len(standing) == len(set(standing))
    assert not entries or set(entries[-1]) <= set(standing)


@given(counts, counts, counts, counts, counts, counts)
def test_accounts_balance(offered, shown, superseded, thinned, dropped, damaged):
    account = settle(
        offered=offered,
        shown=shown,
        superseded=superseded,
        thinned=thinned,
        dropped=dropped,
        damaged=damaged,
    )
    parts = account.shown + account.superseded + account.thinned + account.dropped
    assert account.offered == parts + account.unreadable
    assert account.offered >= offered


layer_names = st.sampled_from(["dense", "dense_1", "dense_12", "head", "lstm_3", "x"])


@given(st.lists(st.tuples(st.sampled_from(["Dense", "LSTM", "X"]), layer_names)))
def test_names_are_unique_and_given_once(siblings):
    found = names.renumber(siblings)
    assert len(set(found)) == len(found) == len(siblings)
    again = [(kind, name) for (kind, _), name in zip(siblings, found, strict=True)]
    assert names.renumber(again) == found
