"""Properties of masks, their log and violations: they come back, and nothing else is believed."""

import contextlib
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from tb_pastnet.core.violation import Violation
from tb_pastnet.errors import UnreadableRecord
from tb_pastnet.format import limits
from tb_pastnet.format.envelope import Kind, seal
from tb_pastnet.format.json_payload import pack
from tb_pastnet.format.mask_bits import MaskBits, decode_mask, encode_mask
from tb_pastnet.format.mask_log import MaskChange, decode_mask_log, encode_mask_log
from tb_pastnet.format.violations import decode_violations, encode_violations
from tests.examples import examples

PLACE = {"tag": "t", "step": 1 << 40, "lineage": 1}
KINDS = {
    decode_mask: Kind.MASK,
    decode_mask_log: Kind.MASKS,
    decode_violations: Kind.VIOLATIONS,
}

steps = st.integers(0, limits.MAX_STEP)
words = st.text(max_size=12)
wholes = st.integers(0, 1 << 20)


@st.composite
def masks(draw):
    flags = draw(hnp.arrays(bool, st.integers(0, 300)))
    return MaskBits(draw(steps), draw(steps), flags.size, np.packbits(flags))


@st.composite
def logs(draw):
    numbers = sorted(draw(st.sets(steps, max_size=6)))
    changes = []
    for number in numbers:
        elements = draw(st.integers(0, limits.MAX_MASK))
        mask, through = draw(st.sampled_from(["kept", "trainable"])), draw(st.integers(0, elements))
        changes.append(MaskChange(number, draw(steps), draw(words), mask, through, elements))
    return changes


@st.composite
def violations(draw):
    first, last = sorted(draw(st.tuples(steps, steps)))
    elements, held = sorted(draw(st.tuples(wholes, wholes)))
    largest = draw(st.floats(min_value=0, allow_nan=False))
    if not elements:  # fingerprints don't show how many
        elements, largest = None, math.nan
    return Violation(
        draw(words), draw(wholes), first, last, elements, held, largest, draw(words)
    )  # fmt: skip


@given(masks())
def test_masks_come_back(mask):
    back = decode_mask(encode_mask(mask, **PLACE), **PLACE)
    assert (back.number, back.step, back.elements) == (mask.number, mask.step, mask.elements)
    np.testing.assert_array_equal(back.bits, mask.bits)
    assert back.bits.dtype == np.uint8


@given(masks())
def test_a_mask_costs_at_most_a_bit_an_element(mask):
    # 12 of the envelope, and numbers of 53 bits in at most 8 bytes each.
    assert len(encode_mask(mask, **PLACE)) <= (mask.elements + 7) // 8 + 12 + 8 + 8 + 2 + 1


@given(logs())
def test_logs_come_back(changes):
    assert decode_mask_log(encode_mask_log(changes, **PLACE), **PLACE) == tuple(changes)


@given(st.lists(violations(), max_size=6))
def test_violations_come_back(found):
    back = decode_violations(encode_violations(found, **PLACE), **PLACE)
    assert sorted(map(repr, back)) == sorted(map(repr, found))


@given(st.sampled_from(list(KINDS)), masks(), logs(), st.lists(violations(), max_size=3), st.data())
def test_a_damaged_message_is_never_believed(decode, mask, changes, found, data):
    encoded = {
        decode_mask: lambda: encode_mask(mask, **PLACE),
        decode_mask_log: lambda: encode_mask_log(changes, **PLACE),
        decode_violations: lambda: encode_violations(found, **PLACE),
    }
    message = bytearray(encoded[decode]())
    at = data.draw(st.integers(0, 8 * len(message) - 1))
    message[at // 8] ^= 1 << at % 8
    with pytest.raises(UnreadableRecord):
        decode(bytes(message), **PLACE)


@given(st.sampled_from(list(KINDS)), st.binary(max_size=200), st.booleans())
@examples(10)
def test_any_bytes_are_read_or_refused(decode, payload, ours):
    message = seal(payload, KINDS[decode], **PLACE) if ours else payload
    limit = {"most": 1 << 16} if decode is decode_mask else {}
    with contextlib.suppress(UnreadableRecord):
        decode(message, **PLACE, **limit)


@given(masks(), st.binary(min_size=1, max_size=8), st.data())
@examples(6)
def test_a_mutated_mask_that_is_sealed_again_is_read_or_refused(mask, piece, data):
    payload = encode_mask(mask, **PLACE)[12:]
    at = data.draw(st.integers(0, len(payload)))
    end = data.draw(st.integers(at, len(payload)))
    message = seal(payload[:at] + piece + payload[end:], Kind.MASK, **PLACE)
    with contextlib.suppress(UnreadableRecord):
        back = decode_mask(message, **PLACE, most=1 << 16)
        assert back.bits.shape == ((back.elements + 7) // 8,)
        np.testing.assert_array_equal(np.packbits(back.flags), back.bits)


leaves = st.none() | st.booleans() | st.integers() | st.floats() | words
values = st.recursive(
    leaves, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3)
)
MADE = {
    decode_mask_log: (
        "changes",
        {"number": 1, "step": 2, "variable": "w", "mask": "kept", "through": 3, "elements": 4},
    ),
    decode_violations: (
        "violations",
        {
            "variable": "w", "first_step": 1, "last_step": 2, "cause": "ema",
            "channel": [1], "elements": [1], "held": [1], "largest": [1.0],
        },
    ),
}  # fmt: skip


@given(st.sampled_from(list(MADE)), values, st.data())
@examples(6)
def test_any_json_is_read_or_refused(decode, value, data):
    key, entry = MADE[decode]
    assert len(decode(seal(pack({key: [entry]}), KINDS[decode], **PLACE), **PLACE)) == 1
    changed = {**entry, data.draw(st.sampled_from(list(entry))): value}
    for given_value in (value, [value], [changed]):
        message = seal(pack({key: given_value}), KINDS[decode], **PLACE)
        with contextlib.suppress(UnreadableRecord):
            decode(message, **PLACE)
