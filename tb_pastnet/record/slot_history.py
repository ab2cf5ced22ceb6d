"""What the slots of idle weights show: whether their optimizer continues to update them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from tb_pastnet.core.standing import UNKNOWN
from tb_pastnet.record.weight import Array, Weight

SAMPLED = 1 << 12
"""Elements of a slot that are compared with those of the record before."""

_SMALLEST_RATE = 1e-6
"""The learning rate from which on float32 has room for the updates of usual weights."""


class SlotHistory:
    """Compares some elements of slots with those of the record before."""

    def __init__(self) -> None:
        self._before: Mapping[int, Sequence[Array]] = {}
        self._now: dict[int, Sequence[Array]] = {}

    def next(self) -> None:
        """Begins another record."""
        self._before, self._now = self._now, {}

    def cause(self, number: int, weight: Weight, samples: Sequence[Array], rate: float) -> str:
        """Whether updates of a weight are thrown away, else unknown; the rate may be NaN.

        In 16 bits, or at a tiny rate, they may be rounded away as well.
        """
        self._now[number] = samples
        exact = weight.dtype in ("float32", "float64") and rate >= _SMALLEST_RATE
        return (
            "thrown_away" if exact and advance(self._before.get(number, ()), samples) else UNKNOWN
        )


def advance(before: Sequence[Array], now: Sequence[Array]) -> bool:
    """Whether slots take in gradients: without any they only shrink, all elements alike."""
    if len(before) != len(now):
        return False
    return any(
        old.shape == new.shape and not _proportional(old, new)
        for old, new in zip(before, now, strict=True)
    )


def _proportional(old: Array, new: Array) -> bool:
    size = float(np.abs(old).max(initial=0))
    if not size:
        return not new.any()
    largest = int(np.abs(old).argmax())
    return bool(np.allclose(new, old * (new[largest] / old[largest]), rtol=1e-3, atol=1e-6 * size))
