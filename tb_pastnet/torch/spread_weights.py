"""Weights spread over ranks: the local part of each, and its channels."""

from __future__ import annotations

from collections.abc import Iterable
from copy import copy
from dataclasses import dataclass, replace
from math import prod

import numpy as np

from tb_pastnet.core.axes import ChannelAxis, explicit_axis
from tb_pastnet.errors import InvalidArgument
from tb_pastnet.record.source import Ints
from tb_pastnet.torch.module_tensor import is_spread, local_of
from tb_pastnet.torch.module_weights import TorchWeight


@dataclass(frozen=True)
class Part:
    """The part of a weight on this rank, as a weight itself.

    Its channels are no coarser than those of the whole: if gates, heads or groups follow one
    another, they are rows, several of which make a channel.

    Attributes:
        weight: the part.
        channels: for each of its channels the channel of the whole weight that it belongs to.
        total: how many channels the whole weight has.
    """

    weight: TorchWeight
    channels: Ints
    total: int


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
        placement = _placement(weight, ranks)
        if placement is None and not first:
            continue
        parts[weight.name] = _part(weight, placement)
    return parts


def _placement(weight: TorchWeight, ranks: int) -> tuple[int, int] | None:
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


def _part(weight: TorchWeight, placement: tuple[int, int] | None) -> Part:
    stored = weight.entry.stored
    # A weight that isn't spread may differ from its stored shape, by a parametrization.
    shape = tuple(local_of(stored.detach()).shape) if is_spread(stored) else weight.shape
    axes, numbers = _numbered(weight.axis)
    if placement is not None and placement[0] in axes:
        cut, begin = placement
        numbers = numbers.take(range(begin, begin + shape[cut]), axis=cut)
    part = copy(weight)
    part.shape, part.axis = shape, explicit_axis(axes, shape, weight.name)
    return Part(part, numbers.reshape(-1), weight.axis.channels)


def _numbered(axis: ChannelAxis) -> tuple[tuple[int, ...], Ints]:
    """The axes of the array itself that number channels, and the channel of each place on them."""
    first, last = axis.joined

    def own(place: int) -> int:
        return place if place < first else max(first, place - last + first)

    axes = {own(place) for place in axis.axes}
    # The same array with a single element on each other axis.
    view = tuple(size if own(place) in axes else 1 for place, size in enumerate(axis.view))
    thin = replace(axis, view=view)
    places = thin.split(np.arange(prod(view)).reshape(thin.shape))
    numbers = np.empty(prod(view), np.intp)
    numbers[places] = np.arange(axis.channels)[:, None]
    return tuple(sorted(axes)), numbers.reshape(thin.shape)
