"""TensorBoard's data provider, reduced to what we ask of it.

Both loaders answer through the same two calls, `list_tensors` and `read_tensors`. One call reads
many series, so one series that TensorBoard can't convert would fail them all: a call that fails is
split until the series at fault stands alone.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator, Mapping
from typing import Any

import numpy as np
from tensorboard import errors
from tensorboard.data import provider as tb_provider

from tb_pastnet.core.names import PLUGIN
from tb_pastnet.reader.raw_read import rescue
from tb_pastnet.reader.source import ALL, Caller, Listing, Message, Readings, Source, Stamp

logger = logging.getLogger(__name__)


class ProvidedSource(Source):
    """Reads our series from a data provider.

    Args:
        provider: TensorBoard's, of either loader.
    """

    def __init__(self, provider: tb_provider.DataProvider) -> None:
        self._provider = provider

    def runs(self, caller: Caller) -> list[str]:
        """All runs that TensorBoard knows, ours or not."""
        found = self._provider.list_runs(caller.context, experiment_id=caller.experiment)
        return [run.run_name for run in found]

    def listing(
        self, caller: Caller, only: Collection[str] | None = None
    ) -> tuple[Listing, list[str]]:
        """Lists our series. See `Source.listing`.

        One series with metadata and without any value makes TensorBoard's slow loader fail for a
        whole run.

        Raises:
            PublicError: TensorBoard refuses, for example an unknown experiment.
        """
        try:
            return self._list(caller, only, None), []
        except errors.PublicError:
            raise
        except Exception:  # of TensorBoard, see above
            logger.debug("list_tensors failed; asking run by run", exc_info=True)
        listing: Listing = {}
        failed: list[str] = []
        for run in self.runs(caller) if only is None else only:
            try:
                listing.update(self._list(caller, [run], None))
            except Exception:
                failed.append(run)
        return listing, failed

    def glance(self, caller: Caller, tags: Collection[str]) -> Listing | None:
        """Lists some tags of all runs. See `Source.glance`.

        Raises:
            PublicError: TensorBoard refuses.
        """
        try:
            return self._list(caller, None, tags)
        except errors.PublicError:
            raise
        except Exception:  # of TensorBoard, as above
            logger.debug("list_tensors failed; listing everything", exc_info=True)
            return None

    def probe(self, caller: Caller, run: str, tags: Collection[str]) -> dict[str, Stamp]:
        """Lists what TensorBoard can list. See `Source.probe`."""
        found: dict[str, Stamp] = {}
        for tag in tags:
            try:
                found.update(self._list(caller, [run], [tag]).get(run, {}))
            except Exception:
                logger.debug("list_tensors failed for one series", exc_info=True)
        return found

    def _list(
        self, caller: Caller, runs: Collection[str] | None, tags: Collection[str] | None
    ) -> Listing:
        found = self._provider.list_tensors(
            caller.context,
            experiment_id=caller.experiment,
            plugin_name=PLUGIN,
            run_tag_filter=tb_provider.RunTagFilter(runs, tags),
        )
        return {
            run: {
                tag: Stamp(series.max_step or 0, repr(series.max_wall_time), series.plugin_content)
                for tag, series in by_tag.items()
            }
            for run, by_tag in found.items()
        }

    def read(
        self,
        caller: Caller,
        runs: Collection[str],
        tags: Collection[str],
        most: int = ALL,
    ) -> tuple[Readings, list[tuple[str, str]]]:
        """Reads events as TensorBoard orders them. See `Source.read`.

        Args:
            caller: on whose behalf.
            runs: names of runs.
            tags: names of tags.
            most: events a series; of a longer one TensorBoard makes a random choice that holds the
                last.

        Raises:
            PublicError: TensorBoard refuses.
        """
        readings: Readings = {}
        failed: list[tuple[str, str]] = []
        for call in self._calls(caller, sorted(set(runs)), sorted(set(tags)), most):
            if isinstance(call, tuple):
                found = rescue(self._provider, caller.experiment, *call, most)
                if found is None:
                    failed.append(call)
                else:
                    readings[call] = [Message(*event) for event in found]
                continue
            for run, by_tag in call.items():
                for tag, events in by_tag.items():
                    readings[run, tag] = [_message(event) for event in events]
        return readings, failed

    def _calls(
        self, caller: Caller, runs: list[str], tags: list[str], most: int
    ) -> Iterator[Mapping[str, Mapping[str, list[Any]]] | tuple[str, str]]:
        if not runs or not tags:
            return
        try:
            yield self._provider.read_tensors(
                caller.context,
                experiment_id=caller.experiment,
                plugin_name=PLUGIN,
                downsample=most,
                run_tag_filter=tb_provider.RunTagFilter(runs, tags),
            )
            return
        except errors.PublicError:
            raise
        except Exception:  # of TensorBoard: a tensor that it can't convert, or a call too large
            logger.debug("read_tensors failed; splitting the call", exc_info=True)
        if len(tags) > 1:
            half = len(tags) // 2
            yield from self._calls(caller, runs, tags[:half], most)
            yield from self._calls(caller, runs, tags[half:], most)
        elif len(runs) > 1:
            half = len(runs) // 2
            yield from self._calls(caller, runs[:half], tags, most)
            yield from self._calls(caller, runs[half:], tags, most)
        else:
            yield runs[0], tags[0]


def _message(event: tb_provider.TensorDatum) -> Message:
    array = event.numpy
    is_bytes = isinstance(array, np.ndarray) and array.dtype == np.uint8 and array.ndim == 1
    return Message(int(event.step), float(event.wall_time), array.tobytes() if is_bytes else None)
