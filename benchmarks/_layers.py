"""What generated layers do: deltas as training makes them, and masks that prune and freeze."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tb_pastnet.core.quantize import CODES_PER_OCTAVE, ZERO, Codes, quantize_shares
from tb_pastnet.core.statistics import (
    CHANGED,
    DELTA_MAX,
    DELTA_NORM,
    KEPT,
    NONFINITE,
    NORM,
    PAST_NORM,
    STATISTICS,
    TRAINABLE,
)

INPUTS = 4  # channels that each kernel reads: few, so that masks stay small
ELEMENTS = 9 * INPUTS

Flags = NDArray[np.bool_]


class Masks(NamedTuple):
    """Masks of one kernel from a step on.

    Attributes:
        step: the first step whose record they are in force in.
        name: "kept" or "trainable".
        through: bool (ELEMENTS, channels).
    """

    step: int
    name: str
    through: Flags


def codes_of(width: int, steps: int, kind: int, rng: np.random.Generator) -> Codes:
    """int16 (statistics, steps, width): norms that drift, deltas that are noisy and fall."""
    found = np.zeros((len(STATISTICS), steps, width), np.int16)
    octave = float(CODES_PER_OCTAVE)
    drift = np.cumsum(rng.random((steps + 1, width), np.float32) < 0.02, axis=0, dtype=np.int16)
    norm = (rng.normal(0, 8, width) + drift * rng.choice([-1, 1], width)).astype(np.int16)
    found[NORM], found[PAST_NORM] = norm[1:], norm[:-1]
    time_ = np.linspace(0, 1, steps, dtype=np.float32)[:, None]
    # Relative deltas fall from 2**-7 by 3 to 9 octaves, in layers that settle early by more.
    fall = rng.uniform(3, 9, width).astype(np.float32) * (1.6 if kind == 3 else 1.0)
    noise = rng.standard_normal((2, steps, width), np.float32)
    delta = norm[:-1] + octave * (-7 - fall * np.sqrt(time_)) + 3 * noise[0]
    found[DELTA_NORM] = delta
    found[DELTA_MAX] = delta - 1.5 * octave + 2 * noise[1]
    found[NONFINITE] = ZERO
    return found


def masks_of(width: int, steps: int, kind: int, rng: np.random.Generator) -> list[Masks]:
    """What is done to a kernel: of five kinds of layers two are pruned and one is frozen."""
    order = rng.permutation(width)
    whole = np.ones((ELEMENTS, width), bool)
    first, second, third = (max(int(steps * part), 1) for part in (0.2, 0.5, 0.8))
    if kind == 1:
        cuts = [whole & (order >= width * share) for share in (0.1, 0.25, 0.4)]
        return [Masks(s, "kept", m) for s, m in zip((first, second, third), cuts, strict=True)]
    if kind == 2:
        ranks = rng.random((ELEMENTS, width))
        return [Masks(first, "kept", ranks > 0.3), Masks(second, "kept", ranks > 0.6)]
    if kind == 4:
        return [
            Masks(second, "trainable", whole & (order >= width * 0.3)),
            Masks(third, "trainable", whole & (order >= width * 0.1)),
        ]
    return []


def hold(codes: Codes, masks: Sequence[Masks]) -> None:
    """Puts masks into the records; step s is record s - 1."""
    kept = trainable = np.ones((ELEMENTS, codes.shape[2]), bool)
    for one in masks:
        kept = one.through if one.name == "kept" else kept
        trainable = one.through if one.name == "trainable" else trainable
        since = slice(one.step - 1, None)
        for row, mask in ((KEPT, kept), (TRAINABLE, kept & trainable)):
            codes[row, since] = quantize_shares(mask.mean(axis=0))
        codes[CHANGED, since] = codes[TRAINABLE, since]
    held = codes[TRAINABLE] == ZERO
    for row in (DELTA_NORM, DELTA_MAX):
        codes[row][held] = ZERO
    pruned = codes[KEPT] == ZERO
    codes[NORM][pruned] = ZERO
    codes[PAST_NORM, 1:] = codes[NORM, :-1]
