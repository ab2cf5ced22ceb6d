"""The oracle: what the product has to say of a training, by plain NumPy on its weights and masks.

Nothing here is imported from the product. The one thing that both share is how values are rounded.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
import numpy.typing as npt

from tests.oracle.weights import Flags, Tensor, Training

Codes = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

ZERO, NAN, INFINITE = -32768, 32766, 32767
STATES = (
    "no data",
    "moving",
    "reactivated",
    "quiet",
    "frozen",
    "pruned",
    "following",
    "nonfinite",
)
NO_DATA, MOVING, REACTIVATED, QUIET, FROZEN, PRUNED, FOLLOWING, NONFINITE = range(8)
PATIENCE, TEN_TIMES, STALLED = 5, 53, 20


def code(values: Floats) -> Codes:
    """The nearest of 16 codes an octave."""
    with np.errstate(divide="ignore", invalid="ignore"):
        found = np.nan_to_num(np.rint(16 * np.log2(values)), posinf=INFINITE, nan=NAN, neginf=ZERO)
    return np.asarray(found, np.int64)


def share(flags: Flags) -> Codes:
    """Of the elements of channels; 1 only where it is all of them."""
    mean = flags.mean(axis=-1)
    return np.where((mean < 1) & (code(mean) == 0), -1, code(mean))


def value(codes: Codes) -> Floats:
    special = {ZERO: 0.0, NAN: np.nan, INFINITE: np.inf}
    found = 2.0 ** (np.clip(codes, -17000, 16383) / 16)
    for one, number in special.items():
        found[codes == one] = number
    return np.asarray(found, np.float64)


class Recorded:
    """What the records of one variable hold, (records, channels) each, and what follows from it."""

    def __init__(self, training: Training, tensor: Tensor) -> None:
        self.tensor, self.training = tensor, training
        self.steps = np.array(tensor.records)
        self.past_steps = np.array(training.past_of(tensor))
        now, past = (
            tensor.split(tensor.weights[at]).astype(np.float64)
            for at in (self.steps, self.past_steps)
        )
        good, before = (np.asarray(np.isfinite(one), bool) for one in (now, past))
        with np.errstate(invalid="ignore"):
            delta = np.where(good & before, now - past, 0.0)
        same = (now == past) | (np.isnan(now) & np.isnan(past))
        kept = tensor.split(tensor.kept)
        free = kept & tensor.split(tensor.trainable)
        free &= ~tensor.still[:, None, None]
        self._kept, self._free, self._same = kept, free, same
        gone = ~(before & (past != 0)).any(axis=2) & ~before.all(axis=2)
        self.norm = code(_norm(np.where(good, now, 0)))
        self.past_norm = code(_norm(np.where(before, past, 0)))
        self.delta_norm = code(_norm(delta))
        # Records can't tell it from zeros where nothing else shows it.
        self.nothing_before = gone & (self.norm != ZERO) & (self.delta_norm == ZERO)
        self.delta_max = code(np.abs(delta).max(axis=2))
        self.changed = share(~same)
        self.nonfinite = (~good).sum(axis=2)
        self.kept = share(kept[self.steps])
        self.trainable = share(free[self.steps])
        self.finite = np.asarray(good.all(axis=2), bool)

    @cached_property
    def delta(self) -> Codes:
        """Of the relative delta; a channel that isn't finite has none, nor has one that wasn't."""
        found = self.delta_norm - self.past_norm
        found[self.past_norm == ZERO] = INFINITE
        found[self.delta_norm == ZERO] = ZERO
        found[~self.finite | self.nothing_before] = NAN
        return found

    def missing(self, name: str) -> Flags:
        """Where a norm doesn't exist: of a channel without a finite element but zeros."""
        now = ~self.finite & (self.norm == ZERO)
        past = self.nothing_before | (now & (self.past_norm == ZERO) & (self.delta_norm == ZERO))
        if name in ("delta_norm", "delta_max"):
            return now | past
        return {"norm": now, "past_norm": past}.get(name, np.zeros_like(now))

    @cached_property
    def violated(self) -> Flags:
        """Where held elements aren't what they were."""
        found = np.zeros((len(self.steps), self.tensor.channels), bool)
        all_held: Flags = np.asarray(~np.any(self._free, axis=2), bool)
        for at, (step, past) in enumerate(zip(self.steps, self.past_steps, strict=True)):
            moved = ~self._same[at]
            if self.training.audited:
                # The same elements were held all the time, and no command has set them.
                held = ~self._free[past : step + 1].any(axis=0)
                calm = (self._kept[past : step + 1] == self._kept[past]).all(axis=0)
                found[at] = (moved & held & calm).any(axis=1)
                continue
            # Records alone tell only of whole channels, and of variables that no command pruned.
            since = [record for record in self.steps[: at + 1] if record > past]
            since = [*self.steps[self.steps <= past][-1:], *since]
            if past < self.steps[0] or (np.diff(self._kept[past : step + 1], axis=0) != 0).any():
                continue
            found[at] = moved.any(axis=1) & all_held[since].all(axis=0)
        return found

    @cached_property
    def held(self) -> tuple[Flags, Flags]:
        """Pruned and frozen at each record, by mask or measured."""
        masked = (self.kept == ZERO) & True
        pruned = masked.copy()
        if self.tensor.role == "kernel":
            values = (self.norm != ZERO) | (self.past_norm != ZERO)
            for at in range(len(self.steps)):
                zero = (self.norm[at] == ZERO) & self.finite[at]
                pruned[at] |= zero & values[: at + 1].any(axis=0)
        return pruned, (self.trainable == ZERO) & ~pruned

    @lru_cache(maxsize=8)  # noqa: B019 - few are made
    def states(self, threshold: float) -> Codes:
        """The state of each channel at each record."""
        limit = max(math.ceil(math.log2(threshold) * 16), ZERO + 1) if threshold > 0 else ZERO
        pruned, frozen = self.held
        trains = ~pruned & ~frozen & self.finite
        quiet = trains & (self.delta < limit)
        never = trains & (self.delta == ZERO) & (threshold > 0)
        again: Flags
        is_quiet = np.zeros(self.tensor.channels, bool)
        found = np.zeros(quiet.shape, np.int64)
        for at in range(len(found)):
            last = slice(max(0, at - PATIENCE + 1), at + 1)
            entered = never[: at + 1].all(axis=0)
            if at + 1 >= PATIENCE:
                entered |= quiet[last].all(axis=0)
            stays = trains[at] & (self.delta[at] < limit + TEN_TIMES) & quiet[last].any(axis=0)
            is_quiet = entered | (is_quiet & stays)
            before = slice(max(0, at - PATIENCE), at)
            again = np.asarray(np.any(~trains[before], axis=0), bool)
            for channel in range(self.tensor.channels):
                if not self.finite[at, channel]:
                    state = NONFINITE
                elif pruned[at, channel]:
                    state = PRUNED
                elif frozen[at, channel]:
                    state = FROZEN
                elif again[channel]:
                    state = REACTIVATED
                else:
                    state = QUIET if is_quiet[channel] else MOVING
                found[at, channel] = state
        return found

    def unchanged(self) -> dict[str, dict[int, int]]:
        """Trainable channels that stand still: by kind and channel the record since which each does."""
        whole = (self.kept == 0) & (self.trainable == 0)
        still = self.delta_norm == ZERO
        still[0] |= self.missing("delta_norm")[0]
        still &= whole & self.finite & ~self.held[0] & (self.norm == self.norm[-1])
        found: dict[str, dict[int, int]] = {"stalled": {}, "unchanged": {}}
        for number, channel in enumerate(still.T):
            first = len(channel)
            while first > 0 and channel[first - 1]:
                first -= 1
            records = len(channel) - first
            if records >= STALLED and self._half(first):
                found["stalled"][number] = first
            elif records >= STALLED or (first == 0 and records > 1):
                found["unchanged"][number] = first
        return found

    def _half(self, record: int) -> bool:
        """Whether at least half of the steps come after a record."""
        begin, since, end = (int(self.steps[at]) for at in (0, record, -1))
        return since - begin <= end - since


