from __future__ import annotations

import io

import pytest
from tensorboard.backend.event_processing.event_file_loader import RawEventFileLoader
from tensorboard.compat.proto import event_pb2, summary_pb2

from tb_pastnet.record.messages import Message, frame, message_event, read_messages, version_event

MESSAGES = [Message("timeline", 7, b"abc"), Message("channels/ä/kernel", 8, bytes(range(256)))]


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "events.out.tfevents.1"
    body = b"".join(message_event(message, 3.5) for message in MESSAGES)
    path.write_bytes(version_event(2.5) + body)
    return path


def test_tensorboard_reads_what_is_written(file):
    events = [event_pb2.Event.FromString(raw) for raw in RawEventFileLoader(str(file)).Load()]
    assert events[0].file_version == "brain.Event:2"
    assert [event.step for event in events[1:]] == [7, 8]
    value = events[1].summary.value[0]
    assert value.tag == "timeline"
    assert value.metadata.plugin_data.plugin_name == "pastnet"
    assert value.metadata.plugin_data.content == b""
    assert value.metadata.data_class == summary_pb2.DATA_CLASS_TENSOR
    assert value.tensor.tensor_content == b"abc"
    assert [dim.size for dim in value.tensor.tensor_shape.dim] == [3]


def test_messages_come_back(file):
    with file.open("rb") as stream:
        assert list(read_messages(stream)) == MESSAGES


def test_events_of_others_are_passed_over():
    other = event_pb2.Event(step=1)
    other.summary.value.add(tag="loss").metadata.plugin_data.plugin_name = "scalars"
    stream = io.BytesIO(frame(other.SerializeToString()) + message_event(MESSAGES[0], 0.0))
    assert list(read_messages(stream)) == MESSAGES[:1]


def test_a_torn_or_damaged_file_is_read_up_to_there(file):
    data = file.read_bytes()
    whole = [list(read_messages(io.BytesIO(data[:end]))) for end in range(len(data) + 1)]
    assert whole[-1] == MESSAGES
    assert all(messages == MESSAGES[: len(messages)] for messages in whole)
    for at in range(len(data)):
        flipped = data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]
        found = list(read_messages(io.BytesIO(flipped)))
        assert found == MESSAGES[: len(found)]
        assert len(found) < len(MESSAGES)


def test_a_frame_that_holds_no_event_ends_the_file():
    stream = io.BytesIO(frame(b"\xff\xff\xff") + message_event(MESSAGES[0], 0.0))
    assert list(read_messages(stream)) == []
