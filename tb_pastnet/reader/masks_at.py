"""The masks of one variable at one step, bit by bit."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tb_pastnet.format.description import Variable
from tb_pastnet.reader.mask_store import MOST_ELEMENTS
from tb_pastnet.reader.run_reader import CALLER, Reader

Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class MasksAt:
    """The masks that were in force for the record of one step.

    Attributes:
        step: the step.
        kept: bool, of the variable's shape: False where a weight is pruned (held at zero). None
            where that isn't known: in a log of summary calls, where the change of a mask is lost,
            and for more than 2²⁸ weights.
        trainable: likewise: False where a weight is frozen (held at its value) by a mask. What
            `trainable=False` holds shows in the records, not here.
    """

    step: int
    kept: Flags | None
    trainable: Flags | None


def masks_at(reader: Reader, variable: Variable, step: int) -> MasksAt:
    """Reads masks.

    Args:
        reader: of the run.
        variable: one that it has.
        step: any step.
    """
    found = reader.store.masks_in_force(CALLER, reader.run, variable.id, step)

    def whole(mask: str, flags: Flags | None) -> Flags | None:
        if mask in found.unknown or math.prod(variable.shape) > MOST_ELEMENTS:
            return None
        return np.ones(variable.shape, bool) if flags is None else flags.reshape(variable.shape)

    return MasksAt(step, whole("kept", found.kept), whole("trainable", found.trainable))
