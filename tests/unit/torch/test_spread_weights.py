"""Parts of weights: each element lies on one rank, in the channel that it has in the whole."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch isn't installed: an extra of its own")

from torch import nn  # noqa: E402

from tb_pastnet.torch.module_weights import network_of  # noqa: E402
from tb_pastnet.torch.spread_weights import parts_of  # noqa: E402

LAYERS = {
    "rows": (lambda: nn.Linear(3, 5), None),
    "units": (lambda: nn.LSTM(3, 5), None),
    "heads": (lambda: nn.MultiheadAttention(6, 2, add_bias_kv=True), None),
    "groups": (lambda: nn.ConvTranspose2d(4, 6, 3, groups=2), None),
    "outputs that come second": (lambda: nn.ConvTranspose1d(4, 6, 3), None),
    "columns": (lambda: nn.Linear(3, 5), {"weight": 1}),
    "elements": (lambda: nn.Linear(3, 5), {"weight": (1, 0)}),
    "a whole weight": (lambda: nn.Linear(3, 5), {"weight": ()}),
}


def shards(whole, axis, rank, ranks):
    """Stands for a DTensor: what one rank sees of it."""
    chunks = whole.detach().chunk(ranks, axis)
    local = chunks[rank] if rank < len(chunks) else whole.detach().narrow(axis, 0, 0)
    mesh = SimpleNamespace(ndim=1, shape=(ranks,), size=lambda: ranks, get_local_rank=lambda: rank)
    placement = SimpleNamespace(dim=axis, is_shard=lambda: True, is_partial=lambda: False)
    tensor = SimpleNamespace(shape=whole.shape, ndim=whole.ndim, to_local=lambda: local)
    tensor.device_mesh, tensor.placements, tensor.detach = mesh, (placement,), lambda: tensor
    return tensor


def channels_on_ranks(weight, axis, ranks):
    """Of each rank the elements, by number, that it has of each channel."""
    owner, key = weight.entry.owner, weight.entry.key
    whole = owner._parameters[key]
    numbers = torch.arange(whole.numel()).reshape(whole.shape)
    for rank in range(ranks):
        owner._parameters[key] = shards(numbers, axis, rank, ranks)
        part = parts_of([weight], ranks, first=rank == 0)[weight.name]
        rows = part.weight.axis.split(owner._parameters[key].to_local().numpy())
        owner._parameters[key] = whole
        assert part.weight.shape == tuple(shards(numbers, axis, rank, ranks).to_local().shape)
        channels = [[] for _ in range(part.total)]
        for channel, row in zip(part.channels, rows, strict=True):
            channels[channel] += row.tolist()
        yield channels


@pytest.mark.parametrize("name", LAYERS)
@pytest.mark.parametrize("ranks", [1, 2, 3, 8])
def test_ranks_together_have_each_channel_whole_and_no_element_twice(name, ranks):
    make, axes = LAYERS[name]
    for weight in network_of(make(), channel_axes=axes).weights:
        numbers = np.arange(np.prod(weight.shape)).reshape(weight.shape)
        for axis in range(len(weight.shape)):
            united = [[] for _ in range(weight.axis.channels)]
            for channels in channels_on_ranks(weight, axis, ranks):
                united = [mine + own for mine, own in zip(united, channels, strict=True)]
            expected = np.sort(weight.axis.split(numbers), axis=1).tolist()
            assert [sorted(channel) for channel in united] == expected, (weight.name, axis)


def test_rows_of_a_rank_are_whole_channels():
    (weight, _) = network_of(nn.Linear(3, 5)).weights
    first, second = channels_on_ranks(weight, 0, 2)
    assert [len(channel) for channel in first] == [3, 3, 3, 0, 0]
    assert [len(channel) for channel in second] == [0, 0, 0, 3, 3]


def test_what_is_not_spread_counts_on_the_first_rank_alone():
    weights = network_of(nn.Linear(3, 5)).weights
    assert list(parts_of(weights, 2, first=True)) == ["weight", "bias"]
    assert parts_of(weights, 2, first=False) == {}
