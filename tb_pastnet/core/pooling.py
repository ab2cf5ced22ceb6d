"""Many records in few columns, for a picture that is narrower than its run.

Columns are even ranges of steps, never of records: runs with different strides stay aligned.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tb_pastnet.errors import InvalidArgument

Integers = npt.NDArray[np.int64]


def columns(steps: Integers, most: int) -> Integers:
    """The index of the first record of each column, of increasing steps in even ranges.

    Each record is a column of its own where there are no more than `most`.

    Example:
        >>> columns(np.array([0, 1, 2, 3, 10, 11]), 3).tolist()
        [0, 4]
        >>> columns(np.array([0, 5]), 3).tolist()
        [0, 1]
    """
    if most < 1:
        raise InvalidArgument(
            f"Could not pool records: expected at least 1 column, got {most}. Ask for more."
        )
    if len(steps) <= most:
        return np.arange(len(steps))
    edges = np.linspace(steps[0], steps[-1] + 1, most + 1)[:-1]
    return np.unique(np.searchsorted(steps, edges)).astype(np.int64)
