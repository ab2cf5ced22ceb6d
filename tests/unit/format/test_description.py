"""Descriptions come back, and hostile ones are refused before they cost anything."""

import json
import zlib

import pytest

from tb_pastnet.errors import DamagedRecord
from tb_pastnet.format import envelope, limits, varint
from tb_pastnet.format.description import (
    Description,
    LayerEntry,
    Series,
    VariableEntry,
    decode_description,
    decode_series,
    encode_description,
    encode_series,
)

VARIABLE = VariableEntry("c/k", "c", "k", "kernel", (3, 8), "float32", "-1", True, 8, 3)
LAYER = LayerEntry("c", "", "c", "Conv2D", ("c/k",), "c/k")
FULL = Description(
    lineage=0xFFFFFFFF,
    ordinal=3,
    origin="9c1e",
    every=10,
    past="previous",
    first_step=11,
    created=1.7e9,
    versions={"keras": "3.15.1"},
    layers=(LAYER,),
    variables=(VARIABLE,),
    skipped=(("seed", "not floating"),),
    audited=True,
)


def sealed(raw: bytes, size: int | None = None) -> bytes:
    payload = varint.encode([len(raw) if size is None else size]) + zlib.compress(raw)
    return envelope.seal(payload, envelope.Kind.DESCRIPTION, tag="d", step=0, lineage=1)


def decode(message: bytes) -> Description:
    return decode_description(message, tag="d", step=0, lineage=1)


def test_everything_comes_back():
    message = encode_description(FULL, tag="d", step=5)
    assert decode_description(message, tag="d", step=5, lineage=FULL.lineage) == FULL


def test_unknown_keys_of_a_later_version_are_ignored():
    raw = json.loads(json.dumps(FULL.__dict__, default=lambda o: o.__dict__))
    raw["news"] = 1
    raw["layers"][0]["news"] = 1
    raw["lineage"] = 1
    assert decode(sealed(json.dumps(raw).encode())).layers == (LAYER,)


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        (b"{}", "KeyError"),
        (b"[]", "a JSON object, got list"),
        (b"{", "expected JSON, got"),
        (b"[" * 4_000, "expected JSON, got"),
        (b"[" * 100_000, "expected JSON of at most 5\\d{3} values, got 100000"),
        (b"\xff", "expected JSON, got"),
    ],
)
def test_what_is_no_description_is_damaged(raw, text):
    with pytest.raises(DamagedRecord, match=text):
        decode(sealed(raw))


@pytest.mark.parametrize(
    "change",
    [
        {"every": "10"},
        {"every": True},
        {"every": -1},
        {"every": 1e400},
        {"first_step": limits.MAX_STEP + 1},
        {"created": float("nan")},
        {"created": "now"},
        {"origin": 5},
        {"origin": "x" * (limits.MAX_NAME + 1)},
        {"versions": []},
        {"layers": [1]},
        {"layers": 5},
        {"skipped": [["a"]]},
        {"variables": [{**VARIABLE.__dict__, "channels": limits.MAX_CHANNELS + 1}]},
        {"variables": [{**VARIABLE.__dict__, "shape": [2.5]}]},
    ],
)
def test_wrong_types_and_sizes_are_damaged(change):
    raw = {**FULL.__dict__, "layers": [], "variables": [], **change}
    with pytest.raises(DamagedRecord, match="a complete description"):
        decode(sealed(json.dumps(raw).encode()))


def test_a_size_beyond_the_limit_is_refused_before_inflating():
    with pytest.raises(DamagedRecord, match=f"a number of at most {limits.MAX_JSON}"):
        decode(sealed(b"{}", size=limits.MAX_JSON + 1))
    with pytest.raises(DamagedRecord, match="expected 2 bytes once inflated, got at least 3"):
        decode(sealed(b" " * 1_000_000, size=2))


def test_a_users_series_says_what_it_is():
    series = Series((3, 8), "-1", 8)
    assert decode_series(encode_series(series)) == series
    assert len(encode_series(series)) < 64


@pytest.mark.parametrize("content", [b"", b"1", b"{}", b'{"shape":[1],"axis":1,"channels":1}'])
def test_what_is_no_series_is_damaged(content):
    with pytest.raises(DamagedRecord):
        decode_series(content)
