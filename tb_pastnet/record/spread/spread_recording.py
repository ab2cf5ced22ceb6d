"""A recording whose weights may be spread over ranks: then each rank does its part of all."""

from __future__ import annotations

from tb_pastnet.record.overhead_timer import RECORDS, metered
from tb_pastnet.record.recording import Recording
from tb_pastnet.record.spread.gathering import SpreadMeasures


class SpreadRecording(Recording):
    """Joins the calls that other ranks wait for. `_spread` is set before its constructor runs."""

    _spread: SpreadMeasures | None

    def follow(self, step: int) -> None:
        """See `Recording`."""
        if self._spread is not None:
            with self._timer.part(RECORDS):
                self._spread.follow(int(step))
        super().follow(step)

    @metered("Could not copy the past values")
    def sync(self) -> None:
        """See `Recording`."""
        if self._spread is not None:
            self._spread.sync()
        super().sync()

    @metered("Could not begin a new lineage")
    def restart(self, initial_step: int) -> None:
        """See `Recording`."""
        if self._spread is not None:
            self._spread.restart(initial_step)
        super().restart(initial_step)

    def expect_end(self, step: int) -> None:
        """See `Recording`."""
        if self._spread is not None:
            self._spread.expect_end(step)
        super().expect_end(step)

    def close(self, timeout: float | None = None) -> None:
        """See `Recording`."""
        super().close(timeout)
        if self._spread is not None:
            self._spread.leave()
