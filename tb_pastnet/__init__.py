"""See which channels of a network move, are frozen or are pruned.

The public names, loaded when they are first used: importing this package imports neither TensorFlow
nor TensorBoard.

Example:
    >>> import tb_pastnet as pastnet
    >>> "PastNetCallback" in dir(pastnet)
    True
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tb_pastnet import lazy

if TYPE_CHECKING:
    from tb_pastnet import errors as errors
    from tb_pastnet import jax as jax
    from tb_pastnet import keras as keras
    from tb_pastnet import numpy as numpy
    from tb_pastnet import testing as testing
    from tb_pastnet import torch as torch
    from tb_pastnet import v1 as v1
    from tb_pastnet.core.decay import OneShot as OneShot
    from tb_pastnet.core.decay import PolynomialDecay as PolynomialDecay
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
    from tb_pastnet.reader.log import read as read
    from tb_pastnet.record.masks.snapshots import Snapshot as Snapshot
    from tb_pastnet.torch.watching import watch as watch

__version__ = "0.1.0"

_HOMES = {
    "Masked": "tb_pastnet.keras.layers.masked",
    "MaskedDense": "tb_pastnet.keras.layers.masked",
    "Masks": "tb_pastnet.keras.masks.masks",
    "OneShot": "tb_pastnet.core.decay",
    "PastDeltas": "tb_pastnet.keras.past.past_deltas",
    "PastNetCallback": "tb_pastnet.keras.callback",
    "PastNetwork": "tb_pastnet.keras.past.past_network",
    "PastVariables": "tb_pastnet.keras.past.past_variables",
    "PolynomialDecay": "tb_pastnet.core.decay",
    "PruningCallback": "tb_pastnet.keras.masks.pruning",
    "Recorder": "tb_pastnet.keras.recorder",
    "Snapshot": "tb_pastnet.record.masks.snapshots",
    "clone_network": "tb_pastnet.keras.clones.clone",
    "errors": "tb_pastnet.errors",
    "jax": "tb_pastnet.jax",
    "keras": "tb_pastnet.keras",
    "load_model": "tb_pastnet.keras.masks.masks",
    "numpy": "tb_pastnet.numpy",
    "read": "tb_pastnet.reader.log",
    "summary": "tb_pastnet.keras.summary",
    "testing": "tb_pastnet.testing",
    "torch": "tb_pastnet.torch",
    "v1": "tb_pastnet.v1",
    "watch": "tb_pastnet.torch.watching",
}
_NAMESAKES = {"jax", "keras", "numpy", "torch"}
"""Rooms that have the name of what they record: a star import mustn't put them in its place."""
_NEEDS_NOTHING = {"OneShot", "PolynomialDecay", "errors", "jax", "numpy", "read", "torch", "v1"}
_NEEDS_NOTHING |= {"Snapshot", "testing", "watch"}

# What a star import gives: it would fail at the first name that can't be loaded.
_ANY = _HOMES if lazy.installed("tensorflow", "keras") else _NEEDS_NOTHING
__all__ = [name for name in _HOMES if name in _ANY and name not in _NAMESAKES]

__getattr__ = lazy.names(__name__, _HOMES, _NEEDS_NOTHING)


def __dir__() -> list[str]:
    return sorted([*_HOMES, "__version__"])
