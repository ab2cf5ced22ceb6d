"""From float64 to float32, without false zeros and infinities at the ends of the range."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

_FLOAT32 = float(np.finfo(np.float32).max)
# By its bits: if subnormal numbers are flushed to zero, 2.0**-149 would be zero as well.
_SMALLEST = np.array(1, np.uint32).view(np.float32)


def narrow(values: npt.NDArray[np.float64]) -> npt.NDArray[np.float32]:
    """Rounds to float32; only zero becomes zero, and only infinity infinite.

    What is smaller than float32's smallest number, or larger than its largest, becomes that number,
    with its sign. NaN stays NaN.
    """
    wide = np.asarray(values, np.float64)
    inside = np.where(np.isinf(wide), wide, np.clip(wide, -_FLOAT32, _FLOAT32))
    with np.errstate(under="ignore"):
        rounded = inside.astype(np.float32)
    lost = (rounded == 0) & (wide != 0)
    result: npt.NDArray[np.float32] = np.where(lost, np.copysign(_SMALLEST, rounded), rounded)
    return result
