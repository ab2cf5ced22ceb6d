"""The log of changes comes back, and hostile ones are refused."""

from dataclasses import asdict

import pytest

from tb_pastnet.errors import DamagedRecord, InvalidArgument
from tb_pastnet.format import json_payload, limits
from tb_pastnet.format.envelope import Kind, seal
from tb_pastnet.format.mask_log import MaskChange, decode_mask_log, encode_mask_log

PLACE = {"tag": "masks", "step": 12, "lineage": 7}
FIRST = MaskChange(0, 4, "conv/kernel", "kept", 30, 36)
SECOND = MaskChange(2, 12, "conv/kernel", "trainable", 0, 36)


def sealed(data) -> bytes:
    return seal(json_payload.pack(data), Kind.MASKS, **PLACE)


def test_changes_come_back():
    message = encode_mask_log([FIRST, SECOND], **PLACE)
    assert decode_mask_log(message, **PLACE) == (FIRST, SECOND)
    assert decode_mask_log(encode_mask_log([], **PLACE), **PLACE) == ()


def test_a_later_version_may_add_keys_and_masks():
    entry = {**asdict(FIRST), "mask": "grown", "news": 1}
    (change,) = decode_mask_log(sealed({"changes": [entry], "news": 1}), **PLACE)
    assert change.mask == "grown"


def test_a_change_of_many_variables_is_small():
    changes = [MaskChange(n, 12, f"block{n}/kernel", "kept", 7 * n, 4096) for n in range(300)]
    assert len(encode_mask_log(changes, **PLACE)) < 10 * len(changes)


def test_numbers_that_do_not_increase_are_refused():
    with pytest.raises(InvalidArgument, match=r"increasing numbers, got \[2, 0\]\. Pass them"):
        encode_mask_log([SECOND, FIRST], **PLACE)
    with pytest.raises(DamagedRecord, match="increasing numbers of changes, got numbers that go"):
        decode_mask_log(sealed({"changes": [asdict(SECOND), asdict(SECOND)]}), **PLACE)


@pytest.mark.parametrize(
    "change",
    [
        {"number": -1},
        {"number": 1.5},
        {"step": limits.MAX_STEP + 1},
        {"step": None},
        {"variable": 5},
        {"variable": "x" * (limits.MAX_NAME + 1)},
        {"mask": []},
        {"through": 37},
        {"elements": limits.MAX_MASK + 1},
        {"elements": True},
    ],
)
def test_wrong_types_and_sizes_are_damaged(change):
    with pytest.raises(DamagedRecord, match="expected complete changes of masks, got"):
        decode_mask_log(sealed({"changes": [{**asdict(FIRST), **change}]}), **PLACE)


@pytest.mark.parametrize("data", [{}, {"changes": 5}, {"changes": [5]}, {"changes": [{}]}])
def test_what_is_no_log_is_damaged(data):
    with pytest.raises(DamagedRecord, match="expected complete changes of masks, got"):
        decode_mask_log(sealed(data), **PLACE)
