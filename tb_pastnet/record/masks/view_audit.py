"""The audit of a view of weights, without a Recorder."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tb_pastnet.core.violation import Violation
from tb_pastnet.record.audit.freeze_audit import Audit


class ViewAudit:
    """Audits the weights that a view has at each call: a new audit begins if they are others.

    Args:
        make: returns an audit of some weights.
    """

    def __init__(self, make: Callable[[Sequence[Any]], Audit]) -> None:
        self._make = make
        self._audits: list[tuple[Mapping[str, Any], Audit]] = []

    def check(self, weights: Mapping[str, Any], step: int) -> list[Violation]:
        """All violations so far, by their first step."""
        if not self._audits or self._audits[-1][0] is not weights:
            self._audits.append((weights, self._make([*weights.values()])))
        self._audits[-1][1].check(step)
        return [violation for _, audit in self._audits for violation in audit.violations]

    def close(self) -> None:
        """Ends it."""
        for _, audit in self._audits:
            audit.close()
        self._audits.clear()
