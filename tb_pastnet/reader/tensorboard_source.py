"""TensorBoard's data provider, reduced to what we ask of it.

Both loaders answer through the same two calls, `list_tensors` and `read_tensors`. One call reads
many series, so one series that TensorBoard can't convert would fail them all: a failed call is
split until the faulty series is isolated.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from tensorboard import errors
from tensorboard.data import provider as tb_provider

from tb_pastnet.format.tags import PLUGIN
from tb_pastnet.reader.series_source import (
    ALL,
    Listing,
    NotListed,
    Reading,
    RequestContext,
    ScalarPoint,
    SeriesName,
    SeriesSource,
    SeriesVersion,
    StoredMessage,
    standing,
)

_DT_UINT8 = 4
_SCALARS = "scalars"  # TensorBoard's plugin
_POINTS = 1000  # as many as TensorBoard holds of a scalar by default

logger = logging.getLogger(__name__)


class TensorBoardSource(SeriesSource):
    """Reads our series from TensorBoard's data provider, of either loader."""

    def __init__(self, provider: tb_provider.DataProvider) -> None:
        self._provider = provider

    def runs(self, context: RequestContext) -> list[str]:
        """All runs in TensorBoard; only ours if it fails to list them all."""
        try:
            return [run.run_name for run in _list(self._provider.list_runs, context)]
        except NotListed:
            logger.debug("list_runs failed; listing series", exc_info=True)
            return list(self.series(context, None, None))

    def series(
        self, context: RequestContext, runs: Collection[str] | None, tags: Collection[str] | None
    ) -> Listing:
        """Lists our series. See `SeriesSource.series`."""
        by_run = _list(
            self._provider.list_tensors,
            context,
            plugin_name=PLUGIN,
            run_tag_filter=tb_provider.RunTagFilter(runs, tags),
        )
        return {
            run: {
                tag: SeriesVersion(
                    series.max_step or 0, repr(series.max_wall_time), series.plugin_content
                )
                for tag, series in by_tag.items()
            }
            for run, by_tag in by_run.items()
        }

    def read(
        self,
        context: RequestContext,
        runs: Collection[str],
        tags: Collection[str],
        most: int = ALL,
    ) -> Reading:
        """Reads the events that count in both loaders. See `SeriesSource.read`.

        For a series longer than `most`, TensorBoard returns a random sample with the last event.
        """
        runs, tags = sorted(set(runs)), sorted(set(tags))
        if not runs or not tags:
            return {}, []
        try:
            by_run = self._provider.read_tensors(
                context.tensorboard,
                experiment_id=context.experiment,
                plugin_name=PLUGIN,
                downsample=most,
                run_tag_filter=tb_provider.RunTagFilter(runs, tags),
            )
        except errors.PublicError:
            raise
        except Exception:  # of TensorBoard: a tensor that it can't convert, or a call too large
            logger.debug("read_tensors failed; splitting the call", exc_info=True)
            return self._read_split(context, runs, tags, most)
        readings = {
            (run, tag): standing(map(_message, events))
            for run, by_tag in by_run.items()
            for tag, events in by_tag.items()
        }
        return readings, []

    def scalar_tags(self, context: RequestContext) -> Mapping[str, Sequence[str]]:
        """All scalars in TensorBoard. See `SeriesSource.scalar_tags`."""
        try:
            listed = _list(self._provider.list_scalars, context, plugin_name=_SCALARS)
        except NotListed:
            logger.debug("list_scalars failed", exc_info=True)
            return {}
        return {run: sorted(by_tag) for run, by_tag in listed.items()}

    def scalars(
        self, context: RequestContext, series: Collection[SeriesName]
    ) -> Mapping[SeriesName, Sequence[ScalarPoint]]:
        """Reads scalars in one call. See `SeriesSource.scalars`."""
        runs, tags = {run for run, _ in series}, {tag for _, tag in series}
        if not series:
            return {}
        try:
            by_run = _list(
                self._provider.read_scalars,
                context,
                plugin_name=_SCALARS,
                downsample=_POINTS,
                run_tag_filter=tb_provider.RunTagFilter(sorted(runs), sorted(tags)),
            )
        except NotListed:
            logger.debug("read_scalars failed", exc_info=True)
            return {}
        return {
            (run, tag): [
                ScalarPoint(int(event.step), float(event.wall_time), float(event.value))
                for event in events
            ]
            for run, by_tag in by_run.items()
            for tag, events in by_tag.items()
        }

    def _read_split(
        self, context: RequestContext, runs: list[str], tags: list[str], most: int
    ) -> Reading:
        """Reads the two halves of a call that failed, or its only series without conversion."""
        if len(runs) == len(tags) == 1:
            series = runs[0], tags[0]
            messages = raw_read(self._provider, context.experiment, series, most)
            return ({}, [series]) if messages is None else ({series: standing(messages)}, [])
        if len(tags) > 1:
            half = len(tags) // 2
            first, second = (runs, tags[:half]), (runs, tags[half:])
        else:
            half = len(runs) // 2
            first, second = (runs[:half], tags), (runs[half:], tags)
        readings, failed = self.read(context, *first, most)
        others, also_failed = self.read(context, *second, most)
        return readings | others, failed + also_failed


