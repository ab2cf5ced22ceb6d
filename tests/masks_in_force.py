"""Both masks of a variable as records of a step saw them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tb_pastnet.format.tags import MASKS
from tb_pastnet.reader.store import RunReader


class MasksInForce(NamedTuple):
    """Each None where it lets all through or isn't known; `unknown` names the latter."""

    kept: np.ndarray | None
    trainable: np.ndarray | None
    unknown: tuple[str, ...]


def masks_in_force(reader: RunReader, variable: str, step: int) -> MasksInForce:
    by_mask = {mask: reader.mask_in_force(variable, mask, step) for mask in MASKS}
    unknown = tuple(mask for mask, flags in by_mask.items() if flags is None)
    holes = (None if flags is None or flags.all() else flags.ravel() for flags in by_mask.values())
    return MasksInForce(*holes, unknown)
