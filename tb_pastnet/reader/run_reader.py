"""How the parts of a run reach their data: the store of the tab, over files."""

from __future__ import annotations

from functools import cached_property

from tb_pastnet.reader.marked import marks_of
from tb_pastnet.reader.mask_history import Held
from tb_pastnet.reader.notes import Notes
from tb_pastnet.reader.runs import Run
from tb_pastnet.reader.source import Caller
from tb_pastnet.reader.store import Store
from tb_pastnet.reader.violation import Violation
from tb_pastnet.reader.violation_list import listed

CALLER = Caller(None, "")
"""Nobody: files know neither requests nor experiments."""


class Reader:
    """Reads one run.

    Attributes:
        store: over the files of a log directory.
        run: of its catalog.
    """

    def __init__(self, store: Store, run: Run) -> None:
        self.store = store
        self.run = run

    @cached_property
    def held(self) -> Held:
        """What the run tells of its masks, and of held weights that moved."""
        return self.store.held(CALLER, self.run)

    @cached_property
    def violations(self) -> tuple[Violation, ...]:
        """All violations, by first step, then in the order of layers and channels.

        Where no audit was written they are made of the records, with the cause "unknown".
        """
        marks = marks_of(self.store, CALLER, self.run, Notes())
        _, found = listed(self.run, self.held.violations, marks, most=None)
        return tuple(Violation(**one) for one in found)
