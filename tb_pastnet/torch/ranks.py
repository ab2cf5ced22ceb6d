"""Communication between all ranks of a training, in CPU memory."""

from __future__ import annotations

from contextlib import suppress
from datetime import timedelta
from typing import Any

import numpy.typing as npt
import torch
import torch.distributed as dist

PATIENCE = timedelta(minutes=5)
"""The time that a rank waits for the others; then it stops recording, and training continues."""


class Ranks:
    """Our own process group, separate from the collectives of the training."""

    def __init__(self) -> None:
        self.count = dist.get_world_size()
        self._group: Any = dist.new_group(backend="gloo", timeout=PATIENCE)

    def all(self, item: Any) -> list[Any]:
        """The items of all ranks, in their order, on each of them."""
        items: list[Any] = [None] * self.count
        dist.all_gather_object(items, item, group=self._group)
        return items

    def maximum(self, values: npt.NDArray[Any]) -> None:
        """Replaces values by the largest of all ranks, on each of them."""
        dist.all_reduce(torch.from_numpy(values), dist.ReduceOp.MAX, group=self._group)

    def total(self, values: npt.NDArray[Any]) -> None:
        """Replaces values by the sum over all ranks, on rank 0; elsewhere they become invalid."""
        dist.reduce(torch.from_numpy(values), 0, dist.ReduceOp.SUM, group=self._group)

    def leave(self) -> None:
        """Releases the group, which the training may have ended with all others."""
        group, self._group = self._group, None
        if group is not None:
            with suppress(Exception):
                dist.destroy_process_group(group)
