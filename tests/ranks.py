"""Ranks that are threads: each has its own rows of the same weights, in NumPy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

import numpy as np

from tb_pastnet.core.axes import explicit_axis
from tb_pastnet.record.audit.array_audit import ArrayAudit
from tb_pastnet.record.audit.decay_by_numbers import DecayByNumbers
from tb_pastnet.record.failures import Failures
from tb_pastnet.record.masks.declared_masks import declared_table
from tb_pastnet.record.schedule import Schedule
from tb_pastnet.record.source import ArraySource
from tb_pastnet.record.spread.audit import SpreadAudit
from tb_pastnet.record.spread.gathering import SpreadMeasures
from tb_pastnet.record.spread.parts import part_of
from tb_pastnet.record.weight import Network, Weight

CUTS = {"rows": 0, "columns": 1, "whole": None}
"""The axis along which each weight is cut; what isn't counts on rank 0 alone."""

SHAPE = 5, 4


class Meeting:
    """Where ranks put together what they have."""

    def __init__(self, count: int) -> None:
        self.barrier = Barrier(count, timeout=30)
        self.items: list[Any] = [None] * count


class ThreadRanks:
    """One of them: see `RankGroup` in `tb_pastnet.record.spread.parts`."""

    def __init__(self, meeting: Meeting, rank: int) -> None:
        self.count, self.first = len(meeting.items), rank == 0
        self._meeting, self._rank = meeting, rank

    def all(self, item: Any) -> list[Any]:
        self._meeting.items[self._rank] = item
        self._meeting.barrier.wait()
        items = [*self._meeting.items]
        self._meeting.barrier.wait()
        return items

    def maximum(self, values: Any) -> None:
        values[...] = np.max(self.all(values.copy()), axis=0)

    def total(self, values: Any) -> None:
        values[...] = np.sum(self.all(values.copy()), axis=0)

    def leave(self) -> None:
        self._meeting.barrier.abort()


class Local(Weight):
    """A weight of which `array` lies here."""

    def __init__(self, name: str) -> None:
        super().__init__(name, SHAPE, "float32", explicit_axis(0, SHAPE, name))
        self.array = np.zeros(0, np.float32)
        self.free = True

    def read(self) -> Any:
        return self.array

    def trainable(self) -> bool:
        return self.free


class Rank:
    """A rank as it trains: `measures` is what is tested, `give` sets its rows of whole values."""

    def __init__(self, meeting: Meeting, rank: int, *, every: int = 1, past: str = "previous"):
        self.rank, self.failures = rank, Failures()
        ranks = ThreadRanks(meeting, rank)
        self.whole = {name: Local(name) for name in CUTS}
        self.parts: dict[str, Any] = {}
        for name, cut in CUTS.items():
            if cut is None and rank:
                continue
            rows = np.array_split(np.arange(SHAPE[cut or 0]), ranks.count)[rank]
            shape = [len(rows) if axis == cut else size for axis, size in enumerate(SHAPE)]
            place = None if cut is None else (cut, int(rows[0]))
            self.parts[name] = part_of(self.whole[name], tuple(shape), place)
        self.give(dict.fromkeys(CUTS, np.zeros(SHAPE, np.float32)))
        network = Network.of([*self.whole.values()])
        own = Network(tuple(part.weight for part in self.parts.values()), (), (), ())
        held = [self.whole[name] for name in self.parts]
        flags = ArrayAudit(held, DecayByNumbers())
        self.masks = declared_table([*self.whole.values()])
        common = network.weights, self.parts, lambda: None, self.failures, lambda: self.masks
        self.audit = SpreadAudit(flags, *common)
        self.source = ArraySource(own)
        self.measures = SpreadMeasures(
            network,
            self.source,
            self.parts,
            ranks,
            Schedule(every, past, 0),
            self.audit,
            self.failures,
            settle=lambda: None,
        )

    def give(self, values: dict[str, Any]) -> None:
        for name, part in self.parts.items():
            cut, value = CUTS[name], values[name]
            pieces = [value] if cut is None else np.array_split(value, 2, axis=cut)
            part.weight.array = np.ascontiguousarray(pieces[self.rank])
            self.whole[name].array = part.weight.array


def on_each(action: Callable[[Rank], Any], **settings: Any) -> Sequence[Any]:
    """What two ranks give that do the same."""
    meeting = Meeting(2)
    with ThreadPoolExecutor(2) as threads:
        made = threads.map(lambda rank: action(Rank(meeting, rank, **settings)), range(2))
        return list(made)
