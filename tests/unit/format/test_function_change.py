"""Changes of a function come back exactly, and what doesn't hold together is refused."""

import zlib
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tb_pastnet.errors import DamagedRecord, InvalidArgument, UnreadableRecord
from tb_pastnet.format import json_payload, limits, varint
from tb_pastnet.format.envelope import Kind, seal, unseal
from tb_pastnet.format.function_change import (
    LAYER,
    MEASURES,
    OUTPUT,
    FunctionChange,
    Input,
    Place,
    decode_function_change,
    encode_function_change,
    narrow,
)

SMALLEST, LARGEST = 2.0**-149, (2 - 2.0**-23) * 2.0**127
PLACE = {"tag": "function", "step": 20, "lineage": 7}
VALUES = np.arange(24, dtype=np.float32).reshape(4, 2, 3)
CHANGE = FunctionChange(
    (Input("x", (8, 4), "float32", "0f1e"), Input("", (8,), "int64")),
    (Place(LAYER, "block/dense", 16), Place(LAYER, "head", 3), Place(OUTPUT, "head", 3)),
    np.array([4, 6]),
    np.array([10, 20]),
    np.array([9, 19]),
    VALUES,
)
HEAD = {
    "measures": list(MEASURES),
    "inputs": [{"name": "x", "shape": [8, 4], "dtype": "float32"}],
    "places": [{"kind": "layer", "name": "dense", "elements": 16}],
    "sequence": [4, 6],
    "steps": [10, 20],
    "past_steps": [9, 19],
}


def changed(**fields) -> FunctionChange:
    return replace(CHANGE, **fields)


def roundtrip(change: FunctionChange) -> FunctionChange:
    return decode_function_change(encode_function_change(change, **PLACE), **PLACE)


def sealed(head, values: bytes = bytes(4 * 8)) -> bytes:
    packed = json_payload.pack(head)
    payload = varint.encode([len(packed)]) + packed + zlib.compress(values)
    return seal(payload, Kind.FUNCTION, **PLACE)


def decode(message: bytes) -> FunctionChange:
    return decode_function_change(message, **PLACE)


def test_everything_comes_back():
    back = roundtrip(CHANGE)
    assert (back.inputs, back.places) == (CHANGE.inputs, CHANGE.places)
    for name in ("sequence", "steps", "past_steps", "values"):
        found, expected = getattr(back, name), getattr(CHANGE, name)
        np.testing.assert_array_equal(found, expected)
        assert found.dtype == (np.float32 if name == "values" else np.int64)


def test_every_bit_of_a_value_comes_back():
    odd = [0.0, -0.0, np.inf, -np.inf, np.nan, 2.0**-149, 3.4028235e38, 1 + 2.0**-23]
    values = np.resize(np.array(odd, np.float32), (4, 2, 3))
    assert roundtrip(changed(values=values)).values.tobytes() == values.tobytes()


def test_the_past_may_be_before_all_steps_and_a_step_below_zero():
    odd = changed(steps=np.array([-5, 0]), past_steps=np.array([-limits.MAX_STEP, 19]))
    assert roundtrip(odd).steps.tolist() == [-5, 0]
    assert roundtrip(odd).past_steps.tolist() == [-limits.MAX_STEP, 19]


def test_a_probe_without_inputs_and_a_scalar_input_are_kept():
    assert roundtrip(changed(inputs=())).inputs == ()
    assert roundtrip(changed(inputs=(Input("x", (), "bool"),))).inputs[0].shape == ()


def test_the_layout_is_the_documented_one():
    reader = varint.Reader(unseal(encode_function_change(CHANGE, **PLACE), Kind.FUNCTION, **PLACE))
    head = json_payload.unpack(reader.take(reader.number()))
    assert head == {
        **HEAD,
        "inputs": [
            {**HEAD["inputs"][0], "digest": "0f1e"},
            {"name": "", "shape": [8], "dtype": "int64", "digest": ""},
        ],
        "places": [
            {"kind": "layer", "name": "block/dense", "elements": 16},
            {"kind": "layer", "name": "head", "elements": 3},
            {"kind": "output", "name": "head", "elements": 3},
        ],
    }
    assert zlib.decompress(reader.take(reader.left)) == VALUES.astype("<f4").tobytes()


