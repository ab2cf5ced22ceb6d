"""The log of a Recorder: a lineage, and another one each time that training begins anew."""

from __future__ import annotations

import os
import secrets
import time

from tb_pastnet.format.tags import RunName, lineage_directory
from tb_pastnet.keras.cost.meter import Spent
from tb_pastnet.keras.feed import Feed
from tb_pastnet.keras.log.batch import Batch, Span
from tb_pastnet.keras.log.costs import Costs
from tb_pastnet.keras.log.functions import Functions
from tb_pastnet.keras.log.lineage import Describer
from tb_pastnet.keras.log.notes import Notes
from tb_pastnet.keras.log.segments import Segments, create_lineage, join, unwritable
from tb_pastnet.keras.log.sink import Sink
from tb_pastnet.keras.measure.schedule import Schedule
from tb_pastnet.keras.model.variables import Network


class Lineages:
    """Opens the files of a lineage, and makes its sink once it is known what it begins with.

    Args:
        logdir: the run's directory.
        network: what is recorded.
        spans: where the channels of each variable lie in a record.
        functions: packs what a probe says; None without one.
        notes: failures are counted here.

    Raises:
        UnwritableLog: the log directory can't be made or written.
    """

    def __init__(
        self,
        logdir: str | os.PathLike[str],
        network: Network,
        spans: list[Span],
        functions: Functions | None,
        notes: Notes,
    ) -> None:
        self._network = network
        self._spans = spans
        self._functions = functions
        self._notes = notes
        self._run = create_lineage(os.fspath(logdir))
        self._segments = self._new_segments()
        try:
            self._segments.open()
        except Exception as error:
            raise unwritable(os.fspath(logdir), error) from error

    def begin_another(self) -> None:
        """The next sink is that of a new lineage."""
        self._run = RunName(self._run.run, self._run.ordinal + 1, secrets.randbits(32) or 1)
        self._segments = self._new_segments()

    def sink(self, schedule: Schedule, feed: Feed, spent: Spent, *, resumed: bool) -> Sink:
        """Makes the sink of the lineage.

        Args:
            schedule: of the records.
            feed: of the masks.
            spent: what the lineage costs.
            resumed: training goes on from a checkpoint.
        """
        describe = Describer(
            self._run,
            self._network,
            every=schedule.every,
            past=schedule.past,
            own_origin=feed.origin,
            audited=feed.audited,
            resumed=resumed,
        )
        batch = Batch(self._spans, self._run.lineage, functions=self._functions)
        costs = Costs(spent, self._run.lineage)
        return Sink(self._segments, batch, describe, self._notes, costs=costs)

    def close(self) -> None:
        """Closes the files of a lineage that has no sink."""
        self._segments.close()

    def _new_segments(self) -> Segments:
        name = lineage_directory(self._run.ordinal, self._run.lineage)
        return Segments(join(self._run.run, name), time.time())
