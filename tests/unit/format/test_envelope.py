"""Every record proves what it is, where it belongs and that nothing was altered."""

import inspect
import math
import re

import pytest
from tensorboard.data import server_ingester

from tb_pastnet.errors import DamagedRecord, ForeignRecord, InvalidArgument, UnknownVersion
from tb_pastnet.format import limits
from tb_pastnet.format.envelope import NEWEST, Kind, seal, unseal, version_of
from tests.sealed import sealed as sealed_as

PLACE = {"tag": "channels/w", "step": 12, "lineage": 0xABCD}


def sealed(payload: bytes = b"payload") -> bytes:
    return seal(payload, Kind.CHANNELS, **PLACE)


def test_a_sealed_payload_comes_back():
    assert unseal(sealed(), Kind.CHANNELS, **PLACE) == b"payload"
    assert unseal(sealed(b""), Kind.CHANNELS, **PLACE) == b""


def test_the_layout_is_the_documented_one():
    message = sealed(b"xyz")
    assert message[:8] == b"PAST\x02\x01\x00\x00"
    assert message[12:] == b"xyz"
    assert seal(b"xyz", Kind.MASKS, **PLACE)[:8] == b"PAST\x01\x04\x00\x00"


@pytest.mark.parametrize("version", [1, 2])
def test_every_version_is_opened(version):
    message = sealed_as(b"xyz", version=version, kind=1, **PLACE)
    assert unseal(message, Kind.CHANNELS, **PLACE) == b"xyz"
    assert version_of(message) == version


@pytest.mark.parametrize("other", [{"tag": "channels/v"}, {"step": 13}, {"lineage": 1}])
def test_a_record_that_was_moved_is_damaged(other):
    with pytest.raises(DamagedRecord, match="checksum to match at step"):
        unseal(sealed(), Kind.CHANNELS, **{**PLACE, **other})


def test_a_record_of_another_kind_is_damaged():
    with pytest.raises(DamagedRecord, match="were changed after they were written"):
        unseal(sealed(), Kind.TIMELINE, **PLACE)


def test_each_flipped_bit_is_noticed():
    message = sealed()
    for at in range(8 * len(message)):
        flipped = bytearray(message)
        flipped[at // 8] ^= 1 << at % 8
        with pytest.raises((ForeignRecord, UnknownVersion, DamagedRecord)):
            unseal(bytes(flipped), Kind.CHANNELS, **PLACE)


def test_each_cut_is_noticed():
    message = sealed()
    for end in range(len(message)):
        with pytest.raises((ForeignRecord, DamagedRecord)):
            unseal(message[:end], Kind.CHANNELS, **PLACE)


def test_foreign_bytes_are_told_apart():
    with pytest.raises(ForeignRecord, match=r"expected bytes that begin with b'PAST', got b'\\x00"):
        unseal(bytes(64), Kind.CHANNELS, **PLACE)


def test_a_newer_version_asks_for_an_update():
    for kind, expected in ((Kind.CHANNELS, "1 or 2"), (Kind.MASKS, "1")):
        for version in (0, NEWEST[kind] + 1, 255):
            message = sealed_as(b"xyz", version=version, kind=kind, **PLACE)
            with pytest.raises(UnknownVersion) as error:
                unseal(message, kind, **PLACE)
            assert str(error.value) == (
                f"Could not read a record of 'channels/w': expected format version {expected}, got "
                f"{version}. Update tb-pastnet where TensorBoard runs."
            )


def test_an_oversized_message_is_refused_unread(monkeypatch):
    message = sealed()
    monkeypatch.setattr(limits, "MAX_MESSAGE", 18)
    with pytest.raises(DamagedRecord, match="expected at most 18 bytes, got 19"):
        unseal(message, Kind.CHANNELS, **PLACE)
    with pytest.raises(DamagedRecord, match=r"'x{77}\.\.\.'"):
        unseal(message, Kind.CHANNELS, **{**PLACE, "tag": "x" * 1000})
    with pytest.raises(InvalidArgument, match="a message of at most 18 bytes, got 19"):
        sealed()


def test_the_largest_message_is_the_largest_that_tensorboard_takes():
    source = inspect.getsource(server_ingester)
    [product] = re.findall(r'"grpc.max_receive_message_length", ([0-9 *]+)\)', source)
    assert math.prod(map(int, product.split("*"))) == limits.MAX_MESSAGE


def test_names_that_are_not_utf8_have_a_checksum_too():
    tag = b"\xff".decode("utf-8", "surrogateescape")
    message = seal(b"", Kind.CHANNELS, tag=tag, step=0, lineage=0)
    assert unseal(message, Kind.CHANNELS, tag=tag, step=0, lineage=0) == b""
