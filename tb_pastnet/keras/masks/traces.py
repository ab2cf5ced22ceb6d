"""The compiled steps of `fit`, traced again if they lack new masks."""

from __future__ import annotations

import weakref
from collections.abc import Iterable
from typing import Any

import tensorflow as tf

from tb_pastnet.keras.model.tf_variable import tf_variable

TRACED: weakref.WeakSet[Any] = weakref.WeakSet()
"""Models that have compiled a step, and may have to do so again."""


def retrace(variables: Iterable[tf.Variable]) -> None:
    """Makes `fit` trace steps again that may update variables. Your own steps are up to you."""
    ids = set(map(id, variables))
    for model in list(TRACED):
        if getattr(model, "train_function", None) is None:
            continue
        if not ids.isdisjoint(id(tf_variable(variable)) for variable in model.variables):
            model.make_train_function(force=True)
