"""Elements that commands on masks choose by themselves."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from tb_pastnet.core.checks import is_whole
from tb_pastnet.core.mask_input import Mask
from tb_pastnet.errors import InvalidArgument

_ZEROS = 0.05, 0.999
"""The shares of zeros of a pruned kernel: fewer, or more, have other reasons."""

_ADAPTER = re.compile(r"(?i)lora|adapter|ia3|vera_|prompt_")
"""Names of weights that begin at zero to change nothing at first."""


def is_pruned(name: str, zeros: float) -> bool:
    """Whether the zeros of a kernel, by its name and their share, come from pruning.

    Example:
        >>> is_pruned("fc/weight", 0.5), is_pruned("fc/lora_B/weight", 0.5)
        (True, False)
    """
    least, most = _ZEROS
    return least <= zeros <= most and not _ADAPTER.search(name)


def rows_from(first: int, shape: Sequence[int], name: str) -> Mask:
    """The mask that lets rows of the first axis through from a number on; raises if it is none."""
    rows = shape[0] if shape else 0
    if not (is_whole(first) and 0 <= first <= rows):
        raise InvalidArgument(
            f"Could not freeze rows of {name!r}: expected upto= as a whole number from 0 to "
            f"{rows}, got {first!r:.60}. Pass how many rows stay as they are."
        )
    through = np.ones(tuple(shape), bool)
    through[:first] = False
    return through
