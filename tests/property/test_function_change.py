"""Changes of a function come back to the last bit, and nothing else is believed."""

import contextlib
import zlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from tb_pastnet.errors import UnreadableRecord
from tb_pastnet.format import limits, varint
from tb_pastnet.format.envelope import Kind, seal
from tb_pastnet.format.function_change import (
    MEASURES,
    FunctionChange,
    Input,
    Place,
    decode_function_change,
    encode_function_change,
)
from tb_pastnet.format.json_payload import pack
from tests.examples import examples

PLACE = {"tag": "t", "step": 1 << 40, "lineage": 1}
HEAD = {
    "measures": list(MEASURES),
    "inputs": [{"name": "x", "shape": [8, 4], "dtype": "float32"}],
    "places": [{"kind": "layer", "name": "dense", "elements": 16}],
    "sequence": [4, 6],
    "steps": [10, 20],
    "past_steps": [9, 19],
}

wholes = st.integers(0, limits.MAX_STEP)
steps = st.integers(-limits.MAX_STEP, limits.MAX_STEP)
words = st.text(max_size=12)
sizes = st.integers(0, 1 << 11)  # four of them make at most as many elements as a reader accepts
inputs = st.builds(Input, words, st.lists(sizes, max_size=4).map(tuple), words, words)
places = st.builds(Place, words, words, wholes)


@st.composite
def changes(draw):
    where = draw(
        st.lists(places, min_size=1, max_size=4, unique_by=lambda one: (one.kind, one.name))
    )
    count = draw(st.integers(1, 5))
    numbers, at = (
        np.array(sorted(draw(st.sets(some, min_size=count, max_size=count))), np.int64)
        for some in (wholes, steps)
    )
    past = draw(st.lists(steps, min_size=count, max_size=count))
    values = draw(hnp.arrays(np.float32, (4, count, len(where)), elements=st.floats(width=32)))
    probe = tuple(draw(st.lists(inputs, max_size=3)))
    return FunctionChange(probe, tuple(where), numbers, at, np.array(past, np.int64), values)


@given(changes())
def test_changes_come_back(change):
    back = decode_function_change(encode_function_change(change, **PLACE), **PLACE)
    assert (back.inputs, back.places) == (change.inputs, change.places)
    for name in ("sequence", "steps", "past_steps"):
        np.testing.assert_array_equal(getattr(back, name), getattr(change, name))
    np.testing.assert_array_equal(back.values, change.values)
    assert back.values.dtype == np.float32


@given(changes(), st.data())
def test_a_damaged_message_is_never_believed(change, data):
    message = bytearray(encode_function_change(change, **PLACE))
    at = data.draw(st.integers(0, 8 * len(message) - 1))
    message[at // 8] ^= 1 << at % 8
    with pytest.raises(UnreadableRecord):
        decode_function_change(bytes(message), **PLACE)


@given(st.binary(max_size=200), st.booleans(), st.booleans())
@examples(10)
def test_any_bytes_are_read_or_refused(payload, ours, headed):
    if headed:
        head = pack(HEAD)
        payload = varint.encode([len(head)]) + head + payload
    message = seal(payload, Kind.FUNCTION, **PLACE) if ours else payload
    with contextlib.suppress(UnreadableRecord):
        decode_function_change(message, **PLACE)


@given(changes(), st.binary(min_size=1, max_size=8), st.data())
@examples(2)
def test_a_mutated_message_that_is_sealed_again_is_read_or_refused(change, piece, data):
    payload = encode_function_change(change, **PLACE)[12:]
    at = data.draw(st.integers(0, len(payload)))
    end = data.draw(st.integers(at, len(payload)))
    message = seal(payload[:at] + piece + payload[end:], Kind.FUNCTION, **PLACE)
    with contextlib.suppress(UnreadableRecord):
        back = decode_function_change(message, **PLACE)
        assert back.values.shape == (len(MEASURES), len(back.steps), len(back.places))


leaves = st.none() | st.booleans() | st.integers() | st.floats() | words
anything = st.recursive(
    leaves, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3)
)


@given(st.sampled_from(list(HEAD)), anything, st.data())
@examples(10)
def test_any_json_is_read_or_refused(key, value, data):
    heads = [{**HEAD, key: value}, {**HEAD, key: [value]}]
    if key in ("inputs", "places"):
        (entry,) = HEAD[key]
        heads.append({**HEAD, key: [{**entry, data.draw(st.sampled_from(list(entry))): value}]})
    for head in heads:
        packed = pack(head)
        payload = varint.encode([len(packed)]) + packed + zlib.compress(bytes(4 * 4 * 2))
        with contextlib.suppress(UnreadableRecord):
            back = decode_function_change(seal(payload, Kind.FUNCTION, **PLACE), **PLACE)
            # Whatever was read can be written again.
            again = encode_function_change(back, **PLACE)
            assert decode_function_change(again, **PLACE).places == back.places
