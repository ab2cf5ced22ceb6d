"""Reads one series around the tensors that TensorBoard can't convert.

A flipped bit in a tensor's shape or dtype, unseen by the fast loader, or a foreign tensor
under our name makes `read_tensors` fail for the whole series. The series is then taken from behind
the data provider, tensor by tensor. That relies on attributes that TensorBoard doesn't promise:
where they are gone, such a series counts as unreadable, and nothing else changes.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Any

from tensorboard.data import provider as tb_provider

from tb_pastnet.core.names import PLUGIN

logger = logging.getLogger(__name__)

_DT_UINT8 = 4


def rescue(
    provider: tb_provider.DataProvider, experiment: str, run: str, tag: str, most: int
) -> list[tuple[int, float, bytes | None]] | None:
    """Reads one series that `read_tensors` can't read.

    Args:
        provider: TensorBoard's, of either loader.
        experiment: TensorBoard's experiment id.
        run: TensorBoard's run.
        tag: a tag of ours in it.
        most: events at most.

    Returns:
        Step, wall time and bytes of each event, None where a tensor isn't bytes in one dimension;
        None where nothing can be rescued.
    """
    try:
        if hasattr(provider, "_stub"):
            events = _from_server(provider, experiment, run, tag, most)
        else:
            found = provider._multiplexer.Tensors(run, tag)[-most:]
            events = ((event.step, event.wall_time, event.tensor_proto) for event in found)
        return [(int(step), float(wall), _content(proto)) for step, wall, proto in events]
    except Exception:  # of TensorBoard: its insides may change at any time
        logger.debug("A series could not be rescued", exc_info=True)
        return None


def _from_server(
    provider: Any, experiment: str, run: str, tag: str, most: int
) -> Iterable[tuple[int, float, Any]]:
    """As TensorBoard's GrpcDataProvider asks, but for the conversion."""
    from tensorboard.data.proto import data_provider_pb2

    request = data_provider_pb2.ReadTensorsRequest(experiment_id=experiment)
    request.plugin_filter.plugin_name = PLUGIN
    request.run_tag_filter.runs.names.append(run)
    request.run_tag_filter.tags.names.append(tag)
    request.downsample.num_points = most
    for by_run in provider._stub.ReadTensors(request).runs:
        for by_tag in by_run.tags:
            data = by_tag.data
            yield from zip(data.step, data.wall_time, data.value, strict=True)


def _content(proto: Any) -> bytes | None:
    content: bytes = proto.tensor_content
    shape = [dimension.size for dimension in proto.tensor_shape.dim]
    return content if proto.dtype == _DT_UINT8 and shape == [len(content)] else None
