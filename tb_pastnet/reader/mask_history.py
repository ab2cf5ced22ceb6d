"""What a run tells of held weights: its masks, and what the audit found of those that moved.

A restart supersedes here as it does for records: each step belongs to one lineage, the last one
that had begun by then, and each lineage begins with its complete masks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from tb_pastnet.core.lineage import first_steps_after
from tb_pastnet.core.names import MASKS
from tb_pastnet.core.violation import Violation
from tb_pastnet.reader import notes
from tb_pastnet.reader.audit import Audit
from tb_pastnet.reader.lineages import Lineage
from tb_pastnet.reader.mask_changes import MaskLog
from tb_pastnet.reader.notes import Notes
from tb_pastnet.reader.runs import Run

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class LineageHeld:
    """The same of one lineage.

    Attributes:
        masks: what its masks held, an empty one where it has none; None where it has masks and
            the log of their changes is gone.
        audit: what moved.
        size: bytes that it holds, about.
    """

    masks: MaskLog | None
    audit: Audit
    size: int

    @property
    def withheld(self) -> bool:
        """Whether TensorBoard could not hand out a part of it."""
        found = self.audit.notes if self.masks is None else self.audit.notes + self.masks.notes
        return notes.WITHHELD in found


@dataclass(frozen=True)
class MaskEvent:
    """A mask that changed.

    Attributes:
        step: the first step that it is in force at.
        mask: "kept" or "trainable".
        through: elements that it lets through from then on.
        elements: of the variable.
    """

    step: int
    mask: str
    through: int
    elements: int


@dataclass(frozen=True, eq=False)
class Held:
    """What a run tells of held weights.

    Attributes:
        lineages: its writers, in order.
        starts: the first step of each, None where it recorded nothing.
        logs: what each says of its masks, None where that is gone.
        violations: what the audit found and stands, by variable.
        notes: what could not be read, and why.
    """

    lineages: tuple[Lineage, ...] = ()
    starts: tuple[int | None, ...] = ()
    logs: tuple[MaskLog | None, ...] = ()
    violations: Mapping[str, tuple[Violation, ...]] = field(default_factory=dict)
    notes: Notes = field(default_factory=Counter)

    def standing(self, steps: Integers) -> Integers:
        """int64, like `steps`: the position of the lineage that each step belongs to, or -1."""
        found = np.full(np.shape(steps), 0 if self.lineages else -1)
        for at, start in enumerate(self.starts):
            if at and start is not None:
                found[steps >= start] = at
        return found

    def count(self, variable: str, mask: str, elements: int, steps: Integers) -> Floats:
        """How many elements of a variable a mask holds.

        Args:
            variable: its id.
            mask: "kept" or "trainable".
            elements: of the variable.
            steps: int64 (columns,).

        Returns:
            float64 (columns,): 0 where it holds none, NaN where no log says it or a part of the log
            is lost.
        """
        if all(log is not None and log.idle(variable, mask) for log in self.logs) and self.logs:
            return np.zeros(len(steps))
        counts = np.full(len(steps), np.nan)
        standing = self.standing(steps)
        for at, log in enumerate(self.logs):
            here = standing == at
            if log is not None and here.any():
                counts[here] = log.held(variable, mask, elements, steps[here])
        return counts

    def sure(self, variable: str, elements: int) -> bool:
        """Whether the log tells of a variable's kept mask at every step."""
        return bool(self.logs) and all(
            log is not None and log.sure(variable, "kept", elements) for log in self.logs
        )

    def pruned_once(self, variable: str) -> bool:
        """Whether its kept mask ever had a hole."""
        found = (log.of(variable, "kept") for log in self.logs if log is not None)
        return any(bool((one.through < one.elements).any()) for one in found)

    def events(self, variable: str) -> list[MaskEvent]:
        """The changes of a variable's masks that stand, in order.

        A lineage begins with its complete masks. Where these hold as many elements as the masks
        before the restart, nothing changed.
        """
        found = [one for mask in MASKS for one in self._changes(variable, mask)]
        return sorted(found, key=lambda one: one.step)

    def commanded(self, variable: str) -> Integers | None:
        """int64 (changes,), the steps at which a kept mask changed: held weights may move then.

        None where the writer looked itself for held weights that moved, and so `violations` tells.
        """
        known = [one.description for one in self.lineages if one.description is not None]
        if known and known[-1].audited:
            return None
        steps = [one.step for one in self.events(variable) if one.mask == "kept"]
        return np.array(steps, np.int64)

    def _changes(self, variable: str, mask: str) -> Iterator[MaskEvent]:
        for at, (log, cut) in enumerate(zip(self.logs, self._cuts(), strict=True)):
            changes = None if log is None else log.of(variable, mask)
            if changes is None:
                continue
            stands = len(changes.steps) if cut is None else np.searchsorted(changes.steps, cut)
            for i in range(int(stands)):
                step, through, elements = (
                    int(column[i]) for column in (changes.steps, changes.through, changes.elements)
                )
                if i or self._before(at, variable, mask, elements) != elements - through:
                    yield MaskEvent(step, mask, through, elements)

    def _before(self, at: int, variable: str, mask: str, elements: int) -> float:
        """What a mask held when a lineage began."""
        start = self.starts[at]
        if start is None or not at:
            return 0.0
        steps = np.array([start - 1])
        earlier = Held(self.lineages[:at], self.starts[:at], self.logs[:at])
        return float(earlier.count(variable, mask, elements, steps)[0])

    def _cuts(self) -> list[int | None]:
        return first_steps_after(self.starts)


def join(run: Run, parts: Sequence[LineageHeld]) -> Held:
    """Joins what the lineages of a run tell.

    Args:
        run: the run.
        parts: one for each of its lineages, in their order.
    """
    starts = tuple(one.begin for one in run.lineages)
    found: dict[str, list[Violation]] = {}
    said: Notes = sum((part.audit.notes for part in parts), Counter())
    said = sum((part.masks.notes for part in parts if part.masks is not None), said)
    cuts = first_steps_after(starts)
    for lineage, part, cut in zip(run.lineages, parts, cuts, strict=True):
        for violation in part.audit.violations:
            stands = _standing(violation, lineage, cut)
            variable = run.variables.get(violation.variable)
            if stands is not None and (variable is None or stands.channel >= variable.channels):
                said[notes.VIOLATIONS_ELSEWHERE] += 1
            elif stands is not None:
                found.setdefault(stands.variable, []).append(stands)
    return Held(
        run.lineages,
        starts,
        tuple(part.masks for part in parts),
        {variable: tuple(some) for variable, some in found.items()},
        said,
    )


def _standing(violation: Violation, lineage: Lineage, cut: int | None) -> Violation | None:
    """What is left of a violation where a later lineage replaced the steps from one on."""
    if cut is None or violation.last_step < cut:
        return violation
    if violation.first_step >= cut:
        return None
    steps = lineage.timeline.steps
    shown = steps[(steps >= violation.first_step) & (steps < cut)]
    last = int(shown[-1]) if len(shown) else violation.first_step
    return replace(violation, last_step=last)
