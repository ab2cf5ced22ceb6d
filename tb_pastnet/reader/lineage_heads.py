"""One writer's directory: its description, its timeline, and what could not be read of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain, islice
from typing import TypeVar

import numpy as np

from tb_pastnet.core.compared import Compared
from tb_pastnet.errors import UnreadableRecord
from tb_pastnet.format.budget import GROUP_RATES, MAX_NAMES
from tb_pastnet.format.compared import decode_compared
from tb_pastnet.format.description import Description, VariableEntry, decode_description
from tb_pastnet.format.overhead import Overhead, decode_overhead
from tb_pastnet.format.tags import (
    DESCRIPTIONS,
    TAG_COMPARED,
    TAG_OVERHEAD,
    TAG_TIMELINE,
    RunName,
    mask_of,
)
from tb_pastnet.format.timeline import Timeline, decode_timeline
from tb_pastnet.format.together import StoredChannels, stored_channels
from tb_pastnet.reader import notes
from tb_pastnet.reader.arrays import Floats, Integers
from tb_pastnet.reader.notes import Notes
from tb_pastnet.reader.series_source import Reading, SeriesVersion, StoredMessage
from tb_pastnet.reader.threads import a_few_at_once

Decoded = TypeVar("Decoded")

_MOST_TRIES = 64
"""Messages that are decoded to find a description: a hostile log has any number of bad ones."""


@dataclass(frozen=True)
class Lineage:
    """One unbroken sequence of steps by one writer: a restart begins another.

    Attributes:
        id: eight hexadecimal digits, random.
        ordinal: its place among the lineages of the run, from 1.
        first_step: the step of its first record, None if there is none.
        last_step: the step of its last record.
        closed: whether training ended normally there.

    Example:
        >>> lineage = Lineage("c228c1ba", 1, first_step=1, last_step=100, closed=True)
        >>> lineage.last_step - lineage.first_step
        99
    """

    id: str
    ordinal: int
    first_step: int | None
    last_step: int | None
    closed: bool


@dataclass(frozen=True, eq=False)
class LineageHead:
    """The facts of one lineage, without its channels."""

    tb_run: str  # TensorBoard's name of its directory
    name: RunName  # that name, parsed
    versions: Mapping[str, SeriesVersion]  # its series, by tag
    description: Description | None  # the latest readable one, None if there is none
    timeline: Timeline  # all readable blocks as one, each record once; the counts of the latest
    damaged: int = 0  # messages of the timeline that could not be read
    notes: Notes = field(default_factory=Counter)  # reasons, and the writer's own notes
    overhead: Overhead | None = None  # the recording overhead, None if not recorded
    names: int = 0  # in its description, even if that is left out
    # what was compared of its weights, by their places in the description; None if not recorded
    compared: Compared | None = None

    @cached_property
    def mask_versions(self) -> tuple[tuple[str, SeriesVersion], ...]:
        """Its series of masks, by tag."""
        return tuple((tag, version) for tag, version in self.versions.items() if mask_of(tag))

    @property
    def public(self) -> Lineage:
        """The form for `pastnet.read` and the index."""
        steps = self.timeline.steps
        return Lineage(
            f"{self.name.lineage:08x}",
            self.name.ordinal,
            int(steps[0]) if len(steps) else None,
            int(steps[-1]) if len(steps) else None,
            self.timeline.closed,
        )

    @property
    def recorded(self) -> tuple[float, float] | None:
        """When it made its first and its last record, in seconds since 1970; None without any."""
        times = self.timeline.wall_times
        return (float(times.min()), float(times.max())) if len(times) else None

    @cached_property
    def described(self) -> Mapping[str, VariableEntry]:
        """The variables that its description names, by id."""
        variables = self.description.variables if self.description else ()
        return {variable.id: variable for variable in variables}

    @cached_property
    def stored(self) -> Mapping[str, StoredChannels]:
        """Where the records of each of them are."""
        if self.description is None:
            return {}
        sizes = [(variable.id, variable.channels) for variable in self.description.variables]
        stored = stored_channels(sizes, self.description.together)
        return {id_: place for (id_, _), place in zip(sizes, stored, strict=True)}

    def rates_of(self, name: str) -> Floats:
        """The learning rates of a variable at the steps of the timeline.

        If its group has none, that of all others; NaN if these differ.
        """
        line, variable = self.timeline, self.described.get(name)
        group = None if variable is None else variable.group
        if group is None or group >= len(line.group_rates):
            return line.learning_rates
        rates: Floats = line.group_rates[group]
        return np.where(np.isnan(rates), line.learning_rates, rates)

    @property
    def rates_by_group(self) -> Mapping[str, Floats]:
        """The learning rates of each group at the steps of the timeline, by its name."""
        names = self.description.groups if self.description else ()
        return dict(zip(names, self.timeline.group_rates, strict=False))

    @property
    def start(self) -> int | None:
        """The first step by its description or its records, None without any.

        A readable description is enough, because it precedes all records: superseded records of
        earlier lineages don't come back if the rest of a file is lost.
        """
        firsts = self.timeline.steps[:1].tolist()
        if self.description is not None:
            firsts.append(self.description.first_step)
        return min(firsts, default=None)


def decode_all(
    messages: Iterable[StoredMessage],
    decode: Callable[..., Decoded],
    tag: str,
    lineage: int,
    lost: Notes,
    *,
    at_once: bool = False,
) -> Iterator[Decoded]:
    """Decodes the messages of a series, in order; notes those that can't be decoded in `lost`.

    `decode` takes the bytes, and by keyword `tag`, `step` and `lineage`: 0 for a user's own writer.
    """

    def decoded_or_note(message: StoredMessage) -> Decoded | str:
        if message.data is None:
            return notes.FOREIGN
        try:
            return decode(message.data, tag=tag, step=message.step, lineage=lineage)
        except UnreadableRecord as error:
            return notes.reason(error)

    results: Iterator[Decoded | str] = map(decoded_or_note, messages)
    if at_once:
        results = a_few_at_once(decoded_or_note, messages)
    for result in results:
        if isinstance(result, str):
            lost[result] += 1
        else:
            yield result


def make_lineage(
    tb_run: str, name: RunName, versions: Mapping[str, SeriesVersion], reading: Reading
) -> LineageHead:
    """Decodes a lineage's description, timeline and recording overhead."""
    readings, withheld = reading
    lost: Notes = Counter({notes.WITHHELD: 1} if (tb_run, TAG_TIMELINE) in withheld else {})

    def decoded(
        tag: str, decode: Callable[..., Decoded], noted: Notes, *, newest: bool = False
    ) -> Iterator[Decoded]:
        messages = readings.get((tb_run, tag), [])
        ordered = islice(reversed(messages), _MOST_TRIES) if newest else iter(messages)
        return decode_all(ordered, decode, tag, name.lineage, noted)

    timeline = merge_timelines(list(decoded(TAG_TIMELINE, decode_timeline, lost)))
    own_tags = *DESCRIPTIONS, TAG_OVERHEAD, TAG_COMPARED
    kept_back = [tag for tag in own_tags if (tb_run, tag) in withheld]
    lost_besides: Notes = Counter({notes.WITHHELD: len(kept_back)} if kept_back else {})
    # Each segment repeats the description, so the latest that can be read is enough.
    latest = (decoded(tag, decode_description, lost_besides, newest=True) for tag in DESCRIPTIONS)
    description = next(chain.from_iterable(latest), None)
    if description is None:
        lost_besides[notes.NO_DESCRIPTION] += 1
    # Totals only grow.
    totals = decoded(TAG_OVERHEAD, decode_overhead, lost_besides)
    overhead = max(totals, key=lambda total: (total.bytes, total.training), default=None)
    compared = next(decoded(TAG_COMPARED, decode_compared, lost_besides, newest=True), None)
    if compared is not None:
        compared = compared.of(0 if description is None else len(description.variables))
    noted = lost + lost_besides + Counter(timeline.notes)
    names = 0 if description is None else description.names
    own = tb_run, name, versions, description, timeline, lost.total(), noted, overhead, names
    return LineageHead(*own, compared)


