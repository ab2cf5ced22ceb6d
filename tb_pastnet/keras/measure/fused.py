"""Which variables numba measures, in the memory that TensorFlow holds them in.

TensorFlow's functions take several passes over it and hold what is between them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from tb_pastnet.core.memory_layout import Values, layout_of
from tb_pastnet.keras.measure.learning_rate import LearningRate
from tb_pastnet.keras.measure.runner import EAGER
from tb_pastnet.keras.measure.stacks import Stack
from tb_pastnet.record.array_copies import ArrayCopies


class FusedCopies(ArrayCopies):
    """Past copies of `fitting` stacks in the memory of this machine; the rate is read with them."""

    def __init__(self, stacks: Sequence[Stack], rate: LearningRate) -> None:
        run = EAGER.function(lambda: [*(stack.read() for stack in stacks), *rate.tensors()])

        def read() -> list[Values]:
            # Views of what TensorFlow holds: nothing is copied, and training, which goes on once
            # they are let go, doesn't have to either.
            tensors = run()
            rate.hear(tensors[len(stacks) :])
            return [np.asarray(memoryview(value)) for value in tensors[: len(stacks)]]

        super().__init__([(stack.axis, len(stack.members)) for stack in stacks], read)

    def past(self) -> list[Any]:
        """See `ArrayCopies`: as tensors."""
        return [tf.convert_to_tensor(value) for value in super().past()]


def fitting(stacks: Sequence[Stack]) -> list[Stack]:
    """Those that can be measured here."""
    fitted = [stack for stack in stacks if _fits(stack)]
    # Where each is read into: for variables on an accelerator that is there.
    read = EAGER.function(lambda: [stack.read() for stack in fitted])
    places = [value.device for value in read()] if fitted else []
    return [stack for stack, place in zip(fitted, places, strict=True) if "CPU" in str(place)]


def _fits(stack: Stack) -> bool:
    layout = layout_of(stack.axis, len(stack.members))
    return layout is not None and stack.variables[0].dtype == tf.float32
