"""The audit of weights spread over ranks: each compares its own rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from weakref import WeakValueDictionary

import numpy as np
import torch

from tb_pastnet.record.audit.array_audit import HeldArray
from tb_pastnet.record.audit.comparison import Channels, Ints
from tb_pastnet.record.audit.freeze_audit import Audit
from tb_pastnet.record.failures import Failures
from tb_pastnet.torch.module_audit import ModuleAudit, ModuleCauses
from tb_pastnet.torch.module_weights import TorchWeight
from tb_pastnet.torch.modules import reshard
from tb_pastnet.torch.optimizer_steps import OptimizerSteps
from tb_pastnet.torch.ranks import Ranks
from tb_pastnet.torch.spread_weights import Part


class _HeldPart(HeldArray):
    """This rank's part of a held weight; its `channels` are those of the whole weight."""

    def __init__(self, part: Part) -> None:
        super().__init__(part.weight)
        self._part = part
        self.gathered: Channels | None = None

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
        """See `Held`: as far as they are here."""
        here = np.flatnonzero(np.isin(self._part.channels, channels))
        return super().worst(here, count) if here.size else here


class SpreadAudit(ModuleAudit):
    """Compares on each rank; on rank 0 `audit` judges the gathered results.

    Causes are found from the rows of rank 0.
    """

    def __init__(
        self,
        module: torch.nn.Module,
        weights: Sequence[TorchWeight],
        parts: Mapping[str, Part],
        steps: OptimizerSteps,
        failures: Failures,
    ) -> None:
        audited = [each for each in weights if not (each.statistic or each.entry.computed)]
        here = [each for each in audited if each.name in parts and parts[each.name].channels.size]
        statistics = [each for each in weights if each.statistic]
        super().__init__([*here, *statistics], ModuleCauses(steps), failures)
        self._module = module
        self._sizes = {each.name: each.axis.channels for each in audited}
        self._parts = parts
        # The audit releases weights that aren't held any more.
        self._held: WeakValueDictionary[str, _HeldPart] = WeakValueDictionary()
        self._moved: set[str] | None = set()
        self.audit = Audit(self, lambda: None)

    def held(self, weight: Any) -> HeldArray:
        """See `AuditSource`."""
        held = self._held[weight.name] = _HeldPart(self._parts[weight.name])
        return held

    def trainable(self) -> list[bool]:
        """See `AuditSource`: of shards, whose flags count."""
        reshard(self._module)
        return super().trainable()

    def moved(self, held: Sequence[HeldArray]) -> list[bool]:
        """See `AuditSource`: on any rank, at the record that is made."""
        if self._moved is None:
            raise RuntimeError("not all ranks could compare")
        self.note_statistics()
        return [each.name in self._moved for each in held]

    def begin(self) -> None:
        """Drops gathered results of another lineage."""
        self._moved = set()

    def observe(self) -> None:
        """Looks at held weights before the next update."""
        try:
            self.audit.observe(quick=True)
        except Exception as error:
            self._failures.add("Could not look at held weights", error)

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

    def gather(self, ranks: Ranks, compared: Sequence[int]) -> None:
        """Gathers the channels of weights that moved: `compared` on any rank, as by `compare`."""
        failed, *moved = compared
        if failed:
            return
        names = [name for name, flag in zip(self._sizes, moved, strict=True) if flag]
        for name in names:
            held = self._held.get(name)
            own = self._own(name, held)
            counts = np.stack([own.differ, own.held, own.fingerprint, own.expected])
            ranks.total(counts)
            ranks.maximum(own.largest)
            if held is not None:
                differ, all_held, fingerprint, expected = counts
                held.gathered = Channels(differ, all_held, own.largest, fingerprint, expected)
        self._moved = {*names}

    def _own(self, name: str, held: _HeldPart | None) -> Channels:
        try:
            if held is not None:
                return held.own()
        except Exception as error:  # the others wait for this rank
            self._failures.add("Could not audit held weights", error)
        return _no_channels(self._sizes[name])


def _no_channels(count: int) -> Channels:
    differ, held, fingerprint, expected = np.zeros((4, count), np.int64)
    return Channels(differ, held, np.zeros(count), fingerprint, expected)
