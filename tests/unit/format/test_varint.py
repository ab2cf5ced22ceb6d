"""Numbers in few bytes, against the encoding that protocol buffers document."""

import pytest

from tb_pastnet.errors import DamagedRecord
from tb_pastnet.format.varint import Reader, encode, encode_signed


def test_published_examples():
    # https://protobuf.dev/programming-guides/encoding/
    assert encode([150]).hex() == "9601"
    assert encode_signed([0, -1, 1, -2, 0x7FFFFFFF, -0x80000000]) == encode(
        [0, 1, 2, 3, 0xFFFFFFFE, 0xFFFFFFFF]
    )


def test_the_end_is_checked():
    reader = Reader(b"\x01\x02")
    assert reader.number() == 1
    assert reader.left == 1
    with pytest.raises(DamagedRecord, match="expected the end of the record, got 1 more bytes"):
        reader.end()
    reader.take(1)
    reader.end()
    with pytest.raises(DamagedRecord, match="expected 1 more bytes, got 0"):
        reader.number()


def test_64_bits_are_the_most():
    assert Reader(encode([(1 << 64) - 1])).number() == (1 << 64) - 1
    with pytest.raises(DamagedRecord, match=f"a number of at most {(1 << 64) - 1}, got"):
        Reader(encode([1 << 64])).number()
    with pytest.raises(DamagedRecord, match="a number of at most 10 bytes, got a longer one"):
        Reader(encode([1 << 70])).number()


@pytest.mark.parametrize("number", [(1 << 62) - 1, 1 - (1 << 62)])
def test_numbers_of_either_sign_have_62_bits(number):
    further = number + (1 if number > 0 else -1)
    assert Reader(encode_signed([number])).signed_array(1).tolist() == [number]
    with pytest.raises(DamagedRecord, match=r"numbers below 2\*\*62, got a larger one"):
        Reader(encode_signed([further])).signed_array(1)
