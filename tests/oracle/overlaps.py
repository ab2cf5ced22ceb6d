"""What two runs have in common, by plain NumPy on their masks and on the states of channels."""

from __future__ import annotations

import math

import numpy as np

from tests.by_chance import mean_overlap
from tests.oracle.plain import Oracle
from tests.oracle.weights import Flags


def chosen(oracle: Oracle, layer: str, step: int, unit: str, mask: str) -> Flags | None:
    """What is in the set of a run: weights by their masks, or channels. None without a record."""
    own = oracle.layers[layer]
    if unit == "channels":
        at = int((own.steps <= step).sum()) - 1
        if at < 0 or step < oracle.training.records[0]:
            return None
        pruned, frozen = own.held[0][at], own.held[1][at]
        return np.asarray(~pruned if mask == "kept" else ~pruned & ~frozen, bool)
    before = [record for record in oracle.training.records if record <= step]
    if not before:
        return None
    tensor = own.tensor
    through = tensor.kept[before[-1]]
    if mask == "trainable":
        through = through & tensor.trainable[before[-1]]
        # The log of masks has the step of each change; trainable=False only records of the layer tell.
        known = own.steps[own.steps <= before[-1]]
        if len(known):
            through = through & ~tensor.still[known[-1]]
    return np.asarray(through.ravel(), bool)


def of_layer(
    pair: tuple[Oracle, Oracle], layer: str, step: int, unit: str, mask: str
) -> tuple[float, float, float, float, float, int]:
    """In the one set, in the other, in both; the overlap, its value by chance; of how many."""
    own, other = (chosen(oracle, layer, step, unit, mask) for oracle in pair)
    tensor = pair[0].layers[layer].tensor
    elements = tensor.channels if unit == "channels" else tensor.size
    kept, other_kept = (math.nan if one is None else float(one.sum()) for one in (own, other))
    related = pair[0].training.origin == pair[1].training.origin
    if own is None or other is None or not related:
        return kept, other_kept, math.nan, math.nan, math.nan, elements
    both = float((own & other).sum())
    union = kept + other_kept - both
    by_chance = mean_overlap([(int(kept), int(other_kept), elements)])
    return kept, other_kept, both, both / union if union else 1.0, by_chance, elements
