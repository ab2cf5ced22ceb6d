from __future__ import annotations

from types import SimpleNamespace

import pytest
from tensorboard.compat.proto import tensor_pb2

from tb_pastnet.reader.tensorboard_source import raw_read


def proto(dtype: int, content: bytes, *shape: int) -> tensor_pb2.TensorProto:
    made = tensor_pb2.TensorProto(dtype=dtype, tensor_content=content)
    for size in shape:
        made.tensor_shape.dim.add(size=size)
    return made


def slow(*protos: tensor_pb2.TensorProto) -> SimpleNamespace:
    events = [
        SimpleNamespace(step=at, wall_time=0.5, tensor_proto=x) for at, x in enumerate(protos)
    ]
    return SimpleNamespace(_multiplexer=SimpleNamespace(Tensors=lambda run, tag: events))


def test_what_is_bytes_is_rescued_and_the_rest_is_not() -> None:
    odd = [
        proto(4, b"abc", 2),
        proto(4, b"abc", 1 << 40),
        proto(4, b"abc", 1, 3),
        proto(4, b"abc"),
        proto(99, b"abc", 3),
        proto(1, b"abcd", 1),
    ]
    found = raw_read(slow(proto(4, b"abc", 3), *odd), "", ("run", "tag"), 100)
    assert found is not None
    assert [data for _, _, data in found] == [b"abc", *[None] * 6]
    assert found[0] == (0, 0.5, b"abc")


def test_no_more_than_asked_and_the_last_among_them() -> None:
    found = raw_read(slow(*[proto(4, bytes([n]), 1) for n in range(9)]), "", ("run", "tag"), 2)
    assert found == [(7, 0.5, b"\x07"), (8, 0.5, b"\x08")]


@pytest.mark.parametrize(
    "changed",
    [SimpleNamespace(), SimpleNamespace(_stub=None), SimpleNamespace(_multiplexer=None), None],
)
def test_where_tensorboard_changed_nothing_is_rescued_and_nothing_raised(changed: object) -> None:
    assert raw_read(changed, "", ("run", "tag"), 1) is None  # type: ignore[arg-type]
