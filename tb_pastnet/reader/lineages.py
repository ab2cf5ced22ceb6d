"""One writer's directory: its description, its timeline, and what could not be read of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from tb_pastnet.core.names import (
    TAG_DESCRIPTION,
    TAG_OVERHEAD,
    TAG_TIMELINE,
    RunName,
    variable_of,
)
from tb_pastnet.errors import UnreadableRecord
from tb_pastnet.format import description, timeline
from tb_pastnet.format.description import Description
from tb_pastnet.format.overhead import Overhead, decode_overhead
from tb_pastnet.format.timeline import Timeline
from tb_pastnet.reader import notes
from tb_pastnet.reader.notes import Notes
from tb_pastnet.reader.source import Message, Stamp
from tb_pastnet.reader.threads import Each, in_turn

Decoded = TypeVar("Decoded")


@dataclass(frozen=True, eq=False)
class Lineage:
    """What is known of one unbroken writer without its channels.

    Attributes:
        tb_run: TensorBoard's name of its directory.
        name: what that name says.
        stamps: its series.
        description: the latest readable one, None where there is none.
        timeline: all readable blocks as one, each record once; the counts of the latest.
        damaged: messages of the timeline that could not be read.
        notes: why, and what the writer itself noted.
        overhead: what it cost, None where it didn't tell.
    """

    tb_run: str
    name: RunName
    stamps: Mapping[str, Stamp]
    description: Description | None
    timeline: Timeline
    damaged: int = 0
    notes: Notes = field(default_factory=Counter)
    overhead: Overhead | None = None

    @cached_property
    def described(self) -> frozenset[str]:
        """The ids of the variables that its description names."""
        variables = self.description.variables if self.description else ()
        return frozenset(one.id for one in variables)

    @property
    def start(self) -> int | None:
        """The first step that it recorded, None where nothing is known to be recorded."""
        if not len(self.timeline.steps):
            return None
        first = int(self.timeline.steps[0])
        return first if self.description is None else min(first, self.description.first_step)

    @property
    def begin(self) -> int | None:
        """Like `start`, and also where its timeline is lost and its records aren't."""
        if self.start is None and self.description is not None:
            recorded = any(variable_of(tag) is not None for tag in self.stamps)
            return self.description.first_step if recorded else None
        return self.start


def decode_all(
    messages: Iterable[Message],
    decode: Callable[[bytes, int], Decoded],
    found: Notes,
    *,
    each: Each = in_turn,
) -> Iterator[Decoded]:
    """Decodes what can be decoded and notes the rest.

    Args:
        messages: events of one series.
        decode: takes the bytes and the step.
        found: gets one note for each message that can't be read.
        each: how one message after the other is decoded.

    Yields:
        The decoded messages, in order.
    """

    def tried(message: Message) -> Decoded | str:
        if message.data is None:
            return notes.FOREIGN
        try:
            return decode(message.data, message.step)
        except UnreadableRecord as error:
            return notes.reason(error)

    for one in each(tried, messages):
        if isinstance(one, str):
            found[one] += 1
        else:
            yield one


def make_lineage(
    tb_run: str,
    name: RunName,
    stamps: Mapping[str, Stamp],
    readings: Mapping[tuple[str, str], Sequence[Message]],
    withheld: Sequence[tuple[str, str]],
) -> Lineage:
    """Decodes a lineage's description and timeline, and what it cost.

    Args:
        tb_run: TensorBoard's name of its directory.
        name: what that name says.
        stamps: its series.
        readings: events by run and tag.
        withheld: series that TensorBoard could not hand out.
    """
    lost: Notes = Counter({notes.WITHHELD: 1} if (tb_run, TAG_TIMELINE) in withheld else {})
    blocks = list(
        decode_all(
            readings.get((tb_run, TAG_TIMELINE), ()),
            lambda data, step: timeline.decode_timeline(
                data, tag=TAG_TIMELINE, step=step, lineage=name.lineage
            ),
            lost,
        )
    )
    kept_back = [tag for tag in (TAG_DESCRIPTION, TAG_OVERHEAD) if (tb_run, tag) in withheld]
    others: Notes = Counter({notes.WITHHELD: len(kept_back)} if kept_back else {})
    described = _latest(readings.get((tb_run, TAG_DESCRIPTION), ()), name.lineage, others)
    costs = _overhead(readings.get((tb_run, TAG_OVERHEAD), ()), name.lineage, others)
    merged = merge_timelines(blocks)
    everything = lost + others + Counter(merged.notes)
    return Lineage(tb_run, name, stamps, described, merged, lost.total(), everything, costs)


def _latest(messages: Sequence[Message], lineage: int, found: Notes) -> Description | None:
    """The latest description that can be read: each segment repeats it, so one is enough."""

    def decode(data: bytes, step: int) -> Description:
        return description.decode_description(data, tag=TAG_DESCRIPTION, step=step, lineage=lineage)

    latest = next(decode_all(reversed(messages), decode, found), None)
    if latest is None:
        found[notes.NO_DESCRIPTION] += 1
    return latest


def _overhead(messages: Sequence[Message], lineage: int, found: Notes) -> Overhead | None:
    """The totals of the latest message that can be read; they only grow."""

    def decode(data: bytes, step: int) -> Overhead:
        return decode_overhead(data, tag=TAG_OVERHEAD, step=step, lineage=lineage)

    known = decode_all(messages, decode, found)
    return max(known, key=lambda one: (one.bytes, one.training), default=None)


def merge_timelines(blocks: Sequence[Timeline]) -> Timeline:
    """Joins the blocks of a timeline: each record once, in order, with the latest counts.

    Args:
        blocks: in any order, possibly twice.

    Returns:
        One timeline; an empty one of no blocks.

    Example:
        >>> merge_timelines([]).offered
        0
    """
    if not blocks:
        return Timeline()
    sequence = np.concatenate([part.sequence for part in blocks])
    _, first = np.unique(sequence, return_index=True)
    steps = np.concatenate([part.steps for part in blocks])
    first = first[rising(steps[first])]
    latest = max(blocks, key=lambda part: (part.offered, part.closed))
    return Timeline(
        sequence[first],
        steps[first],
        np.concatenate([part.wall_times for part in blocks])[first],
        np.concatenate([part.learning_rates for part in blocks])[first],
        latest.offered,
        latest.thinned,
        latest.dropped,
        latest.closed,
        latest.notes,
    )


def rising(steps: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    """Marks the steps that are larger than all before them: others break every picture.

    Example:
        >>> rising(np.array([1, 3, 2, 3, 4])).tolist()
        [True, True, False, False, True]
    """
    flags = np.ones(len(steps), bool)
    flags[1:] = steps[1:] > np.maximum.accumulate(steps)[:-1]
    return flags
