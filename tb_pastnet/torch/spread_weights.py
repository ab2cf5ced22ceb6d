"""Weights that are DTensors: which of them ranks share, and the local part of each."""

from __future__ import annotations

from collections.abc import Iterable

from tb_pastnet.errors import InvalidArgument
from tb_pastnet.record.spread.parts import Part, part_of
from tb_pastnet.torch.module_tensor import is_spread, local_of
from tb_pastnet.torch.module_weights import TorchWeight


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
