"""Keras and TensorFlow: recording, held masks, past networks, clones.

The names are loaded when they are first used; those of `tb_pastnet` itself are the same.

Example:
    >>> import tb_pastnet as pastnet
    >>> pastnet.keras.Recorder is pastnet.Recorder
    True
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tb_pastnet import lazy
from tb_pastnet.keras.versions import check_versions

if TYPE_CHECKING:
    from tb_pastnet.keras import summary as summary
    from tb_pastnet.keras.callback import PastNetCallback as PastNetCallback
    from tb_pastnet.keras.clones.clone import clone_network as clone_network
    from tb_pastnet.keras.layers.masked import Masked as Masked
    from tb_pastnet.keras.layers.masked import MaskedDense as MaskedDense
    from tb_pastnet.keras.masks.masks import Masks as Masks
    from tb_pastnet.keras.masks.masks import load_model as load_model
    from tb_pastnet.keras.masks.pruning import PruningCallback as PruningCallback
    from tb_pastnet.keras.past.past_deltas import PastDeltas as PastDeltas
    from tb_pastnet.keras.past.past_network import PastNetwork as PastNetwork
    from tb_pastnet.keras.past.past_variables import PastVariables as PastVariables
    from tb_pastnet.keras.recorder import Recorder as Recorder
    from tb_pastnet.record.masks.snapshots import Snapshot as Snapshot

check_versions()

_HOMES = {
    "Masked": "tb_pastnet.keras.layers.masked",
    "MaskedDense": "tb_pastnet.keras.layers.masked",
    "Masks": "tb_pastnet.keras.masks.masks",
    "PastDeltas": "tb_pastnet.keras.past.past_deltas",
    "PastNetCallback": "tb_pastnet.keras.callback",
    "PastNetwork": "tb_pastnet.keras.past.past_network",
    "PastVariables": "tb_pastnet.keras.past.past_variables",
    "PruningCallback": "tb_pastnet.keras.masks.pruning",
    "Recorder": "tb_pastnet.keras.recorder",
    "Snapshot": "tb_pastnet.record.masks.snapshots",
    "clone_network": "tb_pastnet.keras.clones.clone",
    "load_model": "tb_pastnet.keras.masks.masks",
    "summary": "tb_pastnet.keras.summary",
}

__all__ = list(_HOMES)

__getattr__ = lazy.names(__name__, _HOMES)


def __dir__() -> list[str]:
    return sorted(__all__)
