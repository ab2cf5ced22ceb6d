"""Causes of being idle come back, and hostile ones are refused."""

import pytest

from tb_pastnet.errors import DamagedRecord, InvalidArgument
from tb_pastnet.format import json_payload, limits
from tb_pastnet.format.envelope import Kind, seal
from tb_pastnet.format.standing import StandingChange, decode_standing, encode_standing

PLACE = {"tag": "standing", "step": 12, "lineage": 7}
CHANGES = (
    StandingChange(4, "a/kernel", "no_gradient"),
    StandingChange(4, "b/kernel", "no_gradient"),
    StandingChange(4, "c/kernel", "rounded"),
    StandingChange(12, "b/kernel", ""),
)
ENTRY = {"step": 4, "cause": "later", "variables": ["a"]}


def sealed(data) -> bytes:
    return seal(json_payload.pack(data), Kind.STANDING, **PLACE)


@pytest.mark.parametrize("changes", [CHANGES, CHANGES[:1], ()])
def test_changes_come_back_in_order(changes):
    assert decode_standing(encode_standing(changes, **PLACE), **PLACE) == changes


def test_a_later_version_may_add_keys_and_causes():
    message = sealed({"standing": [{**ENTRY, "news": 1}], "news": 1})
    assert decode_standing(message, **PLACE) == (StandingChange(4, "a", "later"),)


def test_a_whole_network_is_small():
    changes = [StandingChange(12, f"block{n}/kernel", "zero_gradient") for n in range(300)]
    assert len(encode_standing(changes, **PLACE)) < 6 * len(changes)


@pytest.mark.parametrize(
    "change",
    [
        {"step": -1},
        {"step": limits.MAX_STEP + 1},
        {"cause": None},
        {"cause": "x" * (limits.MAX_NAME + 1)},
        {"variables": "abc"},
        {"variables": [5]},
        {"variables": ["a"] * (limits.MAX_STANDING + 1)},
    ],
)
def test_wrong_types_and_sizes_are_damaged(change):
    with pytest.raises(DamagedRecord):
        decode_standing(sealed({"standing": [{**ENTRY, **change}]}), **PLACE)


@pytest.mark.parametrize("data", [{}, {"standing": 5}, {"standing": [5]}, {"standing": [{}]}])
def test_what_holds_no_causes_is_damaged(data):
    with pytest.raises(DamagedRecord):
        decode_standing(sealed(data), **PLACE)


@pytest.mark.parametrize(
    "changes", [CHANGES[:1] * (limits.MAX_STANDING + 1), [StandingChange(-1, "a", "")]]
)
def test_what_a_reader_refuses_is_not_written(changes):
    with pytest.raises(InvalidArgument):
        encode_standing(changes, **PLACE)
