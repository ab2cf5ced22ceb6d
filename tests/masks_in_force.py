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
    unknown = tuple(mask for mask, (is_known, _) in by_mask.items() if not is_known)
    return MasksInForce(by_mask["kept"][1], by_mask["trainable"][1], unknown)
