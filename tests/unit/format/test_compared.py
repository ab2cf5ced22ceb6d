"""What was compared comes back, and hostile messages are refused."""

import zlib

import pytest

from tb_pastnet.core.compared import Compared, HeldSpan, HeldValues
from tb_pastnet.errors import DamagedRecord
from tb_pastnet.format import varint
from tb_pastnet.format.compared import decode_compared, encode_compared
from tb_pastnet.format.envelope import Kind, seal

PLACE = {"tag": "compared", "step": 12, "lineage": 7}


def sealed(*numbers: int) -> bytes:
    raw = varint.encode(numbers)
    return seal(varint.encode([len(raw)]) + zlib.compress(raw), Kind.COMPARED, **PLACE)


def many(count: int) -> Compared:
    """A whole network, held from the first record on."""
    span = HeldSpan(1, 999, 999, 999 * 64, True)
    held = {n: HeldValues(64, "value", (span,)) for n in range(0, 2 * count, 2)}
    return Compared(999, 0, 999, 1, 999, dict.fromkeys(range(1, 2 * count, 2), 1), held=held)


@pytest.mark.parametrize("count", [0, 1, 7, 64, 5_000])
def test_it_comes_back(count):
    compared = many(count)
    message = encode_compared(compared, **PLACE)
    assert decode_compared(message, **PLACE) == compared
    assert len(message) < 100 + 20 * count


def test_nothing_compared_takes_few_bytes():
    message = encode_compared(Compared(), **PLACE)
    assert decode_compared(message, **PLACE) == Compared()
    assert len(message) < 40


def test_a_later_version_may_add_numbers():
    found = decode_compared(sealed(3, 0, 3, 2, 5, 0, 0, 0, 0, 17, 4), **PLACE)
    assert found == Compared(3, 0, 3, 1, 4)


@pytest.mark.parametrize(
    "numbers",
    [
        (3, 0),
        (3, 0, 3, 2, 5, 1 << 60),
        (3, 0, 3, 2, 5, 0, 0, 0, 1, 0, 4, 2, 0, 0, 0),  # compared in an unknown way
        (3, 0, 3, 2, 5, 0, 0, 0, 1, 0, 4, 0, 0, 0, 1, 9, 8, 1, 4, 1),  # a span that goes back
        (3, 0, 3, 2, 5, 0, 0, 0, 1, 0, 4, 0, 0, 0, 1, 8, 9, 0, 4, 1),  # one without records
    ],
)
def test_wrong_numbers_are_damaged(numbers):
    with pytest.raises(DamagedRecord):
        decode_compared(sealed(*numbers), **PLACE)


def test_a_bomb_is_refused():
    raw = bytes(1 << 20)
    bomb = varint.encode([len(raw)]) + zlib.compress(raw)
    with pytest.raises(DamagedRecord):
        decode_compared(seal(bomb, Kind.COMPARED, **PLACE), **PLACE)