def test_a_later_version_may_add_keys_kinds_and_measures():
    place = {"kind": "head", "name": "a", "elements": 2, "news": 1}
    head = {**HEAD, "measures": ["news", "cosine", "relative"], "places": [place], "news": 1}
    values = np.array([[1, 2], [3, 4], [5, 6]], "<f4")
    found = decode(sealed(head, values.tobytes()))
    assert found.places == (Place("head", "a", 2),)
    nan = [np.nan, np.nan]
    np.testing.assert_array_equal(found.values[:, :, 0], [[5, 6], [3, 4], nan, nan])


def test_a_record_of_many_layers_is_small():
    rng = np.random.default_rng(1)
    places = tuple(Place(LAYER, f"stage{n // 30}/block{n % 30}/conv", 4096) for n in range(300))
    values = rng.random((4, 16, 300)).astype(np.float32)
    values[2:, :, :-1] = np.nan
    steps = np.arange(16) + 5
    change = FunctionChange((), places, steps, steps, steps - 1, values)
    # Two numbers a layer, of 32 bits each, none of which repeats.
    assert len(encode_function_change(change, **PLACE)) < 9 * 16 * 300


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"values": VALUES[:3]}, r"values of shape \(4, 2, 3\) with.*got \(3, 2, 3\)\. Pass all"),
        ({"values": VALUES[:, :1]}, r"values of shape \(4, 2, 3\) with"),
        ({"places": (), "values": VALUES[:, :, :0]}, "at least one record and place"),
        ({"sequence": np.array([1])}, "expected 2 sequence numbers and past steps, got 1 and 2"),
        ({"past_steps": np.arange(3)}, "got 2 and 3. Pass one of each per record"),
        ({"steps": np.array([5, 5])}, r"increasing steps, got \[5, 5\] of records \[4, 6\]"),
        ({"sequence": np.array([6, 4])}, r"of records \[6, 4\]. Start a new lineage"),
        ({"places": (Place(LAYER, "a", 1),) * 3}, "one place of each kind and name, got two"),
    ],
)
def test_what_does_not_fit_is_not_written(fields, text):
    with pytest.raises(InvalidArgument, match=text):
        roundtrip(changed(**fields))


@pytest.mark.parametrize(
    ("limit", "size", "text"),
    [
        ("MAX_INPUTS", 1, "at most 1 inputs, got 2"),
        ("MAX_PLACES", 2, "at most 2 places, got 3"),
        ("MAX_RECORDS", 1, "at most 1 records, got 2"),
        ("MAX_VALUES", 23, "at most 23 values, got 24. Compare fewer places, or store"),
    ],
)
def test_what_a_reader_would_refuse_is_not_written(monkeypatch, limit, size, text):
    message = encode_function_change(CHANGE, **PLACE)
    monkeypatch.setattr(limits, limit, size)
    with pytest.raises(InvalidArgument, match=text):
        encode_function_change(CHANGE, **PLACE)
    with pytest.raises(DamagedRecord):
        decode(message)


@pytest.mark.parametrize(
    "change",
    [
        {"measures": None},
        {"measures": ["relative"] * 4},
        {"measures": [1, 2, 3, 4]},
        {"measures": [str(n) for n in range(limits.MAX_INPUTS + 1)]},
        {"inputs": {}},
        {"inputs": [5]},
        {"inputs": [{"name": "x", "shape": [8], "dtype": 1}]},
        {"inputs": [{"name": "x", "shape": [-8], "dtype": "int8"}]},
        {"inputs": [{"name": "x", "shape": "8", "dtype": "int8"}]},
        {"inputs": [{"name": "x", "shape": [1] * 257, "dtype": "int8"}]},
        {"inputs": [{"shape": [8], "dtype": "int8"}]},
        {"inputs": [{"name": "x", "shape": [8], "dtype": "int8", "digest": None}]},
        {"places": 5},
        {"places": [{"kind": "layer", "name": "x" * (limits.MAX_NAME + 1), "elements": 1}]},
        {"places": [{"kind": "layer", "name": "x", "elements": 1.5}]},
        {"places": [{"kind": None, "name": "x", "elements": 1}]},
        {"places": HEAD["places"] * 2},
        {"sequence": "46"},
        {"sequence": [-4, 6]},
        {"sequence": [4, None]},
        {"steps": [True, 20]},
        {"steps": [10, limits.MAX_STEP + 1]},
        {"steps": [-limits.MAX_STEP - 1, 20]},
        {"past_steps": [9, 19.0]},
        {"past_steps": [9, "19"]},
        {"steps": list(range(limits.MAX_RECORDS + 1))},
    ],
)
def test_wrong_types_and_sizes_are_damaged(change):
    assert decode(sealed(HEAD)).values.shape == (4, 2, 1)
    with pytest.raises(DamagedRecord, match="expected a complete probe, got"):
        decode(sealed({**HEAD, **change}))


