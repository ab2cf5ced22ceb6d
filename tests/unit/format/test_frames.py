"""The framing of TFRecord, against the bytes of TensorFlow's own writer and each way to break them."""

from __future__ import annotations

import io
import struct
from pathlib import Path

import pytest
from tensorboard.backend.event_processing.event_file_loader import RawEventFileLoader

from tb_pastnet.format import frames
from tb_pastnet.format.frames import Frame, Rest, Why, frame, masked_crc, read_frames

PAYLOADS = [b"first", b"", bytes(range(256)) * 5]
WHOLE = b"".join(map(frame, PAYLOADS))


def read(data: bytes, start: int = 0) -> list[Frame | Rest]:
    return list(read_frames(io.BytesIO(data), start))


def test_the_checksum_is_the_published_one() -> None:
    # RFC 3720, B.4: the CRC-32C of 32 zeros. TensorFlow's crc32c.h turns it by 15 and adds a number.
    crc = 0x8A9136AA
    turned = ((crc >> 15) | (crc << 17)) % 2**32
    assert masked_crc(bytes(32)) == (turned + 0xA282EAD8) % 2**32


def test_a_frame_of_tensorflow_is_read() -> None:
    # An event file that tf.summary.create_file_writer began.
    data = bytes.fromhex("1800000000000000a37f4b22090000803899d6d7411a0d627261696e2e4576656e743a32")
    data += bytes.fromhex("124b36ab")
    (found,) = read(data)
    assert isinstance(found, Frame)
    assert (found.offset, found.payload[-13:], found.intact) == (0, b"brain.Event:2", True)


def test_tensorboard_reads_the_same(tmp_path: Path) -> None:
    path = tmp_path / "events.out.tfevents.1"
    path.write_bytes(WHOLE)
    ours = [one.payload for one in read(WHOLE) if isinstance(one, Frame)]
    assert ours == list(RawEventFileLoader(str(path)).Load()) == PAYLOADS


def test_offsets_are_where_a_reader_can_begin() -> None:
    found = read(WHOLE)
    assert [one.offset for one in found] == [0, 21, 37]
    assert read(WHOLE, 21) == found[1:]
    assert read(b"") == []


def test_a_file_cut_anywhere_ends_with_what_is_left() -> None:
    ends = {0, 21, 37, len(WHOLE)}
    for end in range(len(WHOLE) + 1):
        found = read(WHOLE[:end])
        frames_before = [
            at for at in (0, 21, 37) if at + 16 + len(PAYLOADS[[0, 21, 37].index(at)]) <= end
        ]
        assert [one.offset for one in found if isinstance(one, Frame)] == frames_before
        rest = [one for one in found if isinstance(one, Rest)]
        assert rest == ([] if end in ends else [Rest([0, 21, 37][len(frames_before)], Why.TORN)])


def test_a_flipped_bit_of_a_payload_costs_its_mark_and_one_of_a_length_the_rest() -> None:
    for at in range(21, 37):
        found = read(WHOLE[:at] + bytes([WHOLE[at] ^ 4]) + WHOLE[at + 1 :])
        if at < 33:
            assert found[1:] == [Rest(21, Why.LENGTH)]
        else:
            assert [one.intact for one in found if isinstance(one, Frame)] == [True, False, True]
            assert found[1] == Frame(21, b"", found[1].checksum)  # type: ignore[union-attr]


def test_a_hole_of_zeros_ends_the_file() -> None:
    assert read(frame(b"a") + bytes(64) + frame(b"b"))[1:] == [Rest(17, Why.LENGTH)]


@pytest.mark.parametrize("size", [1 << 20, 1 << 40, (1 << 64) - 1])
def test_a_length_beyond_the_file_allocates_nothing(size: int) -> None:
    length = struct.pack("<Q", size)
    data = length + struct.pack("<I", masked_crc(length)) + b"short"

    class Stream(io.BytesIO):
        asked = 0

        def read(self, count: int | None = -1) -> bytes:
            self.asked = max(self.asked, -1 if count is None else count)
            return super().read(count)

    stream = Stream(data)
    assert list(read_frames(stream)) == [Rest(0, Why.TORN)]
    assert stream.asked <= 16


def test_a_record_that_no_event_fills_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frames, "MOST_BYTES", 4)
    assert [one.offset for one in read(frame(b"four") + frame(b"fiver"))] == [0, 20]
    assert read(frame(b"fiver")) == [Rest(0, Why.LARGE)]


def test_an_event_of_2_gib_is_refused_unread(tmp_path: Path) -> None:
    path = tmp_path / "sparse"
    size = struct.pack("<Q", 1 << 31)
    with path.open("wb") as file:
        file.write(size + struct.pack("<I", masked_crc(size)))
        file.truncate((1 << 31) + 16)
    with path.open("rb") as file:
        assert list(read_frames(file)) == [Rest(0, Why.LARGE)]


def test_what_is_appended_while_reading_is_left_out_and_a_file_that_shrinks_is_torn() -> None:
    stream = io.BytesIO(WHOLE)
    reading = read_frames(stream)
    first = next(reading)
    stream.seek(0, io.SEEK_END)
    stream.write(frame(b"later"))
    stream.seek(21)
    assert [first, *reading] == read(WHOLE)
    stream = io.BytesIO(WHOLE)
    reading = read_frames(stream)
    next(reading)
    stream.truncate(45)
    stream.seek(21)
    assert list(reading)[-1] == Rest(37, Why.TORN)


@pytest.mark.parametrize("end", range(37, len(WHOLE), 97))
def test_a_file_that_shrinks_after_it_was_measured_is_torn(end: int) -> None:
    stream = io.BytesIO(WHOLE)
    reading = read_frames(stream)
    frames_before = [next(reading), next(reading)]
    stream.truncate(end)
    assert [*frames_before, *reading] == [*read(WHOLE)[:2], Rest(37, Why.TORN)]
