"""Reads masks and violations, only where there are any and only what is new."""

from __future__ import annotations

import math
from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tb_pastnet.core.names import (
    MASKS,
    TAG_MASKS,
    TAG_VIOLATIONS,
    mask_of,
    mask_tag,
)
from tb_pastnet.errors import UnreadableRecord
from tb_pastnet.format.mask_bits import MaskBits, decode_mask
from tb_pastnet.reader import deleted_runs as vanished
from tb_pastnet.reader.audit import Audit, read_audit
from tb_pastnet.reader.cache import Cache
from tb_pastnet.reader.lineages import Lineage
from tb_pastnet.reader.mask_changes import MaskLog, read_mask_log
from tb_pastnet.reader.mask_history import Held, LineageHeld, join
from tb_pastnet.reader.runs import SUMMARY, Run
from tb_pastnet.reader.source import Caller, Message, Source

Flags = npt.NDArray[np.bool_]
Reading = tuple[Mapping[tuple[str, str], Sequence[Message]], Sequence[tuple[str, str]]]

_TAGS = (TAG_MASKS, TAG_VIOLATIONS)
_CHANGE_BYTES = 32
_VIOLATION_BYTES = 256
_NEVER_FITS = 1 << 62

MOST_ELEMENTS = 1 << 28
"""Elements of a mask that is unpacked: 256 MiB. A hostile log claims any number in a few bytes."""


@dataclass(frozen=True, eq=False)
class MasksInForce:
    """The masks of one variable at one step.

    Attributes:
        kept: bool (elements,), row by row; True lets the weight through, False holds it at 0. None
            where all are through, or where it isn't known.
        trainable: likewise; False holds the weight at its value.
        unknown: "kept" and "trainable", those of which it isn't known.
    """

    kept: Flags | None
    trainable: Flags | None
    unknown: tuple[str, ...] = ()


class MaskStore:
    """Reads and keeps what runs tell of held weights. Safe to use from many threads.

    Args:
        source: TensorBoard's data.
        cache: shared with other readers.
    """

    def __init__(self, source: Source, cache: Cache) -> None:
        self._source = source
        self._cache = cache

    def held(self, caller: Caller, run: Run) -> Held:
        """What a run tells of held weights: no provider call where there is nothing new.

        Args:
            caller: on whose behalf.
            run: from the catalog.
        """
        told = [one for one in run.lineages if any(tag in one.stamps for tag in _TAGS)]
        known = frozenset(run.variables)
        new = [one.tb_run for one in told if not self._fresh(caller, one, known)]
        reading = vanished.read(self._source, caller, new, _TAGS)
        parts = {one.tb_run: self._part(caller, one, known, reading) for one in told}
        for one in run.lineages:
            if one.tb_run not in parts:
                parts[one.tb_run] = LineageHeld(_maskless(one), Audit(), 0)
        return join(run, [parts[one.tb_run] for one in run.lineages])

    def _fresh(self, caller: Caller, lineage: Lineage, known: Collection[str]) -> bool:
        return self._cache.holds(_key(caller, lineage), _version(lineage, known))

    def _part(
        self, caller: Caller, lineage: Lineage, known: Collection[str], reading: Reading
    ) -> LineageHeld:
        def make() -> tuple[LineageHeld, int]:
            # Not read: it was held a moment ago and had to make room since.
            was_read = any(run == lineage.tb_run for run, _ in (*reading[0], *reading[1]))
            found = reading
            if not was_read:
                found = vanished.read(self._source, caller, [lineage.tb_run], _TAGS)
            part = _decode(lineage, known, found)
            return part, _NEVER_FITS if part.withheld else part.size

        return self._cache.get(_key(caller, lineage), _version(lineage, known), make)

    def in_force(self, caller: Caller, run: Run, variable: str, step: int) -> MasksInForce:
        """The masks of a variable as records of a step saw them. Not kept: masks are large.

        Args:
            caller: on whose behalf.
            run: from the catalog.
            variable: an id that the run has.
            step: any step.
        """
        if run.source == SUMMARY:
            return MasksInForce(None, None, MASKS)
        held = self.held(caller, run)
        found: dict[str, Flags | None] = {}
        unknown = []
        for mask in MASKS:
            known, found[mask] = self._mask(caller, run, held, (variable, mask), step)
            if not known:
                unknown.append(mask)
        return MasksInForce(found["kept"], found["trainable"], tuple(unknown))

    def _mask(
        self, caller: Caller, run: Run, held: Held, which: tuple[str, str], step: int
    ) -> tuple[bool, Flags | None]:
        """Whether a mask is known, and its elements where it has a hole."""
        variable, mask = which
        at = int(held.standing(np.array([step]))[0])
        lineage, log = run.lineages[at], held.logs[at]
        if log is None:
            return False, None
        elements = math.prod(run.variables[variable].shape)
        holes = log.held(variable, mask, elements, np.array([step]))[0]
        if not holes > 0:
            return bool(holes == 0), None
        tag = mask_tag(mask, variable)
        number = log.number(variable, mask, step)
        readings, _ = vanished.read(self._source, caller, [lineage.tb_run], [tag])
        messages = readings.get((lineage.tb_run, tag), ())
        bits = _find(messages, number, tag, lineage.name.lineage, elements)
        if bits is None or bits.elements != elements or elements > MOST_ELEMENTS:
            return False, None
        flags = bits.flags
        return (True, flags) if elements - np.count_nonzero(flags) == holes else (False, None)


def _key(caller: Caller, lineage: Lineage) -> Hashable:
    return "held", caller.experiment, lineage.tb_run


def _version(lineage: Lineage, known: Collection[str]) -> Hashable:
    masks = tuple((tag, stamp) for tag, stamp in lineage.stamps.items() if mask_of(tag))
    return masks, *(lineage.stamps.get(tag) for tag in _TAGS), known


def _decode(lineage: Lineage, known: Collection[str], reading: Reading) -> LineageHeld:
    readings, withheld = reading
    run, writer = lineage.tb_run, lineage.name.lineage
    masks = _maskless(lineage)
    if TAG_MASKS in lineage.stamps:
        log = readings.get((run, TAG_MASKS), ())
        stored = {
            found[::-1]: stamp.max_step
            for tag, stamp in lineage.stamps.items()
            if (found := mask_of(tag)) is not None
        }
        masks = read_mask_log(log, writer, known, stored=stored, withheld=not log)
    audit = read_audit(
        readings.get((run, TAG_VIOLATIONS), ()),
        writer,
        known,
        withheld=(run, TAG_VIOLATIONS) in withheld,
    )
    changes = sum(len(one.steps) for one in masks.changes.values()) if masks else 0
    size = _CHANGE_BYTES * changes + _VIOLATION_BYTES * len(audit.violations)
    return LineageHeld(masks, audit, size)


def _maskless(lineage: Lineage) -> MaskLog | None:
    """What a lineage without a log of masks says: nothing was held, unless the log is lost."""
    return None if any(map(mask_of, lineage.stamps)) else MaskLog()


def _find(
    messages: Sequence[Message], number: int, tag: str, lineage: int, elements: int
) -> MaskBits | None:
    """The mask of one change; each message decodes alone, so the others don't matter."""
    for message in messages:
        if message.data is None:
            continue
        try:
            found = decode_mask(
                message.data, tag=tag, step=message.step, lineage=lineage, most=elements
            )
        except UnreadableRecord:
            continue
        if found.number == number:
            return found
    return None
