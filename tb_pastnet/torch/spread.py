"""Modules whose weights are spread over ranks as DTensors, by FSDP2 or tensor parallelism."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Any

import numpy.typing as npt
import torch
import torch.distributed as dist
from torch import nn

from tb_pastnet.errors import InvalidArgument
from tb_pastnet.record.failures import Failures
from tb_pastnet.record.masks.mask_table import MaskTable
from tb_pastnet.record.schedule import Schedule
from tb_pastnet.record.source import Floats, Sketches
from tb_pastnet.record.spread.audit import SpreadAudit
from tb_pastnet.record.spread.gathering import SpreadMeasures
from tb_pastnet.record.spread.parts import Part, RankGroup, part_of
from tb_pastnet.record.weight import Network
from tb_pastnet.torch.module_audit import ModuleAudit
from tb_pastnet.torch.module_tensors import is_spread, local_of, reshard
from tb_pastnet.torch.module_weights import TorchWeight
from tb_pastnet.torch.optimizer_steps import OptimizerSteps
from tb_pastnet.torch.torch_source import TensorSource, TorchSource

PATIENCE = timedelta(minutes=5)
"""The time that a rank waits for the others; then it stops recording, and training continues."""


class Ranks(RankGroup):
    """Our own process group in CPU memory, separate from the collectives of the training."""

    def __init__(self) -> None:
        self.count, self.first = dist.get_world_size(), dist.get_rank() == 0
        self._group: Any = dist.new_group(backend="gloo", timeout=PATIENCE)

    def all(self, item: Any) -> list[Any]:
        """See `RankGroup`."""
        items: list[Any] = [None] * self.count
        dist.all_gather_object(items, item, group=self._group)
        return items

    def maximum(self, values: npt.NDArray[Any]) -> None:
        """See `RankGroup`."""
        dist.all_reduce(torch.from_numpy(values), dist.ReduceOp.MAX, group=self._group)

    def total(self, values: npt.NDArray[Any]) -> None:
        """See `RankGroup`."""
        dist.reduce(torch.from_numpy(values), 0, dist.ReduceOp.SUM, group=self._group)

    def leave(self) -> None:
        """Releases the group, which the training may have ended with all others."""
        group, self._group = self._group, None
        if group is not None:
            with suppress(Exception):
                dist.destroy_process_group(group)


class SpreadSource(TorchSource):
    """Returns the statistics gathered on rank 0; unused on other ranks."""

    def __init__(
        self, network: Network[TorchWeight], steps: OptimizerSteps, spread: SpreadMeasures
    ) -> None:
        self._spread = spread
        # No rank has all values of a weight and of the one that it follows.
        super().__init__(replace(network, follows={}), steps)

    def copy(self, number: int) -> None:
        """See `Source`: all ranks copy by their own schedule."""

    def compare(self, number: int, *, replace: bool = False) -> Floats:
        """See `Source`."""
        return self._spread.gathered()

    def sketches(self) -> Sketches | None:
        """See `Source`."""
        return self._spread.sketches


def measures_of(
    module: nn.Module,
    network: Network[TorchWeight],
    steps: OptimizerSteps,
    schedule: Schedule,
    failures: Failures,
    masks: Callable[[], MaskTable],
    *,
    audit: bool | str,
) -> SpreadMeasures:
    """Measures the rows of this rank, and gathers those of all. Call it on each rank."""
    ranks, settle = Ranks(), partial(reshard, module)
    parts = parts_of(network.weights, ranks.count, first=ranks.first)
    own = TensorSource(Network(tuple(part.weight for part in parts.values()), (), (), ()))
    audited = None
    if audit:
        held = [each for each in network.weights if not (each.statistic or each.entry.computed)]
        here = {name for name, part in parts.items() if part.channels.size}
        looked_at = [each for each in network.weights if each.statistic or each.name in here]
        flags = ModuleAudit(looked_at, steps, failures)
        audited = SpreadAudit(flags, held, parts, settle, failures, masks)
    return SpreadMeasures(network, own, parts, ranks, schedule, audited, failures, settle=settle)


def is_sharded(weight: TorchWeight) -> bool:
    """Whether ranks have different elements of it, so all have to take part in a record."""
    tensor = weight.entry.stored
    return is_spread(tensor) and any(each.is_shard() for each in tensor.placements)


def parts_of(weights: Iterable[TorchWeight], ranks: int, *, first: bool) -> dict[str, Part]:
    """The parts on this rank, by name. Weights that aren't spread count only on the `first` rank.

    Raises InvalidArgument if a weight isn't cut along one axis over all ranks.
    """
    parts = {}
    for weight in weights:
        cut, stored = _cut(weight, ranks), weight.entry.stored
        if cut is not None or first:
            # A weight that isn't spread may differ from its stored shape, by a parametrization.
            local = local_of(stored.detach()).shape if is_spread(stored) else weight.shape
            parts[weight.name] = part_of(weight, tuple(local), cut)
    return parts


def _cut(weight: TorchWeight, ranks: int) -> tuple[int, int] | None:
    """The axis that is cut, and the first row of this rank; None if each rank has all."""
    tensor = weight.entry.stored
    if not is_spread(tensor):
        return None
    mesh, placements = tensor.device_mesh, tensor.placements
    if mesh.ndim != 1 or mesh.size() != ranks or placements[0].is_partial():
        raise InvalidArgument(
            f"Could not record {weight.name!r}: expected shards over one axis of all {ranks} "
            f"ranks, got {placements} on a device mesh of shape {tuple(mesh.shape)}, as HSDP and "
            f"mixed parallelism have. Shard over all ranks by fully_shard to record."
        )
    if not placements[0].is_shard():
        return None
    cut = placements[0].dim % tensor.ndim
    longest = -(-tensor.shape[cut] // ranks)
    return cut, min(mesh.get_local_rank() * longest, tensor.shape[cut])
