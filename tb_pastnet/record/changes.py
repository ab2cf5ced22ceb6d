"""Changes of masks, held weights that moved, and causes of being idle.

They aren't records and are never thinned.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from tb_pastnet.core.parallel import yield_gil
from tb_pastnet.core.violation import Violation
from tb_pastnet.format import limits
from tb_pastnet.format.mask_bits import MaskBits, encode_mask
from tb_pastnet.format.mask_log import MaskChange, encode_mask_log
from tb_pastnet.format.standing import StandingChange, encode_standing
from tb_pastnet.format.tags import TAG_MASKS, TAG_STANDING, TAG_VIOLATIONS, mask_tag
from tb_pastnet.format.violations import encode_violations
from tb_pastnet.record.messages import Message

GROUP_CHANGES = 1024
GROUP_BYTES = 16 << 20
"""Masks, and bytes, that are written together: later ones wait in the queue, which counts them."""

_ENTRY_BYTES = 256
_PIECE = 4096
_ENTRY_JSON = 512
"""Bytes that an entry takes besides its name, at most."""

Entry = TypeVar("Entry", MaskChange, Violation, StandingChange)


class MaskUpdate(NamedTuple):
    """A mask ("kept" or "trainable") as it is from a step on.

    Attributes:
        packed: uint8 (ceil(elements / 8),), `numpy.packbits` of it, not changed any more.
        free: elements that it lets through.
    """

    variable: str
    mask: str
    packed: npt.NDArray[np.uint8]
    elements: int
    free: int


class Change(NamedTuple):
    """Changes that were handed to the sink together.

    Attributes:
        step: the first step whose record has it in force, or shows it.
        lost: changes of masks dropped since the last one.
        sketches: of the newest record, which has none; its number comes first.
    """

    step: int
    masks: tuple[MaskUpdate, ...] = ()
    violations: tuple[Violation, ...] = ()
    lost: int = 0
    standing: tuple[StandingChange, ...] = ()
    sketches: tuple[int, npt.NDArray[np.float64]] | None = None

    @property
    def nbytes(self) -> int:
        """Approximate memory while it waits."""
        entries = len(self.masks) + len(self.violations) + len(self.standing)
        return sum(update.packed.nbytes for update in self.masks) + _ENTRY_BYTES * entries


class Changes:
    """Collects changes of masks, violations and causes, and packs them."""

    def __init__(self, lineage: int) -> None:
        self._lineage = lineage
        self._masks: dict[tuple[str, str, int], tuple[int, MaskUpdate]] = {}
        self._violations: dict[tuple[str, int, int], Violation] = {}
        self._violation_step = 0
        self._standing: dict[tuple[str, int], StandingChange] = {}
        self._bytes = 0
        self._lost = 0
        self._packed = 0
        self._last_steps: dict[str, int] = {}
        self._packing: dict[str, int] = {}

    @property
    def empty(self) -> bool:
        """Whether nothing waits."""
        return not (self._masks or self._violations or self._standing)

    @property
    def full(self) -> bool:
        """Whether so much waits that it is to be written."""
        return len(self._masks) >= GROUP_CHANGES or self._bytes >= GROUP_BYTES

    def add(self, change: Change) -> None:
        """Adds a change; may be repeated if it has raised.

        If the same mask of the same step still waits, or the same violation, it is replaced.
        """
        step, lost = max(change.step, 0), self._lost + change.lost
        for update in change.masks:
            key = (update.variable, update.mask, step)
            self._masks.pop(key, None)
            self._masks[key] = (lost, update)
        for violation in change.violations:
            self._violations[violation.key] = violation
            self._violation_step = step
        for cause in change.standing:
            self._standing[cause.variable, cause.step] = cause
        self._bytes += change.nbytes
        self._lost = lost

    def lose(self, change: Change) -> None:
        """Counts a change that couldn't be taken: the numbers of its masks will be missing."""
        self._lost += len(change.masks) + change.lost

    def pack(self) -> list[Message]:
        """Packs what waits; it keeps waiting until `done`."""
        self._packing = dict(self._last_steps)
        steps = self._packing
        return [
            *self._pack_masks(steps),
            *self._pack_violations(steps),
            *self._pack_standing(steps),
        ]

    def done(self) -> None:
        """Starts again: what was packed is written."""
        self._last_steps = self._packing
        self.drop()

    def drop(self) -> None:
        """Starts again. The reader finds lost changes by their missing numbers."""
        self._packed += len(self._masks)
        self._masks, self._violations, self._standing, self._bytes = {}, {}, {}, 0

    def _pack_masks(self, steps: dict[str, int]) -> Iterator[Message]:
        log = []
        waiting = enumerate(self._masks.items(), start=self._packed)
        for packed, ((variable, mask, step), (lost, update)) in waiting:
            # A missing number shows the reader that a change was lost.
            number = packed + lost
            tag = mask_tag(mask, variable)
            bits = MaskBits(number, step, update.elements, update.packed)
            own = _event_step(steps, tag, step)
            yield Message(tag, own, encode_mask(bits, tag=tag, step=own, lineage=self._lineage))
            log.append(MaskChange(number, step, variable, mask, update.free, update.elements))
            yield_gil()
        for piece in _pieces(log):
            last = _event_step(steps, TAG_MASKS, piece[-1].step)
            sealed = encode_mask_log(piece, tag=TAG_MASKS, step=last, lineage=self._lineage)
            yield Message(TAG_MASKS, last, sealed)

    def _pack_violations(self, steps: dict[str, int]) -> Iterator[Message]:
        for piece in _pieces(list(self._violations.values())):
            own = _event_step(steps, TAG_VIOLATIONS, self._violation_step)
            sealed = encode_violations(piece, tag=TAG_VIOLATIONS, step=own, lineage=self._lineage)
            yield Message(TAG_VIOLATIONS, own, sealed)
            yield_gil()

    def _pack_standing(self, steps: dict[str, int]) -> Iterator[Message]:
        for piece in _pieces(list(self._standing.values())):
            own = _event_step(steps, TAG_STANDING, piece[-1].step)
            sealed = encode_standing(piece, tag=TAG_STANDING, step=own, lineage=self._lineage)
            yield Message(TAG_STANDING, own, sealed)
            yield_gil()


def _pieces(entries: Sequence[Entry]) -> Iterator[Sequence[Entry]]:
    """Entries that one message holds, by their number and by the bytes of their names in JSON."""
    start = size = 0
    for number, entry in enumerate(entries):
        own = _ENTRY_JSON + 6 * len(entry.variable.encode())
        if number - start == _PIECE or (number > start and size + own > limits.MAX_JSON):
            yield entries[start:number]
            start, size = number, 0
        size += own
    if entries:
        yield entries[start:]


def _event_step(steps: dict[str, int], tag: str, step: int) -> int:
    # The steps of a tag must increase, or TensorBoard's fast loader drops events.
    steps[tag] = max(step, steps.get(tag, -1) + 1)
    return steps[tag]
