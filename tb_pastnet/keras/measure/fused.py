"""Past copies as arrays, compared by numba: for float32 weights in the memory of this machine.

Each weight is read once, beside its past value, which is replaced in the same pass: 12 bytes a
weight, at about the pace of memory. TensorFlow's functions take several passes and hold what is
between them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from math import prod
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from tb_pastnet.core.kernels import DELTA_NORM, finish
from tb_pastnet.core.memory_layout import MemoryLayout, Rows, Values, layout_of, united
from tb_pastnet.core.parallel import processors, together
from tb_pastnet.core.statistics import CHANGED
from tb_pastnet.keras.measure.learning_rate import LearningRate
from tb_pastnet.keras.measure.runner import EAGER
from tb_pastnet.keras.measure.stacks import Stack

_PIECE = 1 << 18
"""Elements that are worth another thread."""

Floats = npt.NDArray[np.floating]
Result = TypeVar("Result")


def fitting(stacks: Sequence[Stack]) -> list[Stack]:
    """Those that can be measured here."""
    known = [stack for stack in stacks if _known(stack)]
    # Where each is read into: for variables on an accelerator that is there.
    read = EAGER.function(lambda: [stack.read() for stack in known])
    places = [value.device for value in read()] if known else []
    return [stack for stack, place in zip(known, places, strict=True) if "CPU" in str(place)]


class ArrayCopies:
    """Past copies in the memory of this machine; see `Copies`.

    Args:
        stacks: what is compared: `fitting` gives them.
        rate: is read where they are compared.
    """

    def __init__(self, stacks: Sequence[Stack], rate: LearningRate) -> None:
        self._stacks = tuple(stacks)
        found = [layout_of(stack.axis, len(stack.members)) for stack in self._stacks]
        self._forms = [form for form in found if form is not None]
        self._rate = rate
        self._read = EAGER.function(
            lambda: [*(stack.read() for stack in self._stacks), *rate.tensors()]
        )
        # The largest first: then threads end at about the same time.
        self._cuts = sorted(
            (
                (number, part)
                for number, form in enumerate(self._forms)
                for part in form.cuts(_parts(form))
            ),
            key=lambda cut: -_size(self._forms[cut[0]], cut[1]),
        )
        self._past = [value.copy() for value in self._values()]

    def take(self) -> None:
        """See `Copies`."""
        values = self._values()
        self._each(lambda at, part: np.copyto(self._past[at][part], values[at][part]))

    def compare(self, *, replace: bool) -> Floats:
        """See `Copies`."""
        values = self._values()

        def measure(at: int, part: tuple[slice, slice]) -> Rows:
            return self._forms[at].measure(values[at], self._past[at], part, replace=replace)

        found = self._each(measure)
        numbers = [number for number, _ in self._cuts]
        results = []
        for number, stack in enumerate(self._stacks):
            own = [rows for at, rows in zip(numbers, found, strict=True) if at == number]
            results.append(_finished(united(own), stack.axis.elements))
        return np.concatenate(results, axis=1)

    def past(self) -> list[Any]:
        """See `Copies`."""
        return [
            tf.convert_to_tensor(one.copy())
            for stack, past in zip(self._stacks, self._past, strict=True)
            for one in past.reshape(-1, *stack.axis.shape)
        ]

    def _values(self) -> list[Values]:
        # Views of what TensorFlow holds: nothing is copied, and training, which goes on once they
        # are let go, doesn't have to either.
        found = self._read()
        count = len(self._stacks)
        self._rate.hear(found[count:])
        read = zip(found[:count], self._forms, strict=True)
        return [np.asarray(memoryview(value)).reshape(form.shape) for value, form in read]

    def _each(self, action: Callable[[int, tuple[slice, slice]], Result]) -> list[Result]:
        actions = [partial(action, *cut) for cut in self._cuts]
        large = len(self._cuts) > len(self._stacks)
        return together(actions) if large else [action() for action in actions]


def _known(stack: Stack) -> bool:
    form = layout_of(stack.axis, len(stack.members))
    return form is not None and stack.variables[0].dtype == tf.float32


def _parts(form: MemoryLayout) -> int:
    rows, columns = form.shape
    return max(1, min(processors(), rows * columns // _PIECE))


def _size(form: MemoryLayout, cut: tuple[slice, slice]) -> int:
    lengths = zip(cut, form.shape, strict=True)
    return prod(len(range(*part.indices(length))) for part, length in lengths)


def _finished(rows: Rows, elements: int) -> Floats:
    """From sums to statistics: (6, members, channels) to (6, all channels).

    float32 where they fit: the norm of the largest values doesn't.
    """
    rows = rows.reshape(len(rows), -1)
    result = np.empty(rows.shape, np.float32)
    if finish(rows, elements, result):
        return result
    np.sqrt(rows[: DELTA_NORM + 1], out=rows[: DELTA_NORM + 1])
    rows[CHANGED] /= elements
    return rows
