"""Violations come back, say what they are, and hostile ones are refused."""

import math
from dataclasses import replace

import numpy as np
import pytest

from tb_pastnet.core.violation import CAUSES, Violation
from tb_pastnet.errors import DamagedRecord, InvalidArgument
from tb_pastnet.format import json_payload, limits
from tb_pastnet.format.envelope import Kind, seal
from tb_pastnet.format.violations import decode_violations, encode_violations

PLACE = {"tag": "violations", "step": 90, "lineage": 7}
ONE = Violation("conv1/kernel", 3, 40, 90, 12, 36, 0.00125, "weight_decay")
ENTRY = {
    "variable": "conv1/kernel",
    "first_step": 40,
    "last_step": 90,
    "cause": "ema",
    "channel": [3],
    "elements": [12],
    "held": [36],
    "largest": [0.5],
}


def sealed(data) -> bytes:
    return seal(json_payload.pack(data), Kind.VIOLATIONS, **PLACE)


def test_violations_come_back():
    others = [
        replace(ONE, channel=4, largest=math.inf),
        replace(ONE, channel=0, elements=1, largest=5e-324),
        replace(ONE, cause="of a later version"),
        replace(ONE, variable="bias", first_step=0, last_step=0),
    ]
    back = decode_violations(encode_violations([ONE, *others], **PLACE), **PLACE)
    assert set(back) == {ONE, *others}
    assert len(back) == 5


def test_a_size_that_is_no_number_counts_as_infinite():
    message = encode_violations([replace(ONE, largest=math.nan)], **PLACE)
    assert decode_violations(message, **PLACE)[0].largest == math.inf
    found = decode_violations(sealed({"violations": [{**ENTRY, "largest": [math.nan]}]}), **PLACE)
    assert found[0].largest == math.inf


def test_all_channels_of_a_wide_layer_are_small():
    sizes = np.random.default_rng(3).random(4096)
    found = [replace(ONE, channel=n, largest=float(size)) for n, size in enumerate(sizes)]
    assert len(encode_violations(found, **PLACE)) < 13 * len(found)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (
            {},
            (
                "channel 3: 12 of 36 held weights moved from step 40 to 90, by at most 0.00125. "
                "Likely cause: weight decay."
            ),
        ),
        (
            {"last_step": 40, "largest": math.inf, "cause": "new", "channel": 1234},
            (
                "channel 1,234: 12 of 36 held weights moved at step 40, to non-finite values. "
                "Likely cause: new."
            ),
        ),
    ],
)
def test_it_says_what_it_is(change, text):
    assert replace(ONE, **change).text == f"conv1/kernel, {text}"


@pytest.mark.parametrize("cause", CAUSES)
def test_each_cause_has_words(cause):
    assert replace(ONE, cause=cause).text.endswith(f" Likely cause: {CAUSES[cause]}.")


def test_too_many_are_refused(monkeypatch):
    three = [replace(ONE, channel=n) for n in range(3)]
    message = encode_violations(three, **PLACE)
    monkeypatch.setattr(limits, "MAX_VIOLATIONS", 2)
    with pytest.raises(InvalidArgument, match="expected at most 2, got 3. Store them in several"):
        encode_violations(three, **PLACE)
    with pytest.raises(DamagedRecord, match="complete violations, got ValueError.*3 violations"):
        decode_violations(message, **PLACE)


@pytest.mark.parametrize(
    "change",
    [
        {"variable": None},
        {"cause": 5},
        {"cause": "x" * (limits.MAX_NAME + 1)},
        {"first_step": 91},
        {"last_step": limits.MAX_STEP + 1},
        {"channel": [3, 4]},
        {"channel": [limits.MAX_CHANNELS + 1]},
        {"channel": 3},
        {"channel": "3"},
        {"elements": [37]},
        {"held": [-1]},
        {"held": [36.0]},
        {"largest": ["0.5"]},
        {"largest": [True]},
        {"largest": [10**400]},
        {"largest": [[]]},
    ],
)
def test_wrong_types_and_sizes_are_damaged(change):
    assert len(decode_violations(sealed({"violations": [{**ENTRY, "news": 1}]}), **PLACE)) == 1
    with pytest.raises(DamagedRecord, match="expected complete violations, got"):
        decode_violations(sealed({"violations": [{**ENTRY, **change}]}), **PLACE)


@pytest.mark.parametrize("data", [{}, {"violations": 5}, {"violations": [5]}, {"violations": [{}]}])
def test_what_holds_no_violations_is_damaged(data):
    with pytest.raises(DamagedRecord, match="expected complete violations, got"):
        decode_violations(sealed(data), **PLACE)
