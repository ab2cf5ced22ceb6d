"""The held weights of a run: its masks, and the violations that the audit found.

A restart supersedes here as it does for records: each step belongs to one lineage, the last one
that had begun by then, and each lineage begins with its complete masks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from tb_pastnet.core.lineage import first_steps_after
from tb_pastnet.core.violation import Violation
from tb_pastnet.format.tags import MASKS, TAG_MASKS, TAG_VIOLATIONS, mask_of, mask_tag
from tb_pastnet.format.violations import decode_violations
from tb_pastnet.reader import notes
from tb_pastnet.reader.arrays import Flags, Floats, Integers
from tb_pastnet.reader.cache import Cache
from tb_pastnet.reader.lineage_heads import LineageHead, decode_all
from tb_pastnet.reader.mask_changes import ALL_THROUGH, LOST, MaskLog, StoredMask, read_mask_log
from tb_pastnet.reader.notes import Notes
from tb_pastnet.reader.runs import CatalogRun
from tb_pastnet.reader.series_source import Reading, RequestContext, SeriesSource, StoredMessage

MOST_VIOLATIONS = 1 << 16
"""Violations of one run in memory, an equal part for each lineage; a hostile log inflates to any
number of them."""

MOST_ENTRIES = 1 << 19
"""Entries of one lineage that are read, the newest first: a violation that continues has many."""

_TAGS = (TAG_MASKS, TAG_VIOLATIONS)
_CHANGE_BYTES = 32
_VIOLATION_BYTES = 256


@dataclass(frozen=True, eq=False)
class LineageMasks:
    """The held weights of one lineage."""

    # its mask changes, empty if it has no masks; None if it has masks but the log of their changes
    # is gone
    log: MaskLog | None
    violations: tuple[Violation, ...] = ()  # held weights that moved
    notes: Notes = field(default_factory=Counter)  # what could not be read, and why

    @property
    def size(self) -> int:
        """Approximate size in bytes."""
        changes = self.log.changes.values() if self.log else ()
        masks = _CHANGE_BYTES * sum(len(changed.steps) for changed in changes)
        return masks + _VIOLATION_BYTES * len(self.violations)


@dataclass(frozen=True)
class MaskEvent:
    """A mask that changed."""

    step: int  # the first step at which it is in force
    mask: str  # "kept" or "trainable"
    through: int  # elements that it lets through from then on
    elements: int  # of the variable


@dataclass(frozen=True, eq=False)
class MaskHistory:
    """The held weights of a run."""

    lineages: tuple[LineageHead, ...] = ()  # its writers, in order
    logs: tuple[MaskLog | None, ...] = ()  # the mask changes of each, None if they are gone
    # the violations that count, by variable
    violations: Mapping[str, tuple[Violation, ...]] = field(default_factory=dict)
    notes: Notes = field(default_factory=Counter)  # what could not be read, and why

    @cached_property
    def starts(self) -> tuple[int | None, ...]:
        """The first step of each lineage, None if it recorded nothing."""
        return tuple(head.start for head in self.lineages)

    def standing(self, steps: Integers) -> Integers:
        """int64, like `steps`: the position of the lineage that each step belongs to, or -1."""
        positions = np.full(np.shape(steps), 0 if self.lineages else -1)
        for position, start in enumerate(self.starts):
            if position and start is not None:
                positions[steps >= start] = position
        return positions

    def in_force(
        self, variable: str, masks: Sequence[str], elements: int, steps: Integers
    ) -> tuple[Integers, Flags]:
        """Which changes made a variable's masks at some steps, and where that is known.

        int64 (masks + 1, steps): for each mask as `MaskLog.positions`, then the position of the
        lineage. Equal columns, equal masks.
        """
        table = np.full((len(masks) + 1, len(steps)), ALL_THROUGH)
        is_known = np.zeros(len(steps), bool)
        standing = self.standing(steps)
        for position, log in enumerate(self.logs):
            own = standing == position
            if log is None or not own.any():
                continue
            is_known[own], table[-1, own] = True, position
            for row, mask in enumerate(masks):
                table[row, own] = log.positions(variable, mask, elements, steps[own])
        is_known &= (table[:-1] != LOST).all(axis=0)
        table[-1, (table[:-1] == ALL_THROUGH).all(axis=0)] = ALL_THROUGH
        return table, is_known

    def stored(
        self, lineage: int, variable: str, mask: str, elements: int, change: int
    ) -> StoredMask:
        """The location of a mask's bits after one of its changes in a lineage, by positions."""
        head, log = self.lineages[lineage], self.logs[lineage] or MaskLog()
        changes = log.of(variable, mask)
        return StoredMask(
            (head.tb_run, mask_tag(mask, variable)),
            head.name.lineage,
            int(changes.numbers[change]),
            change,
            int(changes.through[change]),
            elements,
            len(changes.steps) * (elements // 8 + 1),
        )

    def count(self, variable: str, mask: str, elements: int, steps: Integers) -> Floats:
        """How many of a variable's elements a mask holds at some steps, float64 (columns,).

        NaN if no log has it or a part of the log is lost.
        """
        counts = np.full(len(steps), np.nan)
        standing = self.standing(steps)
        for position, log in enumerate(self.logs):
            own = standing == position
            if log is not None and own.any():
                counts[own] = log.held(variable, mask, elements, steps[own])
        return counts

    def sure(self, variable: str, elements: int) -> bool:
        """Whether the log determines a variable's kept mask at every step."""
        return bool(self.logs) and all(
            log is not None and log.sure(variable, "kept", elements) for log in self.logs
        )

    def pruned_once(self, variable: str) -> bool:
        """Whether its kept mask ever had a hole."""
        changes = (log.of(variable, "kept") for log in self.logs if log is not None)
        return any(bool((changed.through < changed.elements).any()) for changed in changes)

    def events(self, variable: str) -> list[MaskEvent]:
        """The changes of a variable's masks that stand, in order.

        A lineage begins with its complete masks. If these hold as many elements as the masks
        before the restart, nothing changed.
        """
        events = [event for mask in MASKS for event in self._changes(variable, mask)]
        return sorted(events, key=lambda event: event.step)

    @property
    def audited(self) -> bool:
        """Whether the writer audited held weights itself: see `violations`."""
        described = [head.description for head in self.lineages if head.description is not None]
        return bool(described) and described[-1].audited

    def commanded(self, variable: str) -> Integers | None:
        """int64 (changes,), the steps at which a kept mask changed, None if it is audited.

        Held weights may move at these steps.
        """
        if self.audited:
            return None
        steps = [event.step for event in self.events(variable) if event.mask == "kept"]
        return np.array(steps, np.int64)

    def _changes(self, variable: str, mask: str) -> Iterator[MaskEvent]:
        cuts = first_steps_after(self.starts)
        for position, (log, cut) in enumerate(zip(self.logs, cuts, strict=True)):
            if log is None:
                continue
            changes = log.of(variable, mask)
            stands = slice(None if cut is None else np.searchsorted(changes.steps, cut))
            columns = (changes.steps, changes.through, changes.elements)
            rows = zip(*(column[stands].tolist() for column in columns), strict=True)
            for row, (step, through, elements) in enumerate(rows):
                held = elements - through
                if row or self._held_at_start(position, variable, mask, elements) != held:
                    yield MaskEvent(step, mask, through, elements)

    def _held_at_start(self, position: int, variable: str, mask: str, elements: int) -> float:
        """The number of elements that a mask held when a lineage began."""
        start = self.starts[position]
        if start is None or not position:
            return 0.0
        earlier = MaskHistory(self.lineages[:position], self.logs[:position])
        return float(earlier.count(variable, mask, elements, np.array([start - 1]))[0])


def read_mask_history(
    source: SeriesSource, cache: Cache, context: RequestContext, run: CatalogRun
) -> MaskHistory:
    """Reads new data: all lineages in one call, and no call if nothing is new."""
    keys: dict[Hashable, LineageHead] = {
        ("masks", context.experiment, head.tb_run): head for head in run.lineages
    }
    variables = run.names
    most = max(MOST_VIOLATIONS // max(len(run.lineages), 1), 1)

    def read(missing: Sequence[Hashable]) -> Iterator[LineageMasks]:
        heads = [keys[key] for key in missing]
        listed = [head.tb_run for head in heads if not head.versions.keys().isdisjoint(_TAGS)]
        reading = source.read_listed(context, listed, _TAGS)
        return (_decode(head, variables, reading, most) for head in heads)

    versions = {key: (most, _version(head, variables)) for key, head in keys.items()}
    return join_masks(run, list(cache.get_each(versions, read).values()))


def _version(lineage: LineageHead, variables: Collection[str]) -> Hashable:
    return lineage.mask_versions, *(lineage.versions.get(tag) for tag in _TAGS), variables


def _decode(
    lineage: LineageHead, variables: Collection[str], reading: Reading, most: int
) -> LineageMasks:
    readings, withheld = reading
    run, writer = lineage.tb_run, lineage.name.lineage
    # Without a log of masks there are no changes, unless the log is lost.
    log = None if any(map(mask_of, lineage.versions)) else MaskLog()
    if TAG_MASKS in lineage.versions:
        messages = readings.get((run, TAG_MASKS), ())
        stored = {
            name[::-1]: version.max_step
            for tag, version in lineage.versions.items()
            if (name := mask_of(tag)) is not None
        }
        log = read_mask_log(messages, writer, variables, stored=stored, withheld=not messages)
    lost: Notes = Counter({notes.WITHHELD: 1} if (run, TAG_VIOLATIONS) in withheld else {})
    messages = readings.get((run, TAG_VIOLATIONS), ())
    violations = read_violations(messages, writer, variables, lost, most)
    return LineageMasks(log, violations, lost if log is None else lost + log.notes)


def read_violations(
    messages: Sequence[StoredMessage],
    lineage: int,
    variables: Collection[str],
    lost: Notes,
    most: int | None = None,
) -> tuple[Violation, ...]:
    """The violations of a lineage: the latest entry for each variable, channel and first step.

    What can't be read is noted in `lost`.
    """
    latest: dict[tuple[str, int, int], Violation] = {}
    most = MOST_VIOLATIONS if most is None else most
    read = 0
    newest = reversed(messages)
    for entries in decode_all(newest, decode_violations, TAG_VIOLATIONS, lineage, lost):
        if read >= MOST_ENTRIES:
            lost[notes.VIOLATIONS_TOO_MANY] += 1
            break
        for entry in entries:
            if entry.variable not in variables:
                lost[notes.VIOLATIONS_ELSEWHERE] += 1
            elif entry.key not in latest and len(latest) >= most:
                lost[notes.VIOLATIONS_TOO_MANY] += 1
            elif entry.key not in latest or latest[entry.key].last_step < entry.last_step:
                latest[entry.key] = entry
        read += len(entries)
    return tuple(latest.values())


def join_masks(run: CatalogRun, parts: Sequence[LineageMasks]) -> MaskHistory:
    """Joins the parts of a run's lineages, one for each, in their order."""
    standing: dict[str, list[Violation]] = {}
    lost: Notes = sum((part.notes for part in parts), Counter())
    cuts = first_steps_after([head.start for head in run.lineages])
    for lineage, part, cut in zip(run.lineages, parts, cuts, strict=True):
        for violation in part.violations:
            stands = _standing(violation, lineage, cut)
            variable = run.variables.get(violation.variable)
            if stands is not None and (variable is None or stands.channel >= variable.channels):
                lost[notes.VIOLATIONS_ELSEWHERE] += 1
            elif stands is not None:
                standing.setdefault(stands.variable, []).append(stands)
    return MaskHistory(
        run.lineages,
        tuple(part.log for part in parts),
        {variable: tuple(violations) for variable, violations in standing.items()},
        lost,
    )


def _standing(violation: Violation, lineage: LineageHead, cut: int | None) -> Violation | None:
    """What remains of a violation if a later lineage replaced the steps from one on."""
    if cut is None or violation.last_step < cut:
        return violation
    if violation.first_step >= cut:
        return None
    steps = lineage.timeline.steps
    shown = steps[(steps >= violation.first_step) & (steps < cut)]
    last = int(shown[-1]) if len(shown) else violation.first_step
    return replace(violation, last_step=last)
