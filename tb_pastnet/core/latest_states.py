"""The states of channels during recording, computed as each record is made."""

from __future__ import annotations

from collections import deque

import numpy as np

from tb_pastnet.core import channel_states
from tb_pastnet.core.channel_states import PATIENCE, Carry, Flags, Integers, States
from tb_pastnet.core.quantize import ZERO, Codes
from tb_pastnet.core.statistics import NORM, PAST_NORM


class LatestStates:
    """Computes the states of each record from earlier ones, as if for all records together.

    Args:
        widths: int64 (variables,), channels of each.
        kernels: bool (variables,), those in which channels of zeros count as pruned.
        follows: bool (variables,), those that aren't moved by an optimizer.
        threshold: the relative delta under which a channel counts as quiet.
    """

    def __init__(
        self,
        widths: Integers,
        kernels: Flags,
        follows: Flags,
        threshold: float = channel_states.THRESHOLD,
    ) -> None:
        self._widths, self._kernels = widths, kernels
        self._starts = np.cumsum(widths) - widths
        self._follows = np.repeat(follows, widths)
        self._limit = channel_states.quiet_limit(threshold)
        self._seen = np.zeros(len(widths), bool)
        self._codes: deque[Codes] = deque(maxlen=PATIENCE + 1)
        self._measured: deque[Flags] = deque(maxlen=PATIENCE + 1)
        self._carry = Carry.first(len(self._follows))

    def add(self, codes: Codes) -> tuple[States, Codes]:
        """The states of the next record, uint8 (channels,), and its relative deltas as codes.

        Codes are int16 (statistics, channels of all variables).
        """
        values = (codes[NORM] != ZERO) | (codes[PAST_NORM] != ZERO)
        self._seen |= np.logical_or.reduceat(values, self._starts)
        self._codes.append(codes)
        self._measured.append(np.repeat(self._seen & self._kernels, self._widths))
        steps = np.arange(len(self._codes))
        unsettled = channel_states.unsettled_states(
            np.stack(self._codes, axis=1),
            steps,
            steps,
            measured=np.stack(self._measured),
            audited=True,
            follows=self._follows,
        )[-1:]
        delta = channel_states.relative_delta(codes)[None]
        limits, self._carry = channel_states.settling_after(self._carry, delta, unsettled)
        return channel_states.settled_below(unsettled, limits, self._limit)[0], delta[0]
