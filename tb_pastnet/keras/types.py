"""Names for objects of Keras and TensorFlow, which have no types: each is Any to mypy."""

from __future__ import annotations

from typing import Any, TypeAlias

Model: TypeAlias = Any
"""A keras.Model or layer, a tf.Module, or a mapping of names to variables."""

Variable: TypeAlias = Any
"""A keras.Variable, a tf.Variable, or an object like one."""

Tensor: TypeAlias = Any
TensorLike: TypeAlias = Any
"""A tensor, a variable, an array or a number."""

RateSource: TypeAlias = Any
"""Any source of a learning rate: see `Recorder`."""

Probed: TypeAlias = Any
"""A batch to call a model with, or a tuple of arguments."""
