"""Compares what is held in one compiled function."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tb_pastnet.keras.audit.watch import Watch, which_moved
from tb_pastnet.keras.measure.runner import EAGER
from tb_pastnet.keras.model.weights import TFWeight


class Compiled:
    """Variables that have their values at hand; the function is made anew when others are held."""

    def __init__(self) -> None:
        self._key: Any = None
        self._function: Any = None

    def watch(self, record: TFWeight) -> Watch:
        """Watches a variable from now on."""
        return Watch(record)

    def moved(self, watches: Sequence[Watch]) -> Sequence[bool]:
        """Which of them have a held element that moved."""
        key = [(watch, watch.version) for watch in watches]
        if key != self._key:
            self._key = key
            self._function = EAGER.fetch(lambda: which_moved(watches))
        found: list[bool] = self._function().tolist() if watches else []
        return found
