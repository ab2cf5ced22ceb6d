"""Events of an event file, down to the values of ours that they carry.

What ends a file here ends it for TensorBoard's fast loader, too: a frame without a sound length, a
payload that is no event, an event whose wall time is NaN. A payload that fails its checksum and is
an event all the same is taken: our messages carry a checksum of their own.
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
    """What a value says of its series; TensorBoard takes that of the first value.

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
        """What it says of its series; empty where it says nothing."""
        metadata = self.proto.metadata
        plugin = metadata.plugin_data
        return Metadata(plugin.plugin_name, metadata.data_class, plugin.content)

    @property
    def data(self) -> bytes | None:
        """Its bytes; None where it holds something else than bytes in one dimension."""
        tensor = self.proto.tensor
        content: bytes = tensor.tensor_content
        shape = [dimension.size for dimension in tensor.tensor_shape.dim]
        return content if tensor.dtype == _DT_UINT8 and shape == [len(content)] else None


class Event(NamedTuple):
    """One event; one of another kind than a summary has no values."""

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

    At last comes the rest of the file where that can't be read.
    """
    for frame in read_frames(stream, start):
        event = frame if isinstance(frame, Rest) else decode_event(frame)
        yield event
        if isinstance(event, Rest):
            return


def decode_event(frame: Frame) -> Event | Rest:
    """The event that a frame holds, or that no event can be read from there on."""
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
    """Whether a field has bytes of another type than its own.

    Python takes these for a field that it doesn't know, TensorBoard's data server for an error. A
    flipped bit makes them; what a writer meant has none.
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
