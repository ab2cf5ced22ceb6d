"""The interface of a framework's ranks."""

from __future__ import annotations

from typing import Any, Protocol

import numpy.typing as npt


class RankGroup(Protocol):
    """All ranks of a training. Each takes part in each call."""

    count: int

    def all(self, item: Any) -> list[Any]:
        """The items of all ranks, in their order, on each rank."""

    def maximum(self, values: npt.NDArray[Any]) -> None:
        """Replaces values by their maximum over all ranks, on each rank."""

    def total(self, values: npt.NDArray[Any]) -> None:
        """Replaces values by the sum over all ranks, on rank 0; elsewhere they are undefined."""

    def leave(self) -> None:
        """Releases what was made for this."""
