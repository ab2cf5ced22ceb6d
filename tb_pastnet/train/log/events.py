"""Bytes of event files: a TensorFlow event around a message, and the framing of TFRecord.

Written by hand, because TensorFlow's own writers hide a full disk or hold the interpreter while
they write, and because no TensorFlow is needed for it.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any, BinaryIO, NamedTuple

import google_crc32c

from tb_pastnet.core import limits
from tb_pastnet.core.names import PLUGIN

_LENGTH = struct.Struct("<Q")
_CRC = struct.Struct("<I")
_FILE_VERSION = "brain.Event:2"
_DT_UINT8 = 4
_DATA_CLASS_TENSOR = 2


class Message(NamedTuple):
    """One sealed message as it stands in an event file."""

    tag: str
    step: int
    payload: bytes


def version_event(wall_time: float) -> bytes:
    """The framed event that opens every event file.

    Args:
        wall_time: seconds since 1970.
    """
    from tensorboard.compat.proto import event_pb2

    event = event_pb2.Event(wall_time=wall_time, file_version=_FILE_VERSION)
    return frame(event.SerializeToString())


def message_event(message: Message, wall_time: float) -> bytes:
    """The framed event that carries one sealed message.

    Args:
        message: what to store, and under which tag and step.
        wall_time: seconds since 1970.

    Example:
        >>> import io
        >>> message = Message("timeline", 7, b"abc")
        >>> list(read_messages(io.BytesIO(message_event(message, 0.0)))) == [message]
        True
    """
    from tensorboard.compat.proto import event_pb2

    event = event_pb2.Event(wall_time=wall_time, step=message.step)
    value = event.summary.value.add(tag=message.tag)
    value.metadata.plugin_data.plugin_name = PLUGIN
    value.metadata.data_class = _DATA_CLASS_TENSOR
    value.tensor.dtype = _DT_UINT8
    value.tensor.tensor_shape.dim.add(size=len(message.payload))
    value.tensor.tensor_content = message.payload
    return frame(event.SerializeToString())


def frame(data: bytes) -> bytes:
    """Puts bytes into the framing of TFRecord: length, checksum, data, checksum.

    Example:
        >>> len(frame(b"abc"))
        19
    """
    length = _LENGTH.pack(len(data))
    return b"".join((length, _masked_crc(length), data, _masked_crc(data)))


def read_messages(stream: BinaryIO) -> Iterator[Message]:
    """Reads the messages of tb_pastnet in an event file, up to its end or its first damage.

    Args:
        stream: opened for reading; its bytes are untrusted.

    Yields:
        Each message in order. Events of others are passed over.
    """
    from google.protobuf.message import DecodeError
    from tensorboard.compat.proto import event_pb2

    for data in _read_frames(stream):
        try:
            event = event_pb2.Event.FromString(data)
        except DecodeError:
            return
        for value in event.summary.value:
            if value.metadata.plugin_data.plugin_name == PLUGIN:
                yield Message(value.tag, event.step, _content(value))


def _content(value: Any) -> bytes:
    content: bytes = value.tensor.tensor_content
    return content


def _read_frames(stream: BinaryIO) -> Iterator[bytes]:
    head = _LENGTH.size + _CRC.size
    while len(start := stream.read(head)) == head:
        length = start[: _LENGTH.size]
        size = _LENGTH.unpack(length)[0]
        if start[_LENGTH.size :] != _masked_crc(length) or size > 2 * limits.MAX_MESSAGE:
            return
        data = stream.read(size)
        if len(data) != size or stream.read(_CRC.size) != _masked_crc(data):
            return
        yield data


def _masked_crc(data: bytes) -> bytes:
    crc = google_crc32c.value(data)
    rotated = (crc >> 15) | (crc << 17) & 0xFFFFFFFF
    return _CRC.pack((rotated + 0xA282EAD8) & 0xFFFFFFFF)
