"""The causes of violations without access to an optimizer: from the numbers only."""

from __future__ import annotations

import numpy as np

from tb_pastnet.record.audit.causes import DECLARED, FLAG, Array, Facts
from tb_pastnet.record.audit.comparison import SAMPLE, Ints
from tb_pastnet.record.audit.freeze_audit import CauseFinder
from tb_pastnet.record.audit.held_array import HeldArray

_ENOUGH = 4
"""With this many elements, shrinking by one factor is no chance: 3 of 10⁵ random moves do so."""


class DecayByNumbers(CauseFinder):
    """Recognises weight decay by its effect: all moved elements shrink by one factor."""

    def facts(self, held: HeldArray, channels: Ints) -> Facts:
        """See `CauseFinder`."""
        was, current = held.values_at(held.worst(channels, SAMPLE))
        by = FLAG if held.flagged else DECLARED
        decay = _decay(was, current)
        if decay and np.count_nonzero(was) < _ENOUGH:
            _, expected, flags = held.compared()
            others = np.count_nonzero(expected if flags is None else expected[flags]) >= _ENOUGH
            decay = 0.0 if others else np.nan  # it would have moved the others, too
        # As of one update with a rate of 1: how many there were, and with which, isn't known.
        return Facts(was, current, by, decay=decay, rates=[np.ones(1)])


def _decay(was: Array, current: Array) -> float:
    """The share by which elements have shrunk; 0 if it isn't one share."""
    wide = np.asarray(was, np.float64)
    if not wide.any():
        return 0.0
    factor = float(np.asarray(current, np.float64) @ wide / (wide @ wide))
    return 1 - factor if 0 < factor < 1 else 0.0
