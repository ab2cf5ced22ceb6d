"""Arrays of JAX, which may be on an accelerator or in pieces on several: JAX isn't imported."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tb_pastnet.record.weight import Array


def fetch(value: Any) -> None:
    """Starts copying an array from an accelerator: many together take a third of the time."""
    if any(device.platform != "cpu" for device in getattr(value, "devices", set)()):
        value.copy_to_host_async()


def values_of(value: Any) -> Array:
    """Its values: a view if they are in this machine's memory, in one piece."""
    shards: Sequence[Any] = getattr(value, "addressable_shards", ())
    if len(shards) < 2:
        return np.asarray(value)
    if value.is_fully_replicated:
        return np.asarray(shards[0].data)
    # Of the whole, JAX 0.11 keeps views of the pieces, which then can't be donated.
    whole: Array = np.empty(value.shape, value.dtype)
    for shard in shards:
        if shard.replica_id == 0:
            whole[shard.index] = shard.data
    return whole
