"""The states of channels as the reader has them: all but settled once, then for a threshold."""

from __future__ import annotations

from typing import Any

import numpy as np

from tb_pastnet.core import channel_states


def settled_states(
    codes: np.ndarray,
    steps: np.ndarray,
    past_steps: np.ndarray,
    *,
    measured: np.ndarray | None,
    threshold: float = channel_states.THRESHOLD,
    patience: int = channel_states.PATIENCE,
    audited: bool = False,
    follows: bool = False,
) -> Any:
    """uint8 (records, channels), see `channel_states.unsettled_states` and `channel_states.settle`."""
    unsettled = channel_states.unsettled_states(
        codes,
        steps,
        past_steps,
        measured=measured,
        audited=audited,
        follows=follows,
        patience=patience,
    )
    delta = channel_states.relative_delta(codes)
    return channel_states.settle(unsettled, delta, threshold=threshold, patience=patience)
