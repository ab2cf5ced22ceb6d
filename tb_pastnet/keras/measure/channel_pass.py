"""The statistics of all channels, in as few passes over the weights as there can be."""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tb_pastnet.core.axes import ChannelAxis
from tb_pastnet.core.statistics import KEPT, NONFINITE, STATISTICS, TRAINABLE
from tb_pastnet.keras.measure.copies import TensorCopies
from tb_pastnet.keras.measure.learning_rate import LearningRate
from tb_pastnet.keras.measure.runner import EAGER, Runner
from tb_pastnet.keras.measure.stacks import Stack, channel_order, stacks

if TYPE_CHECKING:
    from tb_pastnet.record.array_copies import ArrayCopies

Floats = npt.NDArray[np.floating]

SWITCH = "PASTNET_FAST"
"""Variable of the environment: 0 keeps numba out where it is installed."""


class ChannelPass:
    """Past copies of some variables, and the statistics of the current values against them.

    float32 weights in the memory of this machine are measured by numba where it is installed (the
    extra `fast`), everything else by TensorFlow, where it is.

    Example:
        >>> import tensorflow as tf
        >>> from tb_pastnet.core.axes import explicit_axis
        >>> weight = tf.Variable([[3.0, 0.0], [4.0, 0.0]])
        >>> reducer = ChannelPass([weight], [explicit_axis(-1, (2, 2), "w")])
        >>> _ = weight.assign_add([[0.0, 0.0], [0.0, 1.0]])
        >>> reducer.statistics()[:5].tolist()
        [[5.0, 1.0], [5.0, 0.0], [0.0, 1.0], [0.0, 1.0], [0.0, 0.5]]
    """

    def __init__(
        self,
        variables: Sequence[Any],
        axes: Sequence[ChannelAxis],
        copies: int = 1,
        runner: Runner = EAGER,
        rate: LearningRate | None = None,
    ) -> None:
        self._starts = np.cumsum([0, *(axis.channels for axis in axes)])
        quick, rest = _parted(stacks(variables, axes), runner)
        self._stacks = [*quick, *rest]
        self._order = channel_order(self._stacks, self._starts)
        self._copies = [_copies(quick, rest, runner, rate or LearningRate()) for _ in range(copies)]

    @property
    def channels(self) -> int:
        """Channels of all variables."""
        return int(self._starts[-1])

    def copy(self, number: int = 0) -> None:
        """Takes the current values as a past copy."""
        for part in self._copies[number]:
            part.take()

    def past(self, number: int = 0) -> list[Any]:
        """The values of a past copy: a tensor a variable. Later copies leave them as they are."""
        values = [value for part in self._copies[number] for value in part.past()]
        members = [member for stack in self._stacks for member in stack.members]
        return [value for _, value in sorted(zip(members, values, strict=True), key=itemgetter(0))]

    def statistics(self, number: int = 0, *, replace: bool = False) -> Floats:
        """Compares the current values with a past copy: see `record.source.Source.compare`."""
        parts = [part.compare(replace=replace) for part in self._copies[number]]
        stacked = parts[0] if len(parts) == 1 else np.concatenate(parts, axis=1)
        result = np.empty((len(STATISTICS), self.channels), stacked.dtype)
        # Told to clip, NumPy writes in place.
        np.take(stacked, self._order, axis=1, out=result[: NONFINITE + 1], mode="clip")
        # What isn't measured here has no data.
        result[NONFINITE + 1 :] = np.nan
        result[[KEPT, TRAINABLE]] = 1
        return result


def _parted(stacked: Sequence[Stack], runner: Runner) -> tuple[list[Stack], list[Stack]]:
    """Stacks that numba measures, and those that TensorFlow does."""
    if runner is not EAGER or os.environ.get(SWITCH) == "0":
        return [], list(stacked)
    try:
        from tb_pastnet.keras.measure.fused import fitting
    except ModuleNotFoundError:  # the extra `fast` isn't installed
        return [], list(stacked)
    except Exception as error:
        text = "Could not use numba, so that TensorFlow measures: %s. Mend or remove it."
        logging.getLogger("tb_pastnet").warning(text, error)
        return [], list(stacked)
    quick = fitting(stacked)
    taken = {stack.members for stack in quick}
    return quick, [stack for stack in stacked if stack.members not in taken]


def _copies(
    quick: Sequence[Stack], rest: Sequence[Stack], runner: Runner, rate: LearningRate
) -> list[TensorCopies | ArrayCopies]:
    copies: list[TensorCopies | ArrayCopies] = []
    if quick:
        from tb_pastnet.keras.measure.fused import FusedCopies

        copies.append(FusedCopies(quick, rate))
        rate = LearningRate()  # once is enough
    if rest:
        copies.append(TensorCopies(rest, runner, rate))
    return copies