@pytest.mark.parametrize("key", HEAD)
def test_what_lacks_a_key_is_damaged(key):
    with pytest.raises(DamagedRecord, match=f"expected a complete probe, got KeyError.'{key}'"):
        decode(sealed({name: value for name, value in HEAD.items() if name != key}))


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"measures": []}, "records of reasonable size, got 0 x 2 x 1 values"),
        ({"places": []}, "records of reasonable size, got 4 x 2 x 0 values"),
        ({"steps": []}, "records of reasonable size, got 4 x 0 x 1 values"),
        ({"sequence": [4]}, "a step of each record, got more of one"),
        ({"past_steps": [1, 2, 3]}, "a step of each record, got more of one"),
        ({"steps": [20, 20]}, "increasing steps, got steps that go back"),
        ({"sequence": [6, 5]}, "increasing steps, got steps that go back"),
        ({"steps": [10, 20, 30], "sequence": [1, 2, 3], "past_steps": [0, 0, 0]},
         "expected 48 bytes once inflated"),
        ({"steps": [10], "sequence": [1], "past_steps": [0]}, "expected 16 bytes once inflated"),
    ],
)  # fmt: skip
def test_records_that_do_not_hold_together_are_damaged(change, text):
    with pytest.raises(DamagedRecord, match=text):
        decode(sealed({**HEAD, **change}))


@pytest.mark.parametrize(
    ("payload", "text"),
    [
        (b"", "1 more bytes, got 0"),
        (varint.encode([limits.MAX_MESSAGE + 1]), "a number of at most"),
        (varint.encode([50]), "50 more bytes, got 0"),
        (varint.encode([2]) + b"{}", "123 bytes once inflated, got at least 0"),
    ],
)
def test_a_head_that_is_cut_is_damaged(payload, text):
    with pytest.raises(DamagedRecord, match=text):
        decode(seal(payload, Kind.FUNCTION, **PLACE))


def test_each_flipped_bit_and_each_cut_is_noticed():
    message = encode_function_change(CHANGE, **PLACE)
    for at in range(8 * len(message)):
        flipped = bytearray(message)
        flipped[at // 8] ^= 1 << at % 8
        with pytest.raises(UnreadableRecord):
            decode(bytes(flipped))
    for end in range(len(message)):
        with pytest.raises(UnreadableRecord):
            decode(message[:end])


def test_bytes_behind_the_values_are_damaged():
    payload = unseal(sealed(HEAD), Kind.FUNCTION, **PLACE)
    with pytest.raises(DamagedRecord, match="expected 32 bytes once inflated"):
        decode(seal(payload + b"\0", Kind.FUNCTION, **PLACE))


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (0.0, 0.0), (-0.0, -0.0), (1e-300, SMALLEST), (-5e-324, -SMALLEST), (2.0**-149, SMALLEST),
        (1e39, LARGEST), (-1e300, -LARGEST), (np.inf, np.inf), (-np.inf, -np.inf),
        (np.nan, np.nan), (0.1, 0.10000000149011612), (LARGEST * (1 + 1e-12), LARGEST),
    ],
)  # fmt: skip
def test_narrow_values_at_both_ends_of_the_range(value, expected):
    found = narrow(np.array([value]))
    assert (found.dtype, found.shape) == (np.float32, (1,))
    np.testing.assert_array_equal(found, [expected])
    assert np.signbit(found[0]) == np.signbit(expected) or np.isnan(expected)


def test_narrow_scalars_and_empty_arrays_keep_their_shape():
    assert narrow(np.float64(0.5)).shape == ()
    assert narrow(np.zeros((0, 3))).shape == (0, 3)


@given(st.floats(allow_nan=False))
def test_every_number_is_rounded_as_far_as_float32_reaches(value):
    (found,) = narrow(np.array([value]))
    assert (found == 0) == (value == 0)
    assert np.isinf(found) == np.isinf(value)
    assert np.signbit(found) == np.signbit(value)
    if 2.0**-126 <= abs(value) <= LARGEST:
        assert abs(float(found) / value - 1) <= 2.0**-24
