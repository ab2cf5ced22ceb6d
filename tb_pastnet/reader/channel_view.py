"""All that is known of one channel, as JSON values: pure functions on arrays."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from tb_pastnet.core import states
from tb_pastnet.core.quantize import dequantize
from tb_pastnet.core.statistics import NONFINITE, STATISTICS
from tb_pastnet.reader.series import Series

Floats = npt.NDArray[np.float64]

_DIGITS = 4


def channel_of(series: Series, state: npt.NDArray[np.uint8], index: int) -> dict[str, Any]:
    """All that is known of one channel, as JSON values.

    Args:
        series: the records.
        state: uint8 (records,), its states.
        index: the channel, from 0.

    Returns:
        Lists of one value a record; what JSON has no number for is None.
    """
    plain = state & np.uint8(states.STATE)
    codes = series.codes[:, :, index]
    values = dequantize(codes)
    values[NONFINITE] = np.rint(values[NONFINITE])
    at = np.flatnonzero(np.diff(plain)) + 1
    return {
        "steps": series.steps.tolist(),
        "past_steps": series.past_steps.tolist(),
        "state": [states.NAMES[code] for code in plain],
        "violated": ((state & states.VIOLATED) != 0).tolist(),
        "relative_delta": numbers(dequantize(states.relative_delta(codes))),
        **{name: numbers(values[i]) for i, name in enumerate(STATISTICS)},
        "changes": [
            {
                "step": int(series.steps[i]),
                "from": states.NAMES[plain[i - 1]],
                "to": states.NAMES[plain[i]],
            }
            for i in at
        ],
    }


def numbers(values: Floats) -> list[float | None]:
    """Values for people: four digits, None where JSON has no number.

    Example:
        >>> numbers(np.array([0.0, 1.0, 0.123456, np.inf, np.nan]))
        [0.0, 1.0, 0.1235, None, None]
    """
    return [float(f"{v:.{_DIGITS}g}") if math.isfinite(v) else None for v in values.tolist()]
