"""Events and their values; what is none ends a file, as it does for TensorBoard's fast loader."""

from __future__ import annotations

import io
import math
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from tensorboard.compat.proto import event_pb2, summary_pb2, tensor_pb2
from tensorboard.util import tensor_util

from tb_pastnet.format import events
from tb_pastnet.format.events import Event, Metadata, read_events
from tb_pastnet.format.frames import Rest, Why, frame
from tests import event_files as files


def read(*payloads: bytes) -> list[Event | Rest]:
    return list(read_events(io.BytesIO(b"".join(map(frame, payloads)))))


def test_a_value_comes_back_with_its_place() -> None:
    version = event_pb2.Event(wall_time=1.5, file_version="brain.Event:2").SerializeToString()
    stored = files.event("channels/ä/kernel", 7, b"abc", wall_time=2.5, content=b"c")
    first, event = read(version, stored)
    assert isinstance(first, Event)
    assert isinstance(event, Event)
    assert (first.offset, first.values, first.wall_time) == (0, (), 1.5)
    assert (event.offset, event.frame.payload) == (16 + len(version), stored)
    assert (event.step, event.wall_time, event.intact) == (7, 2.5, True)
    (value,) = event.values
    assert (value.tag, value.data) == ("channels/ä/kernel", b"abc")
    assert value.metadata == Metadata("pastnet", 2, b"c")


def test_several_values_of_one_event_come_in_order() -> None:
    event = event_pb2.Event(step=1)
    for tag in ("b", "a"):
        event.summary.value.add(tag=tag, simple_value=1.0)
    (found,) = read(event.SerializeToString())
    assert isinstance(found, Event)
    assert [value.tag for value in found.values] == ["b", "a"]
    assert [value.data for value in found.values] == [None, None]
    assert found.values[0].metadata == Metadata("", 0, b"")


def proto(dtype: int, content: bytes, *shape: int) -> tensor_pb2.TensorProto:
    made = tensor_pb2.TensorProto(dtype=dtype, tensor_content=content)
    for size in shape:
        made.tensor_shape.dim.add(size=size)
    return made


@pytest.mark.parametrize(
    ("tensor", "data"),
    [
        (proto(4, b"abc", 3), b"abc"),
        (tensor_util.make_tensor_proto(np.arange(3, dtype=np.uint8)), b"\0\1\2"),
        (proto(4, b"", 0), b""),
        (proto(4, b"abc", 2), None),
        (proto(4, b"abc", 1 << 40), None),
        (proto(4, b"abc", 1, 3), None),
        (proto(4, b"abc"), None),
        (proto(6, b"abc", 3), None),
        (proto(99, b"abc", 3), None),
    ],
)
def test_bytes_in_one_dimension_are_data_and_nothing_else_is(
    tensor: tensor_pb2.TensorProto, data: bytes | None
) -> None:
    (event,) = read(files.event("t", 1, None, tensor=tensor))
    assert isinstance(event, Event)
    assert event.values[0].data == data


def test_a_value_without_a_tensor_has_no_data() -> None:
    (event,) = read(files.event("t", 1, None))
    assert isinstance(event, Event)
    assert event.values[0].data is None


NO_TEXT = summary_pb2.Summary(value=[summary_pb2.Summary.Value(tag="abcd")]).SerializeToString()


@pytest.mark.parametrize(
    ("payload", "why"),
    [
        (b"\xff\xff\xff", Why.EVENT),
        (b"\x2a\x05abc", Why.EVENT),
        (b"\x2a" + bytes([len(NO_TEXT)]) + NO_TEXT.replace(b"abcd", b"a\xffcd"), Why.EVENT),
        (files.event("t", 1, b"abc", wall_time=math.nan), Why.WALL_TIME),
    ],
)
def test_what_is_no_event_ends_the_file(payload: bytes, why: Why) -> None:
    before, behind = files.event("t", 1, b"a"), files.event("t", 3, b"c")
    first, rest = read(before, payload, behind)
    assert isinstance(first, Event)
    assert rest == Rest(16 + len(before), why)


def test_an_altered_payload_that_is_an_event_is_marked_and_goes_on() -> None:
    data = bytearray(frame(files.event("t", 1, b"abc")) + frame(files.event("t", 2, b"d")))
    data[data.index(b"abc")] ^= 1
    found = [one for one in read_events(io.BytesIO(bytes(data))) if isinstance(one, Event)]
    assert [one.intact for one in found] == [False, True]
    assert [one.values[0].data for one in found] == [b"`bc", b"d"]


def test_a_field_of_another_type_ends_the_file_only_where_bits_were_flipped() -> None:
    """As TensorBoard's data server has it; Python's parser takes such a field for an unknown one."""
    payload = files.event("t", 1, b"abc")
    # The wall time, eight bytes, as the file's version; the size of a dimension as its name.
    for at, value in ((0, 0x19), (payload.index(b"\x08\x03"), 0x10)):
        flipped = bytearray(payload)
        flipped[at] = value
        data = bytearray(frame(payload) + frame(payload))
        data[12 : 12 + len(payload)] = flipped
        assert list(read_events(io.BytesIO(bytes(data)))) == [Rest(0, Why.EVENT)]
        (first,) = read(bytes(flipped))
        assert isinstance(first, Event)


def test_older_versions_of_protobuf_tell_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "google.protobuf.unknown_fields", None)
    of_old = [SimpleNamespace(field_number=3)]
    descriptor = SimpleNamespace(fields_by_number={3: ...})
    for known, misfits in ((of_old, True), ([], False)):
        message = SimpleNamespace(
            DESCRIPTOR=descriptor, UnknownFields=lambda known=known: known, ListFields=list
        )
        assert events._holds_misfits(message) is misfits


def test_a_torn_tail_is_told() -> None:
    data = frame(files.event("t", 1, b"abc"))
    *_, rest = read_events(io.BytesIO(data + data[:-1]))
    assert rest == Rest(len(data), Why.TORN)
