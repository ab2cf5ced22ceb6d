"""Deflated JSON comes back, and what is none of ours is refused before it costs anything."""

import math
import zlib

import pytest

from tb_pastnet.errors import DamagedRecord
from tb_pastnet.format import json_payload, limits, varint


def deflated(raw: bytes, size: int | None = None) -> bytes:
    return varint.encode([len(raw) if size is None else size]) + zlib.compress(raw)


def test_an_object_comes_back():
    data = {"a": [1, 2.5, None, "é"], "b": {}}
    assert json_payload.unpack(json_payload.pack(data)) == data


def test_the_layout_is_the_documented_one():
    payload = json_payload.pack({"a": 1})
    assert payload[0] == len(b'{"a":1}')
    assert zlib.decompress(payload[1:]) == b'{"a":1}'


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        (b"[]", "a JSON object, got list"),
        (b"{", "expected JSON, got"),
        (b"[" * 4_000, "expected JSON, got"),
        (b"[" * 100_000, "expected JSON of at most 5\\d{3} values, got 100000"),
        (b"\xff", "expected JSON, got"),
    ],
)
def test_what_is_no_object_is_damaged(raw, text):
    with pytest.raises(DamagedRecord, match=text):
        json_payload.unpack(deflated(raw))


def test_a_size_beyond_the_limit_is_refused_before_inflating():
    with pytest.raises(DamagedRecord, match=f"a number of at most {limits.MAX_JSON}"):
        json_payload.unpack(deflated(b"{}", size=limits.MAX_JSON + 1))
    with pytest.raises(DamagedRecord, match="expected 2 bytes once inflated, got at least 3"):
        json_payload.unpack(deflated(b" " * 1_000_000, size=2))


@pytest.mark.parametrize("value", [5, None, "x" * (limits.MAX_NAME + 1)])
def test_what_is_no_text(value):
    assert json_payload.text("x" * limits.MAX_NAME)
    with pytest.raises(ValueError, match=f"a text of at most {limits.MAX_NAME} characters"):
        json_payload.text(value)


@pytest.mark.parametrize("value", ["10", True, -1, 2.0, math.inf, None, 8])
def test_what_is_no_whole_number(value):
    assert json_payload.natural(7, 7) == 7
    with pytest.raises(ValueError, match="a whole number from 0 to 7 is missing"):
        json_payload.natural(value, 7)
