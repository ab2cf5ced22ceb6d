"""A data provider in memory, which counts what it is asked and fails where it is told to."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Any

import numpy as np
from tensorboard.data import provider as tb

from tb_pastnet.reader.series_source import RequestContext
from tests import event_files as files

CALLER = RequestContext("context", "experiment")
Tree = dict[str, dict[str, list[Any]]]


class MemoryProvider:
    """Answers as TensorBoard's do: one series that it can't convert fails the whole call.

    Attributes:
        tree: events (step, wall time, array, content) by run and tag.
        broken: series, as "run/tag", that make a call fail.
        lists: how often `list_tensors` was called.
        reads: runs, tags and number of events of each call of `read_tensors`.
    """

    def __init__(self, tree: Tree | None = None, broken: Collection[str] = ()) -> None:
        self.tree: Tree = {} if tree is None else tree
        self.broken = set(broken)
        self.lists = 0
        self.reads: list[tuple[list[str], list[str], int]] = []

    def add(self, run: str, tag: str, step: int, data: Any, content: bytes = b"") -> None:
        array = np.frombuffer(data, np.uint8) if isinstance(data, bytes) else data
        events = self.tree.setdefault(run, {}).setdefault(tag, [])
        events.append((step, float(step), array, content))

    def list_runs(self, ctx: object, *, experiment_id: str) -> list[tb.Run]:
        return [tb.Run(name, name, 0.0) for name in self.tree]

    def list_tensors(
        self, ctx: object, *, experiment_id: str, plugin_name: str, run_tag_filter: Any
    ) -> Any:
        self.lists += 1
        found = self._chosen(ctx, experiment_id, plugin_name, run_tag_filter)
        return {
            run: {
                tag: tb.TensorTimeSeries(
                    max_step=max(event[0] for event in events),
                    max_wall_time=max(event[1] for event in events),
                    plugin_content=events[0][3],
                    description="",
                    display_name="",
                )
                for tag, events in by_tag.items()
            }
            for run, by_tag in found.items()
        }

    def list_scalars(self, ctx: object, **asked: Any) -> dict[str, Any]:
        self._chosen(ctx, asked["experiment_id"], "pastnet", tb.RunTagFilter())
        return {}

    def read_tensors(
        self,
        ctx: object,
        *,
        experiment_id: str,
        plugin_name: str,
        downsample: int,
        run_tag_filter: Any,
    ) -> Any:
        self.reads.append((sorted(run_tag_filter.runs), sorted(run_tag_filter.tags), downsample))
        found = self._chosen(ctx, experiment_id, plugin_name, run_tag_filter)
        return {
            run: {
                tag: [tb.TensorDatum(step, wall, array) for step, wall, array, _ in events][
                    -downsample:
                ]
                for tag, events in by_tag.items()
            }
            for run, by_tag in found.items()
        }

    def _chosen(self, ctx: object, experiment: str, plugin: str, chosen: Any) -> Tree:
        assert (ctx, experiment, plugin) == (*CALLER, "pastnet")
        found = {
            run: {tag: x for tag, x in by_tag.items() if chosen.tags is None or tag in chosen.tags}
            for run, by_tag in self.tree.items()
            if chosen.runs is None or run in chosen.runs
        }
        if any(f"{run}/{tag}" in self.broken for run, by_tag in found.items() for tag in by_tag):
            raise ValueError("cannot reshape array")
        return {run: by_tag for run, by_tag in found.items() if by_tag}


class MemoryWriter(files.LineageWriter):
    """Writes a lineage into such a provider."""

    provider: MemoryProvider

    def put(self, tag: str, step: int, message: Any, **more: Any) -> None:
        self.provider.add(self.tb_run, tag, step, message, **more)


def memory_run(provider: MemoryProvider, run: str, steps: range, **more: Any) -> MemoryWriter:
    """A run in memory that goes on."""
    writer = MemoryWriter(Path(), run, **more)
    writer.provider = provider
    writer.describe(0)
    writer.records(steps)
    return writer
