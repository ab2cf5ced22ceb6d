"""The newest record, and whether weights have changed since."""

from __future__ import annotations

from typing import NamedTuple

from tb_pastnet.record.batch import Record
from tb_pastnet.record.schedule import Action
from tb_pastnet.record.source import Floats, Source


class LastRecord(NamedTuple):
    """What the newest record of a lineage measured.

    Attributes:
        step: of the record; -1 before the first of a lineage.
        values: its statistics.
        copy: the past copy that it was compared with; None if that has other values by now.
    """

    step: int = -1
    values: Floats | None = None
    copy: int | None = None

    @classmethod
    def of(cls, record: Record, action: Action) -> LastRecord:
        """What is kept of a record."""
        is_kept = action.past_step is not None and action.copy != action.compare
        return cls(record.step, record.values, action.compare if is_kept else None)

    def copied(self, number: int) -> LastRecord:
        """The same after a past copy was taken."""
        return self._replace(copy=None) if number == self.copy else self

    def has_changed(self, source: Source, end: Action) -> bool:
        """Whether any weight has changed since; `end` says what is known of past copies."""
        if self.values is None:
            return False
        is_since = end.past_step is not None and end.past_step >= self.step
        number = end.compare if self.copy is None else self.copy
        return source.has_changed(
            self.values, number, same_past=self.copy is not None, is_since=is_since
        )
