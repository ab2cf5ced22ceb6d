"""The states of channels as the reader has them: all but settled once, then for a threshold."""

from __future__ import annotations

from typing import Any

import numpy as np

from tb_pastnet.core import states


def channel_states(
    codes: np.ndarray,
    steps: np.ndarray,
    past_steps: np.ndarray,
    *,
    measured: np.ndarray | None,
    threshold: float = states.THRESHOLD,
    patience: int = states.PATIENCE,
    audited: bool = False,
) -> Any:
    """uint8 (records, channels), see `states.unsettled_states` and `states.settle`."""
    unsettled = states.unsettled_states(
        codes, steps, past_steps, measured=measured, audited=audited, patience=patience
    )
    delta = states.relative_delta(codes)
    return states.settle(unsettled, delta, threshold=threshold, patience=patience)