def _list(ask: Callable[..., Any], context: RequestContext, **asked: Any) -> Any:
    """TensorBoard's list; `NotListed` for any error except those meant for clients."""
    try:
        return ask(context.tensorboard, experiment_id=context.experiment, **asked)
    except errors.PublicError:
        raise
    except Exception as error:
        raise NotListed(f"{type(error).__name__}: {error}") from error


def _message(event: tb_provider.TensorDatum) -> StoredMessage:
    array = event.numpy
    is_bytes = isinstance(array, np.ndarray) and array.dtype == np.uint8 and array.ndim == 1
    return StoredMessage(
        int(event.step), float(event.wall_time), array.tobytes() if is_bytes else None
    )


def raw_read(
    provider: tb_provider.DataProvider, experiment: str, series: SeriesName, most: int
) -> list[StoredMessage] | None:
    """Reads one series without the tensors that TensorBoard can't convert; None if that fails.

    A flipped bit in a tensor's shape or dtype, unseen by the fast loader, or a foreign tensor under
    our name makes `read_tensors` fail for the whole series. The series is then read from inside the
    data provider, tensor by tensor. That relies on attributes that TensorBoard doesn't promise: if
    they are gone, such a series counts as unreadable, and nothing else changes.
    """
    try:
        if hasattr(provider, "_stub"):
            events = _from_server(provider, experiment, series, most)
        else:
            stored = provider._multiplexer.Tensors(*series)[-most:]
            events = ((event.step, event.wall_time, event.tensor_proto) for event in stored)
        return [
            StoredMessage(int(step), float(wall), _content(proto)) for step, wall, proto in events
        ]
    except Exception:  # of TensorBoard: its internals may change at any time
        logger.debug("A series could not be read raw", exc_info=True)
        return None


def _from_server(
    provider: Any, experiment: str, series: SeriesName, most: int
) -> Iterable[tuple[int, float, Any]]:
    """Reads like TensorBoard's GrpcDataProvider, but without the conversion."""
    from tensorboard.data.proto import data_provider_pb2

    request = data_provider_pb2.ReadTensorsRequest(experiment_id=experiment)
    request.plugin_filter.plugin_name = PLUGIN
    request.run_tag_filter.runs.names.append(series[0])
    request.run_tag_filter.tags.names.append(series[1])
    request.downsample.num_points = most
    for by_run in provider._stub.ReadTensors(request).runs:
        for by_tag in by_run.tags:
            data = by_tag.data
            yield from zip(data.step, data.wall_time, data.value, strict=True)


def _content(proto: Any) -> bytes | None:
    content: bytes = proto.tensor_content
    shape = [dimension.size for dimension in proto.tensor_shape.dim]
    return content if proto.dtype == _DT_UINT8 and shape == [len(content)] else None
