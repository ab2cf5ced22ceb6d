"""All ranks of a training, over the memory of their machines."""

from __future__ import annotations

from contextlib import suppress
from datetime import timedelta
from typing import Any

import numpy.typing as npt
import torch
import torch.distributed as dist

PATIENCE = timedelta(minutes=5)
"""What a rank waits for the others; then it records no more, and training goes on."""


class Ranks:
    """A process group of our own, so that nothing comes between the collectives of the training."""

    def __init__(self) -> None:
        self.count = dist.get_world_size()
        self._group: Any = dist.new_group(backend="gloo", timeout=PATIENCE)

    def all(self, item: Any) -> list[Any]:
        """What each rank passes, in their order, on each of them."""
        items: list[Any] = [None] * self.count
        dist.all_gather_object(items, item, group=self._group)
        return items

    def maximum(self, values: npt.NDArray[Any]) -> None:
        """Replaces values by the largest of all ranks, on each of them."""
        dist.all_reduce(torch.from_numpy(values), dist.ReduceOp.MAX, group=self._group)

    def total(self, values: npt.NDArray[Any]) -> None:
        """Replaces values by the sum over all ranks, on rank 0; elsewhere they are spoilt."""
        dist.reduce(torch.from_numpy(values), 0, dist.ReduceOp.SUM, group=self._group)

    def leave(self) -> None:
        """Lets go of the group, which the training may have ended with all others."""
        group, self._group = self._group, None
        if group is not None:
            with suppress(Exception):
                dist.destroy_process_group(group)
