"""How many elements the masks of one lineage held, step by step, and where that is unknown.

The log of changes counts them, so a change that can't be read leaves a gap. The variable of a lost
change is unknown: after a gap, each mask is unknown until its own next change.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain, islice
from typing import NamedTuple

import numpy as np

from tb_pastnet.core import overlap
from tb_pastnet.format.mask_bits import MaskBits, claimed, decode_mask
from tb_pastnet.format.mask_log import decode_mask_log
from tb_pastnet.format.tags import MASKS, TAG_MASKS
from tb_pastnet.reader import notes
from tb_pastnet.reader.arrays import NO_INTEGERS, Flags, Floats, Integers
from tb_pastnet.reader.lineage_heads import decode_all
from tb_pastnet.reader.notes import Notes
from tb_pastnet.reader.series_source import SeriesName, StoredMessage

MOST_CHANGES = 1 << 19
"""Changes of one lineage in memory; a hostile log inflates to any number of them."""

ALL_THROUGH, LOST = -1, -3
"""Instead of the position of a change: a mask without holes, and an unknown one."""

_MOST_TRIES = 8
"""Messages that are decoded for one mask: a hostile log has any number of it."""

_BEFORE_ALL = -(1 << 62)


@dataclass(frozen=True, eq=False)
class MaskChanges:
    """The changes of one mask of one variable, oldest first."""

    numbers: Integers  # (changes,), increasing, counted over all changes of the lineage
    steps: Integers  # (changes,), not decreasing: the first step whose record each is in force in
    through: Integers  # (changes,), elements that the mask lets through from then on
    elements: Integers  # (changes,), of the variable

    @property
    def last_event(self) -> int:
        """The step of the event that stores its last mask, -1 without one.

        It is the step of the change, unless the event before already has that step.
        """
        if not len(self.steps):
            return -1
        # Each is one more than the one before or its own step, whatever is larger.
        position = np.arange(len(self.steps))
        return int((self.steps - position).max() + position[-1])

    def in_force(self, steps: Integers) -> Integers:
        """int64, like `steps`: the position of the change in force at each, -1 before the first."""
        return np.searchsorted(self.steps, steps, side="right") - 1


_NO_CHANGES = MaskChanges(NO_INTEGERS, NO_INTEGERS, NO_INTEGERS, NO_INTEGERS)


class StoredMask(NamedTuple):
    """One mask after one change, and the location of its bits."""

    series: SeriesName  # that holds its bits
    lineage: int  # the writer's id
    number: int  # which of the lineage's changes it is
    position: int  # its place in its series, if nothing of that is lost
    through: int  # elements that it lets through
    elements: int  # of the variable
    cost: int  # bytes of its series, at most

    def decode(self, messages: Sequence[StoredMessage], most: int) -> MaskBits | None:
        """Finds it in its series: at its place first, else anywhere. None if unreadable.

        Each message decodes by itself, so the others don't matter. At most `most` elements are
        unpacked: a hostile log claims any number in a few bytes.
        """
        if self.elements > most:
            return None
        likely_first = chain(messages[self.position : self.position + 1], messages)
        numbered = (m for m in likely_first if claimed(m.data or b"")[0] == self.number)
        decode = partial(decode_mask, most=self.elements, through=self.through)
        tried = islice(numbered, _MOST_TRIES)
        masks = decode_all(tried, decode, self.series[1], self.lineage, Notes())
        mask = next((mask for mask in masks if mask.number == self.number), None)
        if mask is None or mask.elements != self.elements:
            return None
        is_sound = overlap.count(overlap.words(mask.bits)) == self.through
        return mask if is_sound else None


@dataclass(frozen=True, eq=False)
class MaskLog:
    """The mask changes of a lineage."""

    # by variable and mask
    changes: Mapping[tuple[str, str], MaskChanges] = field(default_factory=dict)
    # (gaps,), not decreasing: the number of the last change known before each
    gaps_after: Integers = field(default_factory=lambda: NO_INTEGERS)
    # (gaps,), not decreasing: the first step that a change lost there may have
    gaps_from: Integers = field(default_factory=lambda: NO_INTEGERS)
    # variables and masks with one more change than the log has
    torn: frozenset[tuple[str, str]] = frozenset()
    notes: Notes = field(default_factory=Counter)  # what could not be read, and why

    def of(self, variable: str, mask: str) -> MaskChanges:
        """The changes of one mask, none if it never had a hole."""
        return self.changes.get((variable, mask), _NO_CHANGES)

    def held(self, variable: str, mask: str, elements: int, steps: Integers) -> Floats:
        """How many elements a mask holds at some steps, float64 of their shape.

        0 if it lets all through, NaN if unknown; a mask with another number of elements than the
        variable belongs to an older network.
        """
        if self.idle(variable, mask):
            return np.zeros(len(steps))
        changes = self.of(variable, mask)
        row = changes.in_force(steps)
        # One more at the end, for -1: before its first change a mask has no hole.
        held = np.append(changes.elements - changes.through, 0).astype(np.float64)[row]
        fits = np.append(changes.elements == elements, True)[row]
        lost = self._lost(np.append(changes.numbers, -1)[row], steps)
        if (variable, mask) in self.torn:
            lost |= row == len(changes.steps) - 1
        return np.where(fits & ~lost, held, np.nan)

    def idle(self, variable: str, mask: str) -> bool:
        """Whether a mask is known never to have held anything."""
        name = (variable, mask)
        return name not in self.changes and not len(self.gaps_after) and name not in self.torn

    def sure(self, variable: str, mask: str, elements: int) -> bool:
        """Whether a mask is known at every step."""
        fits = (self.of(variable, mask).elements == elements).all()
        return bool(fits) and not len(self.gaps_after) and (variable, mask) not in self.torn

    def positions(self, variable: str, mask: str, elements: int, steps: Integers) -> Integers:
        """The position of the change in force at each step, or `ALL_THROUGH` or `LOST`."""
        row = self.of(variable, mask).in_force(steps)
        holes = self.held(variable, mask, elements, steps)
        return np.where(np.isnan(holes), LOST, np.where(holes > 0, row, ALL_THROUGH))

    def _lost(self, numbers: Integers, steps: Integers) -> Flags:
        latest = np.searchsorted(self.gaps_from, steps, side="right") - 1
        lost: Flags = np.append(self.gaps_after, -2)[latest] >= numbers
        return lost


def read_mask_log(
    messages: Sequence[StoredMessage],
    lineage: int,
    variables: Collection[str],
    *,
    stored: Mapping[tuple[str, str], int] | None = None,
    withheld: bool = False,
) -> MaskLog:
    """Decodes the changes of a lineage's masks from the events of the series `masks`.

    For other variables, and for unknown masks, only the numbers of changes count.
    `stored` is the largest event step of the series of each variable and mask, which may be that of
    a last change that the log lacks; `withheld` means that TensorBoard could not return the log.
    """
    lost: Notes = Counter({notes.WITHHELD: 1} if withheld else {})
    table, names, unread = _collect(messages, lineage, variables, lost)
    numbers, first = np.unique(table[:, 0], return_index=True)
    table = table[first]
    # A step that goes back contradicts the numbers: practically lost.
    sound = table[:, 1] >= np.maximum.accumulate(table[:, 1])
    missing = int(numbers.max(initial=-1)) + 1 - int(sound.sum())
    open_end = unread or withheld or not sound[-1:].all()
    numbers, table = numbers[sound], table[sound]
    gap = np.diff(numbers, prepend=-1) > 1
    numbers_known, since = np.append(-1, numbers), np.append(_BEFORE_ALL, table[:, 1])
    gaps = np.flatnonzero(np.append(gap, open_end))
    changes = _by_name(table, names)
    last = max((message.step for message in messages), default=-1)
    behind = {} if withheld or stored is None else {n: s for n, s in stored.items() if s > last}
    torn = frozenset(
        name
        for name, step in behind.items()
        if name[0] in variables and step > changes.get(name, _NO_CHANGES).last_event
    )
    if missing or torn:
        lost[notes.MASKS_LOST] += missing + len(torn)
    return MaskLog(changes, numbers_known[gaps], since[gaps], torn, lost)


def _by_name(
    table: Integers, names: Sequence[tuple[str, str]]
) -> dict[tuple[str, str], MaskChanges]:
    order = np.argsort(table[:, 2], kind="stable")
    bounds = np.searchsorted(table[order, 2], np.arange(len(names) + 1))
    return {
        name: MaskChanges(*(table[order[start:stop], column] for column in (0, 1, 3, 4)))
        for name, start, stop in zip(names, bounds[:-1], bounds[1:], strict=True)
    }


def _collect(
    messages: Sequence[StoredMessage], lineage: int, variables: Collection[str], lost: Notes
) -> tuple[Integers, list[tuple[str, str]], bool]:
    """Changes as rows: number, step, which of the names (or -1), through, elements.

    The flag shows whether something unreadable comes after the last of them.
    """
    names: dict[tuple[str, str], int] = {}
    rows: list[tuple[int, int, int, int, int]] = []
    unreadable = 0
    for changes in decode_all(messages, decode_mask_log, TAG_MASKS, lineage, lost):
        room = MOST_CHANGES - len(rows)
        if room and changes:
            unreadable = lost.total()
        for change in changes[:room]:
            name = (change.variable, change.mask)
            usable = change.variable in variables and change.mask in MASKS
            column = names.setdefault(name, len(names)) if usable else -1
            rows.append((change.number, change.step, column, change.through, change.elements))
        if len(changes) > room:
            lost[notes.MASKS_TOO_MANY] += 1
            break
    table = np.array(rows, np.int64).reshape(-1, 5)
    return table, list(names), lost.total() > unreadable