def within_names(ordered: Iterable[LineageHead]) -> Iterator[LineageHead]:
    """The lineages of one directory, in order; without their descriptions once these are too many.

    Only their names count, see `format.budget`.
    """
    total = 0
    for head in ordered:
        total += head.names
        if total > MAX_NAMES and head.description is not None:
            yield replace(head, description=None, notes=head.notes + Counter({notes.IN_PART: 1}))
        else:
            yield head


def merge_timelines(blocks: Sequence[Timeline]) -> Timeline:
    """Joins the blocks of a timeline, in any order: each record once, with the latest counts."""
    if not blocks:
        return Timeline()
    sequence = np.concatenate([part.sequence for part in blocks])
    steps = np.concatenate([part.steps for part in blocks])
    rows = once(sequence, steps)
    groups = max(len(part.group_rates) for part in blocks)
    # A hostile message has many groups of which no other has a rate.
    most = GROUP_RATES.most(sum(part.group_rates.nbytes for part in blocks)) // max(len(steps), 1)
    noted = {notes.IN_PART: 1} if groups > most else {}
    groups = min(groups, most)
    group_rates = np.full((groups, len(steps)), np.nan)
    ends = np.cumsum([len(part.steps) for part in blocks])
    for part, end in zip(blocks, ends, strict=True):
        for group, rates in enumerate(part.group_rates[:groups]):
            group_rates[group, end - len(part.steps) : end] = rates
    latest = max(blocks, key=lambda part: (part.offered, part.at, part.closed))
    return Timeline(
        sequence[rows],
        steps[rows],
        np.concatenate([part.wall_times for part in blocks])[rows],
        np.concatenate([part.learning_rates for part in blocks])[rows],
        latest.offered,
        latest.thinned,
        latest.dropped,
        latest.closed,
        latest.notes | noted,
        group_rates[:, rows],
    )


def once(sequence: Integers, steps: Integers) -> Integers:
    """The rows of valid records, in the order of their numbers, int64 (records,).

    Each counts once, because a message may be written again after a failure, and only if its step
    is larger than all before it: others would break every picture.

    Example:
        >>> once(np.array([1, 1, 2, 3, 4, 5]), np.array([1, 1, 3, 2, 3, 4])).tolist()
        [0, 2, 5]
    """
    _, rows = np.unique(sequence, return_index=True)
    is_rising = np.ones(len(rows), bool)
    is_rising[1:] = steps[rows][1:] > np.maximum.accumulate(steps[rows])[:-1]
    return rows[is_rising]
