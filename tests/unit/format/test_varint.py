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
