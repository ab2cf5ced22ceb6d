"""The freeze audit of a graph: ops that compare what masks hold, built once."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import tensorflow.compat.v1 as tf

from tb_pastnet.core.axes import ChannelAxis
from tb_pastnet.keras.audit.watch import Channels, Watch, compared, which_moved
from tb_pastnet.keras.model.weights import TFWeight
from tb_pastnet.v1.graph.session import GraphSession
from tb_pastnet.v1.masks.table import SessionTable


class SessionWatch(Watch):
    """A variable with masks, compared by ops of its graph.

    Args:
        record: the variable.
        hold: its masks.
        reduced: compares values channel by channel.
    """

    def __init__(self, record: TFWeight, hold: Any, reduced: Reduction) -> None:
        super().__init__(record)
        self._built = hold
        self._reduced = reduced

    @cached_property
    def tensors(self) -> tuple[Any, Any, Any]:
        """Value, what held elements should be, and which are held."""
        self.hold, before = self._built, self.hold
        try:
            return super().value(), super().expected(), super().held()
        finally:
            self.hold = before

    def value(self) -> Any:
        """See `Watch`."""
        return self.tensors[0]

    def expected(self) -> Any:
        """See `Watch`."""
        return self.tensors[1]

    def held(self) -> Any:
        """See `Watch`."""
        return self.tensors[2]

    def channels(self) -> Channels:
        """See `Watch`."""
        return self._reduced.channels(self.tensors)


class Reduction:
    """Compares values of one shape channel by channel; few ops, as few variables are violated.

    Args:
        site: the graph.
        dtype: of the values.
        axis: how they split.
    """

    def __init__(self, site: GraphSession, dtype: Any, axis: ChannelAxis) -> None:
        self._site = site
        with site.building():
            value, expected, held = (
                tf.placeholder(kind, axis.shape) for kind in (dtype, dtype, tf.bool)
            )
            self._fed = value, expected, held
            self._results = compared(value, expected, held, axis)

    def channels(self, tensors: Sequence[Any]) -> Channels:
        """Compares what some tensors are now.

        Args:
            tensors: value, what held elements should be, and which are held.
        """
        values = self._site.run(list(tensors))
        return Channels(*self._site.run(self._results, dict(zip(self._fed, values, strict=True))))


class Comparison:
    """Watches the variables of a graph.

    Args:
        records: the variables.
        table: their masks.
        site: the graph.
    """

    def __init__(
        self, records: Sequence[TFWeight], table: SessionTable, site: GraphSession
    ) -> None:
        reductions: dict[Any, Reduction] = {}
        self._watches = {}
        for record in records:
            hold = table.made_of(record.found.variable)
            if hold is None:
                continue
            kind = (record.found.variable.dtype, record.axis)
            if kind not in reductions:
                reductions[kind] = Reduction(site, *kind)
            self._watches[record.text.id] = SessionWatch(record, hold, reductions[kind])
        watches = list(self._watches.values())
        self._moved = site.fetch(lambda: which_moved(watches)) if watches else list

    def watch(self, record: TFWeight) -> Watch:
        """See `Compiled`."""
        return self._watches[record.text.id]

    def moved(self, watches: Sequence[Watch]) -> Sequence[bool]:
        """See `Compiled`."""
        found = dict(zip(self._watches, self._moved(), strict=True)) if watches else {}
        return [found[watch.record.text.id] for watch in watches]
