"""The log of a Recorder: a lineage, and another one each time that training begins anew."""

from __future__ import annotations

import os
import secrets
import time

from tb_pastnet.format.tags import RunName, lineage_directory
from tb_pastnet.record.batch import Batch, spans_of
from tb_pastnet.record.describer import Describer
from tb_pastnet.record.failures import Failures
from tb_pastnet.record.mask_tracker import MaskTracker
from tb_pastnet.record.overhead_timer import OverheadTotals
from tb_pastnet.record.probe_packer import ProbePacker
from tb_pastnet.record.schedule import Schedule
from tb_pastnet.record.segments import Segments, create_lineage, join, unwritable
from tb_pastnet.record.sink import Sink
from tb_pastnet.record.source import Source


class LineageLog:
    """Opens the files of a lineage, and makes its sink once it is known what it begins with.

    Raises:
        UnwritableLog: the log directory can't be made or written.
    """

    def __init__(
        self,
        logdir: str | os.PathLike[str],
        source: Source,
        packer: ProbePacker | None,
        failures: Failures,
    ) -> None:
        self._source = source
        self._packer = packer
        self._failures = failures
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

    def sink(
        self, schedule: Schedule, tracker: MaskTracker, totals: OverheadTotals, *, resumed: bool
    ) -> Sink:
        """Makes the sink of the lineage."""
        describe = Describer(
            self._run,
            self._source.network,
            every=schedule.every,
            past=schedule.past,
            own_origin=tracker.origin,
            audited=tracker.audited,
            packages=self._source.packages,
            resumed=resumed,
        )
        spans = spans_of(self._source.network.weights)
        batch = Batch(spans, self._run.lineage, packer=self._packer)
        return Sink(self._segments, batch, describe, self._failures, totals)

    def close(self) -> None:
        """Closes the files of a lineage that has no sink."""
        self._segments.close()

    def _new_segments(self) -> Segments:
        name = lineage_directory(self._run.ordinal, self._run.lineage)
        return Segments(join(self._run.run, name), time.time())
