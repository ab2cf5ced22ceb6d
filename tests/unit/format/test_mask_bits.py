"""Complete masks come back in at most a bit an element, and hostile ones are refused."""

import zlib

import numpy as np
import pytest

from tb_pastnet.errors import DamagedRecord, InvalidArgument
from tb_pastnet.format import limits, varint
from tb_pastnet.format.envelope import Kind, seal
from tb_pastnet.format.mask_bits import MaskBits, decode_mask, encode_mask

PLACE = {"tag": "kept/w", "step": 12, "lineage": 7}


def mask_of(flags, number=3, step=12) -> MaskBits:
    flags = np.asarray(flags, bool)
    return MaskBits(number, step, flags.size, np.packbits(flags))


def sealed(number=0, distance=0, elements=0, rest=b"") -> bytes:
    payload = varint.encode([number]) + varint.encode_signed([distance]) + varint.encode([elements])
    return seal(payload + rest, Kind.MASK, **PLACE)


@pytest.mark.parametrize("elements", [1, 7, 8, 9, 64, 4096, 1_000_003])
@pytest.mark.parametrize("share", [0.0, 0.01, 0.5, 1.0])
def test_a_mask_comes_back(elements, share):
    flags = np.random.default_rng(elements).random(elements) < share
    back = decode_mask(encode_mask(mask_of(flags), **PLACE), **PLACE)
    assert (back.number, back.step, back.elements) == (3, 12, elements)
    np.testing.assert_array_equal(back.flags, flags)
    np.testing.assert_array_equal(back.bits, np.packbits(flags))


@pytest.mark.parametrize("step", [0, 11, 400])
def test_its_own_step_may_differ_from_the_events(step):
    assert decode_mask(encode_mask(mask_of([1, 0], step=step), **PLACE), **PLACE).step == step


@pytest.mark.parametrize("elements", [64, 4096, 1_000_000])
def test_a_random_mask_costs_a_bit_an_element(elements):
    flags = np.random.default_rng(5).random(elements) < 0.5
    assert len(encode_mask(mask_of(flags), **PLACE)) <= elements / 8 + 20


@pytest.mark.parametrize("value", [False, True])
def test_a_uniform_mask_costs_nothing(value):
    flags = np.full(1_000_003, value)
    assert len(encode_mask(mask_of(flags), **PLACE)) <= 20


def test_whole_channels_are_small():
    flags = np.ones((4096, 512), bool)
    flags[:, ::2] = False
    assert len(encode_mask(mask_of(flags.ravel()), **PLACE)) < flags.size / 8 / 100


@pytest.mark.parametrize(
    ("bits", "elements", "text"),
    [
        (np.zeros(2, np.uint8), 8, r"uint8 bits of shape \(1,\) for 8 elements, got uint8 \(2,\)"),
        (np.zeros(1, bool), 8, r"uint8 bits of shape \(1,\) for 8 elements, got bool \(1,\)"),
        (np.array([0x10], np.uint8), 3, "zeros behind element 3, got ones"),
        (np.zeros(0, np.uint8), -1, r"at most \d+ elements, got -1"),
    ],
)
def test_bits_that_do_not_fit_are_refused(bits, elements, text):
    with pytest.raises(InvalidArgument, match=f"Could not encode a mask: expected {text}"):
        encode_mask(MaskBits(0, 12, elements, bits), **PLACE)


def test_masks_that_nobody_could_read_are_refused(monkeypatch):
    monkeypatch.setattr(limits, "MAX_MASK", 15)
    with pytest.raises(InvalidArgument, match="expected at most 15 elements, got 16. Split"):
        encode_mask(mask_of(np.ones(16)), **PLACE)


@pytest.mark.parametrize(
    ("message", "text"),
    [
        (sealed(elements=limits.MAX_MASK + 1), f"a number of at most {limits.MAX_MASK}"),
        (sealed(distance=13), "a step from 0 to"),
        (sealed(distance=-limits.MAX_STEP), "a step from 0 to"),
        (sealed(elements=9, rest=b"\0\0"), "the end of the record, got 1 more bytes"),
        (sealed(elements=9, rest=b"\2\0"), "expected 2 bytes of a mask, got 1"),
        (sealed(elements=9, rest=b"\2\0\0\0"), "expected 2 bytes of a mask, got 3"),
        (sealed(elements=9, rest=b"\3\xff\xff"), "expected deflated bytes"),
        (sealed(elements=9, rest=b"\3" + zlib.compress(bytes(999_999))), "2 bytes once inflated"),
        (sealed(elements=9, rest=b"\4"), "a mask of a coding from 0 to 3, got 4"),
        (sealed(elements=9, rest=b"\2\0\x01"), "zeros behind the last element, got ones"),
        (sealed(elements=9), "1 more bytes, got 0"),
    ],
)
def test_a_wrong_layout_is_damaged(message, text):
    with pytest.raises(DamagedRecord, match=text):
        decode_mask(message, **PLACE)


def test_a_reader_that_knows_the_variable_accepts_no_more():
    message = encode_mask(mask_of(np.ones(64)), **PLACE)
    assert decode_mask(message, **PLACE, most=64).elements == 64
    with pytest.raises(DamagedRecord, match="a number of at most 63, got 64"):
        decode_mask(message, **PLACE, most=63)


@pytest.mark.parametrize("elements", [8, 16, 64])
def test_all_kept_is_a_coding_without_data(elements):
    all_kept, none = (encode_mask(mask_of(np.full(elements, flag)), **PLACE) for flag in (1, 0))
    assert all_kept == sealed(number=3, elements=elements, rest=b"\x01")
    assert none == sealed(number=3, elements=elements, rest=b"\x00")
