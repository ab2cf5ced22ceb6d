"""Packed planes: exact, small where nothing moves."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from tb_pastnet.errors import DamagedRecord
from tb_pastnet.format import planes, varint


def roundtrip(plane):
    reader = varint.Reader(planes.pack(plane))
    back = planes.unpack(reader, *plane.shape)
    reader.end()
    return back


def test_extremes_wrap_and_come_back():
    plane = np.array([[-32768, 32767], [32767, -32768], [0, -1]], np.int16)
    assert (roundtrip(plane) == plane).all()


def test_an_equal_plane_takes_three_bytes():
    assert planes.pack(np.full((16, 4096), -32768, np.int16)) == b"\x00\x00\x80"


def test_an_empty_plane_is_packed():
    assert roundtrip(np.zeros((0, 4), np.int16)).shape == (0, 4)


def test_inflating_stops_at_the_expected_size():
    with pytest.raises(DamagedRecord, match="deflated bytes"):
        planes.inflate(b"not deflated", 5)


@given(
    arrays(np.int16, st.tuples(st.integers(1, 3), st.integers(1, 4), st.integers(1, 9))),
    st.sets(st.integers(1, 8)),
)
def test_ranges_are_packed_as_if_each_were_alone(several, places):
    channels = several.shape[2]
    edges = [0, *sorted(place for place in places if place < channels), channels]
    cuts = list(pairwise(edges))
    expected = [
        b"".join(planes.pack(plane[:, start:stop]) for plane in several) for start, stop in cuts
    ]
    assert planes.pack_apart(several, cuts) == expected
    for plane in several:
        assert (roundtrip(plane) == plane).all()


@pytest.mark.parametrize(("raw", "most"), [(bytes(1 << 16), 100), (bytes(1 << 20), 1 << 21)])
def test_what_deflates_like_a_bomb_is_stored_as_it_is(raw, most):
    packed = planes.deflate(raw, 9)
    assert planes.inflate(packed, len(raw)) == raw
    assert len(packed) < most
    assert len(raw) <= 1 << 16 or len(packed) >= len(raw)
