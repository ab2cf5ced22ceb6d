"""The common part of Recorders of plain arrays, in any framework."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tb_pastnet.core.axes import ChannelAxis
from tb_pastnet.core.checks import check_rate
from tb_pastnet.record.audit.array_audit import ArrayAudit
from tb_pastnet.record.audit.decay_by_numbers import DecayByNumbers
from tb_pastnet.record.audit.freeze_audit import Audit, CauseFinder
from tb_pastnet.record.failures import Failures
from tb_pastnet.record.mask_tracker import MaskTracker
from tb_pastnet.record.masks.declared_masks import declare, declared_table, flag_of
from tb_pastnet.record.options import PRINTS, Options
from tb_pastnet.record.recording import Recording
from tb_pastnet.record.resting import HeldChannels, Resting
from tb_pastnet.record.schedule import Schedule
from tb_pastnet.record.source import ArraySource
from tb_pastnet.record.weight import Array, Network, Weight

Rate = float | Callable[[int], float] | None
Declared = Mapping[str, Any]
"""By name of a weight: a boolean for all of it, or an array of 0 and 1 for its elements."""


class ArrayWeight(Weight):
    """A weight read by a function. The user declares whether it is trainable."""

    def __init__(
        self,
        name: str,
        shape: Sequence[int],
        dtype: str,
        axis: ChannelAxis,
        read: Callable[[], Array],
        *,
        kind: str = "",
        statistic: bool = False,
        follows: bool = False,
    ) -> None:
        super().__init__(name, shape, dtype, axis, kind=kind, statistic=statistic, follows=follows)
        self._read = read
        self.declared_trainable = True

    def read(self) -> Array:
        """See `Weight`."""
        return self._read()

    def shares_memory(self, other: Weight) -> bool:
        """See `Weight`."""
        return np.shares_memory(self.read(), other.read())

    def trainable(self) -> bool:
        """See `Weight`."""
        return self.declared_trainable


class RatedSource(ArraySource):
    """Arrays with a learning rate that is passed in; `given` is that of a single step instead."""

    network: Network[Any]

    def __init__(
        self,
        network: Network[ArrayWeight],
        rate: Rate,
        packages: Sequence[str] = (),
        process: int = 0,
        processes: int = 1,
        resting: Resting | None = None,
    ) -> None:
        check_rate(rate)
        self._rate = rate
        self.given: Any = None
        self.packages = packages
        super().__init__(network, process, processes, resting)

    def trainable(self) -> Sequence[bool]:
        """See `Source`."""
        return [each.text.follows or each.declared_trainable for each in self.network.weights]

    def learning_rate(self, step: int) -> float:
        """See `Source`."""
        rate = self.given
        if rate is None:
            rate = self._rate(step) if callable(self._rate) else self._rate
        return float("nan") if rate is None else float(rate)


class DeclaredAudit(ArrayAudit):
    """An audit of `ArrayWeight`s, whose flags are read quickly."""

    weights: Sequence[Any]

    def trainable(self) -> list[bool]:
        """See `AuditSource`."""
        return [weight.text.follows or weight.declared_trainable for weight in self.weights]


class ArrayRecorder(Recording):
    """A `Recording` of arrays with declared masks."""

    _source: RatedSource

    def __init__(
        self,
        logdir: str | os.PathLike[str],
        network: Network[Any],
        source_of: Callable[[Resting | None], RatedSource],
        schedule: Schedule,
        trainable: Declared,
        kept: Declared,
        options: Options,
        causes: CauseFinder | None = None,
    ) -> None:
        weights, failures = network.weights, Failures()
        self._table = table = declared_table(weights)
        self._declare(trainable, kept)
        channels, always = HeldChannels(table), options.audit == PRINTS
        source = source_of(Resting.among(weights, channels, always=always))
        start, audited = "", None
        if source.writes:
            start = network.origin(source.looks)
            if options.audit:
                held = DeclaredAudit(
                    weights, causes or DecayByNumbers(), options.audit, source.looks
                )
                audited = Audit(held, lambda: table)
        tracker = MaskTracker(weights, lambda: table, audited, lambda: start, failures)
        super().__init__(logdir, source, schedule, tracker, failures, options)
        source.release()

    def _declare(self, trainable: Declared, kept: Declared) -> None:
        """Sets what updates may change, and what is kept; other weights stay as they are."""
        whole = {name: mask for name, mask in trainable.items() if not np.ndim(mask)}
        flags = {
            name: flag_of(mask, name, "trainable")
            for name, mask in whole.items()
            if name in self._table.weights
        }
        elements = {name: mask for name, mask in trainable.items() if name not in whole}
        declare(self._table, elements, kept)  # all of it, or nothing
        # A mask takes the place of an earlier False.
        flags |= {name: True for name in elements if name in self._table.weights}
        for name, flag in flags.items():
            self._table.weights[name].declared_trainable = flag
