"""The tf.Variable of an object that has one."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from tb_pastnet.keras.types import Variable


def tf_variable(variable: Variable) -> Any:
    """The tf.Variable of a Keras variable, or the given tf.Variable; None for others."""
    # Up to Keras 3.6 a keras.Variable can't be recognised by its class.
    inner = variable if isinstance(variable, tf.Variable) else getattr(variable, "value", None)
    return inner if isinstance(inner, tf.Variable) else None
