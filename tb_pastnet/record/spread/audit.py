"""The audit of weights spread over ranks: each rank compares its own rows."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any
from weakref import WeakValueDictionary

import numpy as np

from tb_pastnet.record.audit.comparison import Channels, Ints
from tb_pastnet.record.audit.freeze_audit import Audit, AuditSource
from tb_pastnet.record.audit.held_array import HeldArray
from tb_pastnet.record.failures import Failures, noted
from tb_pastnet.record.masks.mask_table import MaskStorage, MaskTable
from tb_pastnet.record.spread.parts import Part, RankGroup
from tb_pastnet.record.weight import Mask, Weight


class _HeldPart(HeldArray):
    """This rank's part of a held weight; its `channels` are those of the whole weight."""

    def __init__(self, part: Part, elements: int) -> None:
        super().__init__(part.weight)
        self._part, self._elements = part, elements
        self._of_whole: MaskStorage | None = None
        self.gathered: Channels | None = None

    def follow(self, masks: MaskStorage | None, *, flagged: bool) -> bool:
        """See `Held`: `masks` are of the whole weight."""
        self._of_whole = masks
        own: Any = None if masks is None else _MasksOfPart(masks, self._part)
        return super().follow(own, flagged=flagged)

    def count(self) -> int:
        """See `Held`: of the whole weight."""
        if self.flagged or self._of_whole is None:
            return self._elements if self.flagged else 0
        kept, trainable = self._of_whole.read()
        return int(np.count_nonzero(~(kept & trainable)))

    def channels(self) -> Channels:
        """See `Held`: gathered from all ranks."""
        if self.gathered is None:
            raise RuntimeError("no rank has compared it yet")
        return self.gathered

    def own(self) -> Channels:
        """This rank's part of each channel of the whole weight."""
        rows, numbers = super().channels(), self._part.channels
        total = _no_channels(self._part.total)
        for name, row in rows._asdict().items():
            joined = np.maximum if name == "largest" else np.add
            joined.at(getattr(total, name), numbers, row)
        return total

    def worst(self, channels: Ints, count: int) -> Ints:
        """See `Held`: only those on this rank."""
        here = np.flatnonzero(np.isin(self._part.channels, channels))
        return super().worst(here, count) if here.size else here


class _MasksOfPart:
    """A read-only `MaskStorage` of a part, by the masks of the whole weight."""

    def __init__(self, masks: MaskStorage, part: Part) -> None:
        self.enforced, self.generation = masks.enforced, masks.generation
        self._masks, self._place = masks, part.place

    def read(self) -> tuple[Mask, Mask]:
        """See `MaskStorage`."""
        kept, trainable = self._masks.read()
        return kept[self._place], trainable[self._place]


class SpreadAudit(AuditSource):
    """Compares on each rank; on rank 0 `audit` judges the gathered results.

    Flags and causes are those of `own`, the audit of weights with rows on this rank; `weights` are
    the compared ones of all ranks. `settle` is called before weights are looked at. `masks` are of
    whole weights, the same on all ranks.
    """

    def __init__(
        self,
        own: AuditSource,
        weights: Sequence[Weight],
        parts: Mapping[str, Part],
        settle: Callable[[], None],
        failures: Failures,
        masks: Callable[[], MaskTable],
    ) -> None:
        self._own, self.weights, self.causes = own, own.weights, own.causes
        self._sizes = {each.name: each.axis.channels for each in weights}
        self._elements = {each.name: each.axis.channels * each.axis.elements for each in weights}
        self._parts, self._settle, self._failures = parts, settle, failures
        # The audit releases weights that aren't held any more.
        self._held: WeakValueDictionary[str, _HeldPart] = WeakValueDictionary()
        self._moved: set[str] | None = set()
        self.audit = Audit(self, masks)

    def held(self, weight: Any) -> HeldArray:
        """See `AuditSource`."""
        elements = self._elements[weight.name]
        held = self._held[weight.name] = _HeldPart(self._parts[weight.name], elements)
        return held

    def quick_key(self) -> Hashable:
        """See `AuditSource`."""
        return self._own.quick_key()

    def trainable(self) -> Sequence[bool]:
        """See `AuditSource`: the flags of this rank's parts."""
        self._settle()
        return self._own.trainable()

    def moved(self, held: Sequence[HeldArray]) -> list[bool]:
        """See `AuditSource`: on any rank, at the record that is made."""
        if self._moved is None:
            raise RuntimeError("not all ranks could compare")
        self._own.moved(())  # it sees more than that
        return [each.name in self._moved for each in held]

    def begin(self) -> None:
        """Drops gathered results of another lineage."""
        self._moved = set()

    @noted("Could not look at held weights")
    def observe(self) -> None:
        """Looks at held weights before the next update."""
        self.audit.observe(quick=True)

    def compare(self) -> list[bool]:
        """Whether that failed here, and for each weight of any rank whether it moved here."""
        self._moved = None
        try:
            self.audit.observe()
            held = [self._held.get(name) for name in self._sizes]
            return [False, *(bool(each and each.compared().differ().any()) for each in held)]
        except Exception as error:  # the others wait for this rank
            self._failures.add("Could not audit held weights", error)
            return [True, *(False for _ in self._sizes)]

    def gather(self, ranks: RankGroup, compared: Sequence[int]) -> None:
        """Gathers the channels of weights that moved: `compared` on any rank, as by `compare`."""
        failed, *moved = compared
        if failed:
            return
        names = [name for name, flag in zip(self._sizes, moved, strict=True) if flag]
        for name in names:
            held = self._held.get(name)
            own = self._counts(name, held)
            counts = np.stack([own.differ, own.held, own.fingerprint, own.expected])
            ranks.total(counts)
            ranks.maximum(own.largest)
            if held is not None:
                differ, all_held, fingerprint, expected = counts
                held.gathered = Channels(differ, all_held, own.largest, fingerprint, expected)
        self._moved = {*names}

    def _counts(self, name: str, held: _HeldPart | None) -> Channels:
        try:
            if held is not None:
                return held.own()
        except Exception as error:  # the others wait for this rank
            self._failures.add("Could not audit held weights", error)
        return _no_channels(self._sizes[name])


def _no_channels(count: int) -> Channels:
    differ, held, fingerprint, expected = np.zeros((4, count), np.int64)
    return Channels(differ, held, np.zeros(count), fingerprint, expected)
