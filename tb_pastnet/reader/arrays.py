"""Array types of the reader."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Flags = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

NO_INTEGERS: Integers = np.zeros(0, np.int64)
NO_FLOATS: Floats = np.zeros(0)