def _norm(values: Floats) -> Floats:
    return np.asarray(np.sqrt((values**2).sum(axis=2)), np.float64)


@dataclass(frozen=True)
class Figures:
    """One layer, or several, at a step: as `data/record.ts` names it."""

    oldest: int
    step: int
    counts: tuple[int, ...]
    violated: int
    moved: float
    moving: int
    pruned: int
    prunable: int

    @property
    def total(self) -> int:
        return sum(self.counts[1:])

    @property
    def channels(self) -> int:
        return sum(self.counts)

    @property
    def mean_delta(self) -> float:
        return self.moved / self.moving if self.moving else math.nan


class Oracle:
    """All figures of one training."""

    def __init__(self, training: Training) -> None:
        self.training = training
        self.layers = {one.layer: Recorded(training, one) for one in training.layers}
        self.others = {one.id: Recorded(training, one) for one in training.others}

    def variables(self) -> list[Recorded]:
        """All, in the order of layers."""
        everything = [*self.layers.values(), *self.others.values()]
        order = list(self.layers)
        return sorted(everything, key=lambda one: order.index(one.tensor.layer))

    def prunable(self, layer: str) -> list[Tensor]:
        return [
            one for one in self.training.of(layer) if one.role == "kernel" or not one.kept.all()
        ]

    def pruned_weights(self, layer: str, step: int) -> int:
        return sum(int((~one.kept[step]).sum()) for one in self.prunable(layer))

    def at_record(self, layer: str, record: int, threshold: float) -> Figures:
        """A layer at one of its records."""
        own = self.layers[layer]
        states, step = own.states(threshold)[record], int(own.steps[record])
        deltas = np.minimum(value(own.delta[record]), 1).astype(np.float32)[states == MOVING]
        # One whose past was not finite between two records has none.
        deltas = deltas[~np.isnan(deltas)]
        return Figures(
            step,
            step,
            tuple(int((states == state).sum()) for state in range(len(STATES))),
            int(own.violated[record].sum()),
            float(deltas.sum(dtype=np.float64)),
            len(deltas),
            self.pruned_weights(layer, step),
            sum(one.size for one in self.prunable(layer)),
        )

    def at(self, layers: list[str], step: int, threshold: float) -> Figures | None:
        """Some layers at a step: of each its newest record at or before it; None before all."""
        if step < self.training.records[0]:
            return None
        now = [record for record in self.training.records if record <= step][-1]
        parts, unknown, prunable, pruned = [], 0, 0, 0
        for layer in layers:
            if layer not in self.layers:
                continue
            own = self.layers[layer]
            record = int((own.steps <= step).sum()) - 1
            if record < 0:
                unknown += own.tensor.channels
                prunable += sum(one.size for one in self.prunable(layer))
                pruned += self.pruned_weights(layer, now)
            else:
                parts.append(self.at_record(layer, record, threshold))
        if not parts:
            return None
        counts = [sum(one.counts[state] for one in parts) for state in range(len(STATES))]
        return Figures(
            min(one.oldest for one in parts),
            max(one.step for one in parts),
            (counts[0] + unknown, *counts[1:]),
            sum(one.violated for one in parts),
            sum(one.moved for one in parts),
            sum(one.moving for one in parts),
            pruned + sum(one.pruned for one in parts),
            prunable + sum(one.prunable for one in parts),
        )

    def sparsity(self, step: int) -> float:
        """The share of prunable weights that are pruned at a step."""
        whole = sum(one.size for layer in self.layers for one in self.prunable(layer))
        return sum(self.pruned_weights(x, step) for x in self.layers) / whole if whole else math.nan
