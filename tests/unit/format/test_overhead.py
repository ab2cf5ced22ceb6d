"""What recording costs comes back, adds up, and hostile numbers are refused."""

import math
from dataclasses import replace

import pytest

from tb_pastnet.errors import DamagedRecord, InvalidArgument
from tb_pastnet.format import limits, varint
from tb_pastnet.format.envelope import Kind, seal
from tb_pastnet.format.overhead import Overhead, decode_overhead, encode_overhead

PLACE = {"tag": "overhead", "step": 90, "lineage": 7}
COST = Overhead(
    steps=200,
    training=20.0,
    records=0.125,
    copies=0.0625,
    masks=0.03125,
    probe=0.25,
    other=0.015625,
    writer=0.5,
    bytes=70_000,
    memory=9_000_000,
)
NUMBERS = [200, 20_000_000, 125_000, 62_500, 31_250, 250_000, 15_625, 500_000, 70_000, 9_000_000]


def sealed(numbers) -> bytes:
    return seal(varint.encode(numbers), Kind.OVERHEAD, **PLACE)


def test_it_is_written_as_documented():
    assert encode_overhead(COST, **PLACE) == sealed([len(NUMBERS), *NUMBERS])
    assert decode_overhead(sealed([len(NUMBERS), *NUMBERS]), **PLACE) == COST


def test_numbers_of_a_later_version_are_passed_over():
    assert decode_overhead(sealed([12, *NUMBERS, 5, 1 << 40]), **PLACE) == COST


def test_numbers_of_an_earlier_version_have_no_memory():
    assert decode_overhead(sealed([9, *NUMBERS[:9]]), **PLACE) == replace(COST, memory=0)


def test_the_share_is_of_all_that_training_waited_for():
    assert COST.seconds == 0.125 + 0.0625 + 0.03125 + 0.25 + 0.015625
    assert COST.share == COST.seconds / 20
    assert math.isnan(Overhead(records=1.0).share)


def test_they_add_up():
    both = COST + replace(COST, steps=1, training=60.0, probe=0.0)
    assert (both.steps, both.training, both.bytes) == (201, 80.0, 140_000)
    assert both.share == (2 * COST.seconds - COST.probe) / 80
    assert both.memory == COST.memory
    assert COST + Overhead() == COST


@pytest.mark.parametrize("change", [{"steps": -1}, {"masks": -1e-9}, {"probe": math.nan},
                                    {"training": math.inf}])  # fmt: skip
def test_what_is_no_cost_is_refused(change):
    (name,) = change
    with pytest.raises(InvalidArgument, match=f"encode an overhead: expected {name} of at least 0"):
        encode_overhead(replace(COST, **change), **PLACE)


@pytest.mark.parametrize(
    ("numbers", "text"),
    [
        ([8, *NUMBERS[:8]], "expected at least 9 numbers, got 8"),
        ([10, *NUMBERS[:9]], "expected 1 more bytes, got 0"),
        ([10, *NUMBERS, 1], "expected the end of the record, got 1 more bytes"),
        ([limits.MAX_NUMBERS + 1, *NUMBERS], "a number of at most 256, got 257"),
        ([10, limits.MAX_STEP + 1, *NUMBERS[1:]], "expected a number of at most 9007199254740992"),
    ],
)
def test_other_layouts_are_damaged(numbers, text):
    with pytest.raises(DamagedRecord, match=text):
        decode_overhead(sealed(numbers), **PLACE)
