"""The freeze audit of a graph: ops that compare what masks hold, built once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import tensorflow.compat.v1 as tf

from tb_pastnet.train.audit.watch import Channels, Ints, Watch
from tb_pastnet.train.masks.table import MaskTable
from tb_pastnet.train.model.variables import Recorded
from tb_pastnet.v1.session import Site
from tb_pastnet.v1.table import SessionTable


class SessionWatch(Watch):
    """A variable with masks, whose comparison is built in its graph.

    Args:
        record: the variable.
        hold: its masks.
        site: the graph.

    Attributes:
        any: whether something moved, a tensor.
    """

    def __init__(self, record: Recorded, hold: Any, site: Site) -> None:
        super().__init__(record)
        self.hold = hold
        with site.building():
            self.any = tf.reduce_any(self.moved())
        self._compared = site.function(self._reduce)
        self.hold = None  # until something is held

    def channels(self) -> Channels:
        """See `Watch`."""
        return Channels(*self._compared())


class Comparison:
    """Watches the variables of a graph.

    Args:
        records: the variables.
        table: their masks.
        site: the graph.
    """

    def __init__(self, records: Sequence[Recorded], table: SessionTable, site: Site) -> None:
        self._site = site
        self._watches = {}
        for record in records:
            hold = table.made_of(record.found.variable)
            if hold is not None:
                self._watches[record.text.id] = SessionWatch(record, hold, site)

    def watch(self, record: Recorded) -> Watch:
        """See `Compiled`."""
        return self._watches[record.text.id]

    def moved(self, watches: Sequence[Watch]) -> Sequence[bool]:
        """See `Compiled`."""
        names = [watch.record.text.id for watch in watches]
        found: list[bool] = self._site.run([self._watches[name].any for name in names])
        return found


class Unknowing:
    """Knows no causes: a session doesn't tell who wrote a variable."""

    def begin(self, watch: Watch, state: MaskTable | None) -> None:
        """Nothing is remembered."""

    def tick(self, watches: Iterable[Watch], state: MaskTable | None) -> None:
        """Nothing is remembered."""

    def bypassed(self, state: MaskTable | None) -> set[str]:
        """None is known of."""
        return set()

    def cause(self, watch: Watch, channels: Ints, state: MaskTable | None) -> str:
        """Always the same."""
        return "unknown"
