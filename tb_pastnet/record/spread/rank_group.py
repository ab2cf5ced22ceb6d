"""The protocol for a framework's ranks."""

from __future__ import annotations

from typing import Any, Protocol

import numpy.typing as npt


class RankGroup(Protocol):
    """All ranks of a training. Each takes part in each call."""

    count: int

    def all(self, item: Any) -> list[Any]:
        """The items of all ranks, in order, on each of them."""

    def maximum(self, values: npt.NDArray[Any]) -> None:
        """Replaces values by the largest of all ranks, on each of them."""

    def total(self, values: npt.NDArray[Any]) -> None:
        """Replaces values by the sum over all ranks, on rank 0; elsewhere they become undefined."""

    def leave(self) -> None:
        """Releases its resources."""
