"""Why weights didn't change, or did, in a `with` block, as far as their framework shows it."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import Any

import numpy as np

from tb_pastnet.core import standing
from tb_pastnet.core.subject import KERAS, TORCH, kind_of
from tb_pastnet.core.violation import CAUSES
from tb_pastnet.testing.bits import Array, as_floats
from tb_pastnet.testing.subjects import Tensor

Bits = Mapping[str, tuple[Array, str]]
"""By name, the bits of weights at the beginning, and their dtype."""


class Causes(AbstractContextManager["Causes"]):
    """What the framework's flags show, without a look at updates; trees have none."""

    free = ""
    running = ""

    def __exit__(self, *_: object) -> None:
        """Ends the look at updates."""

    def of_still(self, tensor: Tensor) -> str:
        """Why a tensor didn't move, in words; "" if that isn't known."""
        return tensor.frozen

    def of_moved(self, tensor: Tensor) -> str:
        """Why a tensor moved, in words; "" if that isn't known."""
        return self.running if tensor.statistic else "" if tensor.frozen else self.free


class _KerasCauses(Causes):
    free = "trainable is True: nothing froze it"
    running = "its layer is called with training=True"

    def __init__(self, model: Any) -> None:
        self._model = model
        self._optimizer, self._steps = self._now()

    def of_moved(self, tensor: Tensor) -> str:
        if tensor.statistic or not tensor.frozen:
            return super().of_moved(tensor)
        from tb_pastnet.keras.model.optimizers import trains
        from tb_pastnet.keras.model.walk import held_by

        optimizer, steps = self._now()
        stepped = optimizer is self._optimizer and steps > self._steps
        if not stepped or isinstance(tensor.value, np.ndarray):  # what a masked layer computes
            return ""
        return CAUSES["not_recompiled"] if trains(optimizer, held_by(tensor.value)) else ""

    def _now(self) -> tuple[Any, int]:
        """The optimizer of `compile`, and how many updates it has made."""
        optimizer = getattr(self._model, "optimizer", None)
        if optimizer is None:
            return None, 0
        from tb_pastnet.keras.model.optimizers import steps_of

        return optimizer, steps_of(optimizer)


class _TorchCauses(Causes):
    """Looks at each step of torch's optimizers."""

    free = "requires_grad is True: nothing froze it"
    running = "its layer is in training mode: call eval() on it"

    def __init__(self, module: Any, bits: Bits) -> None:
        from tb_pastnet.torch.module_weights import weights_of
        from tb_pastnet.torch.watched_updates import WatchedUpdates

        self._bits = bits
        self._updates = WatchedUpdates(weights_of(module), (), self._values_before)
        self._still: Mapping[str, str] | None = None

    def __exit__(self, *_: object) -> None:
        self._updates.close()

    def of_still(self, tensor: Tensor) -> str:
        name = tensor.name
        if name in self._updates.replaced():
            return "another parameter took its place; an optimizer made before has the former one"
        if tensor.frozen:
            return tensor.frozen
        if self._still is None:
            self._still = self._updates.why_still()
        cause = self._still[name]
        return "" if cause == standing.UNKNOWN else standing.in_words(cause)

    def of_moved(self, tensor: Tensor) -> str:
        name = tensor.name
        if name in self._updates.replaced():
            return "another parameter took its place"
        if tensor.statistic or not tensor.frozen:
            return super().of_moved(tensor)
        cause = self._updates.why_moved(name)
        return "" if cause == standing.UNKNOWN else CAUSES[cause]

    def _values_before(self, name: str) -> Any:
        values = as_floats(*self._bits[name])
        return np.zeros(0) if values is None else values


def causes_of(subject: Any, bits: Bits) -> Causes:
    """The causes for a subject; a look at updates begins at once."""
    kind = kind_of(subject)
    if kind == TORCH:
        return _TorchCauses(subject, bits)
    return _KerasCauses(subject) if kind == KERAS else Causes()
