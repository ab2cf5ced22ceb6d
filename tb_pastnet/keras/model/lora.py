"""The weight that a layer with LoRA matrices computes with: base + alpha / rank · A B.

Hu et al. 2021, arXiv:2106.09685. Keras stores base, A and B separately, and none of them shows
whether the layer learns: the base is frozen.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

import keras
import tensorflow as tf

from tb_pastnet.keras.model.walk import Found

NAMES = ("kernel", "embeddings")


class LoraWeight:
    """The read-only effective weight of a layer."""

    def __init__(self, layer: keras.layers.Layer, name: str, base: tf.Variable) -> None:
        self._layer, self._name = layer, name
        self.shape, self.dtype = base.shape, base.dtype

    @property
    def trainable(self) -> bool:
        """Whether updates may change any part of it."""
        parts = (getattr(self._layer, f"lora_{self._name}_{part}") for part in "ab")
        return self._layer.trainable and any(part.trainable for part in parts)

    def numpy(self) -> Any:
        """The current value, as an array."""
        return tf.convert_to_tensor(self).numpy()

    def __tf_tensor__(self, dtype: Any = None, name: str | None = None) -> Any:
        value = getattr(self._layer, self._name)  # Keras adds A B if there are any
        return tf.convert_to_tensor(value, dtype, name=name)


def with_effective(entries: Iterable[Found]) -> Iterator[Found]:
    """Adds the effective weight, `lora_kernel`, after the base of each layer with LoRA matrices."""
    for entry in entries:
        yield entry
        if entry.name not in NAMES or not getattr(entry.owner, "lora_enabled", False):
            continue
        if entry.variable.dtype.is_floating:
            weight = LoraWeight(entry.owner, entry.name, entry.variable)
            name = f"lora_{entry.name}"
            yield replace(
                entry,
                name=name,
                variable=weight,
                given=weight,
                paths=(),
                rule=entry.name,
                computed=True,
            )
