"""Bytes of event files: a TensorFlow event around a message, and the framing of TFRecord.

TensorFlow's own writers hide a full disk, or hold the interpreter while they write.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, BinaryIO, NamedTuple

from tensorboard.compat.proto import event_pb2

from tb_pastnet.format.events import read_events
from tb_pastnet.format.frames import Rest, frame
from tb_pastnet.format.tags import PLUGIN

_FILE_VERSION = "brain.Event:2"
_DT_UINT8 = 4
_DATA_CLASS_TENSOR = 2


class Message(NamedTuple):
    """One sealed message as stored in an event file."""

    tag: str
    step: int
    payload: bytes


def version_event(wall_time: float) -> bytes:
    """The framed event that opens every event file."""
    event = event_pb2.Event(wall_time=wall_time, file_version=_FILE_VERSION)
    return frame(event.SerializeToString())


def message_event(message: Message, wall_time: float) -> bytes:
    """The framed event that carries one sealed message."""
    event = event_pb2.Event(wall_time=wall_time, step=message.step)
    carry(event.summary.value.add(tag=message.tag), message.payload)
    return frame(event.SerializeToString())


def carry(value: Any, payload: bytes) -> None:
    """Puts a sealed message into a value of a summary."""
    value.metadata.plugin_data.plugin_name = PLUGIN
    value.metadata.data_class = _DATA_CLASS_TENSOR
    value.tensor.dtype = _DT_UINT8
    value.tensor.tensor_shape.dim.add(size=len(payload))
    value.tensor.tensor_content = payload


def read_messages(stream: BinaryIO) -> Iterator[Message]:
    """The messages of tb_pastnet in an event file, up to its end or its first damage."""
    for event in read_events(stream):
        if isinstance(event, Rest) or not event.intact:
            return
        for value in event.values:
            if value.metadata.plugin == PLUGIN:
                yield Message(value.tag, event.step, value.proto.tensor.tensor_content)
