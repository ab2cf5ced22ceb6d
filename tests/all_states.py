"""The states of channels as the reader has them: all but quiet once, then for a threshold."""

from __future__ import annotations

from typing import Any

import numpy as np

from tb_pastnet.core import channel_states


def all_states(
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
    """uint8 (records, channels), see `channel_states.states_before_quiet` and `channel_states.mark_quiet`."""
    before_quiet = channel_states.states_before_quiet(
        codes,
        steps,
        past_steps,
        measured=measured,
        audited=audited,
        follows=follows,
        patience=patience,
    )
    delta = channel_states.relative_delta(codes)
    return channel_states.mark_quiet(before_quiet, delta, threshold=threshold, patience=patience)
