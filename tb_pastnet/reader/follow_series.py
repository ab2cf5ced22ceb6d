"""How weights of a run follow others, from the messages of all its lineages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from tb_pastnet.core.lineage import first_steps_after
from tb_pastnet.format.budget import FOLLOWED_VALUES
from tb_pastnet.format.follows import FollowPair, Follows, decode_follows
from tb_pastnet.format.tags import TAG_FOLLOWS
from tb_pastnet.reader import notes
from tb_pastnet.reader.arrays import Flags
from tb_pastnet.reader.lineage_heads import LineageHead, decode_all
from tb_pastnet.reader.notes import Notes
from tb_pastnet.reader.series_source import SeriesName, StoredMessage

Readings = Mapping[SeriesName, Sequence[StoredMessage]]


@dataclass(frozen=True, eq=False)
class FollowSeries:
    """How each weight of a run follows another one: each of `pairs` has the records of one pair."""

    pairs: tuple[Follows, ...]
    notes: Notes

    @property
    def size(self) -> int:
        """Approximate size in bytes."""
        return sum(pair.values.nbytes for pair in self.pairs)


def join_follows(lineages: Sequence[LineageHead], readings: Readings) -> FollowSeries:
    """Joins the messages of a run's lineages, without what is superseded."""
    lost: Notes = Counter()
    cuts = first_steps_after([lineage.start for lineage in lineages])
    parts: dict[tuple[str, str], list[Follows]] = {}
    for number, message in _decoded(lineages, readings, lost):
        cut = cuts[number]
        rows = np.ones(len(message.steps), bool) if cut is None else message.steps < cut
        begin = 0
        for pair in message.pairs:
            own = _part(message, pair, slice(begin, begin + pair.channels), rows)
            parts.setdefault((pair.target, pair.source), []).append(own)
            begin += pair.channels
    return FollowSeries(tuple(_joined(own) for own in parts.values()), lost)


def _decoded(
    lineages: Sequence[LineageHead], readings: Readings, lost: Notes
) -> Iterator[tuple[int, Follows]]:
    """Each message within the budget, and the position of the lineage that wrote it."""
    work = stored = 0
    for number, lineage in enumerate(lineages):
        for message in readings.get((lineage.tb_run, TAG_FOLLOWS), ()):
            if work > FOLLOWED_VALUES.most(stored):
                lost[notes.IN_PART] += 1
                continue
            stored += len(message.data or b"")
            own = decode_all([message], decode_follows, TAG_FOLLOWS, lineage.name.lineage, lost)
            for follows in own:
                work += follows.values.size
                yield number, follows


def _part(message: Follows, pair: FollowPair, channels: slice, rows: Flags) -> Follows:
    return Follows(
        (pair,),
        message.sequence[rows],
        message.steps[rows],
        message.past_steps[rows],
        message.values[:, rows, channels],
    )


def _joined(parts: Sequence[Follows]) -> Follows:
    """The records of one pair in the order of their steps, each step once: the latest counts."""
    same = [each for each in parts if each.pairs[0].channels == parts[-1].pairs[0].channels]
    steps = np.concatenate([each.steps for each in same])
    _, last = np.unique(steps[::-1], return_index=True)
    rows = len(steps) - 1 - last
    values = np.concatenate([each.values for each in same], axis=1)
    past_steps = np.concatenate([each.past_steps for each in same])
    first = replace(same[0].pairs[0], channels=values.shape[2])
    return Follows((first,), rows, steps[rows], past_steps[rows], values[:, rows])
