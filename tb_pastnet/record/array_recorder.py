"""What Recorders of weights that are plain arrays share, in any framework."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tb_pastnet.core.axes import ChannelAxis
from tb_pastnet.core.mask_input import as_mask
from tb_pastnet.errors import InvalidArgument
from tb_pastnet.record.alerts import LOG, Wish
from tb_pastnet.record.audit.array_audit import ArrayAudit
from tb_pastnet.record.audit.decay_by_numbers import DecayByNumbers
from tb_pastnet.record.audit.freeze_audit import Audit
from tb_pastnet.record.failures import Failures
from tb_pastnet.record.mask_tracker import MaskTracker
from tb_pastnet.record.masks.declared_masks import declared_table
from tb_pastnet.record.recording import EXIT_TIMEOUT, Recording
from tb_pastnet.record.scalars import Log
from tb_pastnet.record.schedule import Schedule
from tb_pastnet.record.source import ArraySource
from tb_pastnet.record.weight import Array, Network, Weight

Rate = float | Callable[[int], float] | None
Declared = Mapping[str, Any]
"""By names of weights: booleans for whole ones, or arrays of 0 and 1 for their elements."""


class ArrayWeight(Weight):
    """A weight that a function reads. A user declares whether it is trainable."""

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

    def trainable(self) -> bool:
        """See `Weight`."""
        return self.declared_trainable


class RatedSource(ArraySource):
    """Arrays that are trained with a learning rate that is known from outside."""

    def __init__(
        self,
        network: Network[ArrayWeight],
        rate: Rate,
        packages: Sequence[str] = (),
        writes: bool = True,
    ) -> None:
        self._rate = rate
        self.packages = packages
        self._writes = writes
        super().__init__(network)

    @property
    def writes(self) -> bool:
        """See `Source`."""
        return self._writes

    def copy(self, number: int) -> None:
        """See `Source`. Where another process writes, nothing is kept."""
        if self._writes:
            super().copy(number)

    def learning_rate(self, step: int) -> float:
        """See `Source`."""
        rate = self._rate(step) if callable(self._rate) else self._rate
        return float("nan") if rate is None else float(rate)


class _DeclaredAudit(ArrayAudit):
    """What is held changes by `declare` alone, which has it seen at once."""

    def quick_key(self) -> tuple[bool, ...]:
        """See `AuditSource`."""
        return ()


class ArrayRecorder(Recording):
    """A `Recording` of weights that are arrays, with masks that are declared."""

    def __init__(
        self,
        logdir: str | os.PathLike[str],
        source: RatedSource,
        schedule: Schedule,
        masks: Declared,
        kept: Declared,
        *,
        audit: bool = True,
        on_violation: Wish = LOG,
        log: Log | None = None,
        exit_timeout: float = EXIT_TIMEOUT,
    ) -> None:
        self._weights: dict[str, Any] = {each.name: each for each in source.network.weights}
        self._table = declared_table(source.network.weights)
        self._declare(masks, kept)
        table, start = self._table, source.network.origin() if source.writes else ""
        audited = None
        if audit and source.writes:
            held = _DeclaredAudit(source.network.weights, DecayByNumbers())
            audited = Audit(held, lambda: table)
        failures = Failures()
        tracker = MaskTracker(
            source.network.weights, lambda: table, audited, lambda: start, failures
        )
        super().__init__(
            logdir,
            source,
            schedule,
            tracker,
            failures,
            on_violation=on_violation,
            log=log,
            exit_timeout=exit_timeout,
        )

    def _declare(self, masks: Declared, kept: Declared) -> None:
        """Takes over what updates may change, and what is kept; other weights stay as they are."""
        elements = {}
        for word, declared in (("trainable", masks), ("kept", kept)):
            for name, mask in declared.items():
                if name not in self._weights:  # it isn't recorded
                    continue
                weight = self._weights[name]
                if np.ndim(mask):
                    elements[name, word] = as_mask(mask, weight.shape, name, word)
                elif word == "trainable":
                    weight.declared_trainable = _flag(mask, name, word)
                else:
                    elements[name, word] = np.full(weight.shape, _flag(mask, name, word))
        for name in dict.fromkeys(name for name, _ in elements):
            old = self._table.read(name)
            new = elements.get((name, "kept"), old[0]), elements.get((name, "trainable"), old[1])
            if any((a != b).any() for a, b in zip(old, new, strict=True)):
                self._table.write(name, *new)


def _flag(value: Any, name: str, word: str) -> bool:
    if np.asarray(value).dtype.kind == "b":
        return bool(value)
    raise InvalidArgument(
        f"Could not take the {word} mask of {name!r}: expected True, False or an array of 0 and "
        f"1, got {value!r:.60}. Give False for a whole weight that is held."
    )
