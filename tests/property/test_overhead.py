"""What recording costs comes back to the microsecond, and nothing else is believed."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tb_pastnet.errors import UnreadableRecord
from tb_pastnet.format import limits, varint
from tb_pastnet.format.envelope import Kind, seal
from tb_pastnet.format.overhead import Overhead, decode_overhead, encode_overhead
from tests.examples import examples

PLACE = {"tag": "overhead", "step": 1 << 40, "lineage": 1}

counts = st.integers(0, limits.MAX_STEP)
micros = st.integers(0, 10**15).map(lambda n: n / 1e6)
overheads = st.builds(Overhead, counts, *[micros] * 7, counts)


@given(overheads)
def test_overheads_come_back(overhead):
    assert decode_overhead(encode_overhead(overhead, **PLACE), **PLACE) == overhead


@given(overheads, st.data())
def test_a_damaged_message_is_never_believed(overhead, data):
    message = bytearray(encode_overhead(overhead, **PLACE))
    at = data.draw(st.integers(0, 8 * len(message) - 1))
    message[at // 8] ^= 1 << at % 8
    with pytest.raises(UnreadableRecord):
        decode_overhead(bytes(message), **PLACE)


@given(st.binary(max_size=100), st.booleans())
@examples(6)
def test_any_bytes_are_read_or_refused(payload, headed):
    payload = varint.encode([9]) + payload if headed else payload
    with contextlib.suppress(UnreadableRecord):
        found = decode_overhead(seal(payload, Kind.OVERHEAD, **PLACE), **PLACE)
        # Whatever was read can be written again.
        assert decode_overhead(encode_overhead(found, **PLACE), **PLACE).steps == found.steps
