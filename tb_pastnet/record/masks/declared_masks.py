"""Masks that a user declares: nothing here holds weights, the audit reports where they move."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tb_pastnet.core.mask_input import Mask, as_mask, slim
from tb_pastnet.errors import InvalidArgument
from tb_pastnet.record.masks.mask_table import MaskRegistry, MaskTable
from tb_pastnet.record.weight import Weight


class DeclaredMasks:
    """Both masks of a weight, as arrays: see `MaskStorage`."""

    enforced = False

    def __init__(self, weight: Weight) -> None:
        self.variable = weight.variable
        self._axis = weight.axis
        self.generation = 0
        every: Mask = np.broadcast_to(np.True_, weight.shape)
        self._kept = self._trainable = every

    def read(self) -> tuple[Mask, Mask]:
        """Kept and trainable."""
        return self._kept, self._trainable

    def write(self, kept: Mask, trainable: Mask) -> None:
        """Sets both."""
        self._kept, self._trainable = slim(kept, self._axis), slim(trainable, self._axis)


def declared_table(weights: Sequence[Weight]) -> MaskTable:
    """A table of masks for some weights, all of which are let through at first."""
    # The registry has only weak references to them.
    storages = {weight.name: DeclaredMasks(weight) for weight in weights}
    return MaskTable(weights, MaskRegistry(), lambda weight: storages[weight.name])


def declare(table: MaskTable, trainable: Mapping[str, Any], kept: Mapping[str, Any]) -> None:
    """Sets what updates may change, and what is kept; other weights stay as they are.

    Both are by name of a weight; names that aren't in the table are ignored.
    """
    elements: dict[tuple[str, str], Mask] = {}
    for word, declared in (("trainable", trainable), ("kept", kept)):
        for name, mask in declared.items():
            if name in table.weights:
                shape = table.weights[name].shape
                elements[name, word] = (
                    as_mask(mask, shape, name, word)
                    if np.ndim(mask)
                    else np.broadcast_to(np.bool_(flag_of(mask, name, word)), shape)
                )
    for name in dict.fromkeys(name for name, _ in elements):
        old = table.read(name)
        new = elements.get((name, "kept"), old[0]), elements.get((name, "trainable"), old[1])
        if any((a != b).any() for a, b in zip(old, new, strict=True)):
            table.write(name, *new)


def flag_of(value: Any, name: str, word: str) -> bool:
    """The declaration of a whole weight; raises InvalidArgument if it isn't a boolean."""
    if np.asarray(value).dtype.kind == "b":
        return bool(value)
    raise InvalidArgument(
        f"Could not use the {word} mask of {name!r}: expected True, False or an array of 0 and "
        f"1, got {value!r:.60}. Pass False to hold a whole weight."
    )
