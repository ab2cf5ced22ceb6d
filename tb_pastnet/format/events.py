"""Events of an event file, down to our values in them.

Reading a file ends where TensorBoard's fast loader ends: at a frame with a damaged length, a
payload that isn't an event, an event whose wall time is NaN. A payload that fails its checksum but
is still an event is taken: our messages carry their own checksum.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Any, BinaryIO, NamedTuple

from google.protobuf.message import DecodeError, Message
from tensorboard.compat.proto import event_pb2

from tb_pastnet.format.frames import Frame, Rest, Why, read_frames

_DT_UINT8 = 4


class Metadata(NamedTuple):
    """A value's metadata of its series; TensorBoard uses that of the first value.

    A data class of 2 is a tensor; the content is the plugin's own.
    """

    plugin: str
    data_class: int
    content: bytes


class Value(NamedTuple):
    """One value of one event: a `Summary.Value` of TensorBoard, and its tag."""

    tag: str
    proto: Any

    @property
    def metadata(self) -> Metadata:
        """Its metadata of the series; empty if it has none."""
        metadata = self.proto.metadata
        plugin = metadata.plugin_data
        return Metadata(plugin.plugin_name, metadata.data_class, plugin.content)

    @property
    def data(self) -> bytes | None:
        """Its bytes; None if it isn't a one-dimensional array of bytes."""
        tensor = self.proto.tensor
        content: bytes = tensor.tensor_content
        shape = [dimension.size for dimension in tensor.tensor_shape.dim]
        return content if tensor.dtype == _DT_UINT8 and shape == [len(content)] else None


class Event(NamedTuple):
    """One event; any kind but a summary has no values."""

    frame: Frame
    step: int
    wall_time: float
    values: tuple[Value, ...]

    @property
    def offset(self) -> int:
        """Where its frame begins in the file."""
        return self.frame.offset

    @property
    def intact(self) -> bool:
        """Whether its payload has the checksum of the frame."""
        return self.frame.intact


def read_events(stream: BinaryIO, start: int = 0) -> Iterator[Event | Rest]:
    """Reads the events of a file, untrusted, from the beginning of a frame on.

    The last item is the rest of the file, if that can't be read.
    """
    for frame in read_frames(stream, start):
        event = frame if isinstance(frame, Rest) else decode_event(frame)
        yield event
        if isinstance(event, Rest):
            return


def decode_event(frame: Frame) -> Event | Rest:
    """The event of a frame, or the rest of the file if it can't be read from there on."""
    try:
        event = event_pb2.Event.FromString(frame.payload)
    except DecodeError:
        return Rest(frame.offset, Why.EVENT)
    if not frame.intact and _holds_misfits(event):
        return Rest(frame.offset, Why.EVENT)
    if math.isnan(event.wall_time):
        return Rest(frame.offset, Why.WALL_TIME)
    values = [Value(value.tag, value) for value in event.summary.value]
    return Event(frame, event.step, event.wall_time, tuple(values))


def _holds_misfits(message: Message) -> bool:
    """Whether a field has bytes of the wrong type.

    Python treats them as an unknown field, TensorBoard's data server as an error. A flipped bit
    makes them; no writer does.
    """
    numbers = message.DESCRIPTOR.fields_by_number
    if any(field.field_number in numbers for field in _unknown(message)):
        return True
    return any(
        _holds_misfits(inner)
        for field, value in message.ListFields()
        if field.message_type is not None
        for inner in ([value] if isinstance(value, Message) else value)
    )


def _unknown(message: Message) -> Iterable[Any]:
    try:
        from google.protobuf.unknown_fields import UnknownFieldSet
    except ImportError:  # of protobuf 4.22 or before
        fields: Iterable[Any] = message.UnknownFields()
        return fields
    return list(UnknownFieldSet(message))
