"""Trainings that are made up: the weights and masks of every step, kept to be counted by hand.

A training has layers of several kinds. Channels calm down at different times, some stand still,
some hold NaN, some are frozen, pruned and released by element, and some move though held.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np
import numpy.typing as npt

Weights = npt.NDArray[np.float32]
Flags = npt.NDArray[np.bool_]
Generator = np.random.Generator
Scalar = TypeVar("Scalar", bound=np.generic)

NAMES = ("conv1", "block/conv2", "block/conv3", "block/inner/conv4", "dense5", "head")
KINDS = ("dense", "conv", "transpose", "depthwise", "norm")


@dataclass
class Tensor:
    """One variable over all steps.

    Attributes:
        id: of the variable.
        layer: of its layer.
        role: as in the log.
        axes: those that number the channels.
        weights: float32 (steps + 1, *shape), the values after each step.
        kept: bool of that shape, the mask in force at each step: False holds at zero.
        trainable: likewise: False holds the value.
        still: bool (steps + 1,), where `trainable=False` holds all of it.
        records: the steps of its records.
    """

    id: str
    layer: str
    role: str
    axes: tuple[int, ...]
    weights: Weights
    kept: Flags
    trainable: Flags
    still: Flags
    records: list[int]

    @property
    def shape(self) -> tuple[int, ...]:
        return self.weights.shape[1:]

    @property
    def channels(self) -> int:
        return math.prod(self.shape[axis] for axis in self.axes)

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    def split(self, values: npt.NDArray[Scalar]) -> npt.NDArray[Scalar]:
        """Values of some steps, (steps, *shape), as (steps, channels, elements)."""
        moved = np.moveaxis(values, self._places, range(1, 1 + len(self.axes)))
        return moved.reshape(len(values), self.channels, -1)

    def join(self, values: npt.NDArray[Scalar]) -> npt.NDArray[Scalar]:
        """The same back."""
        apart = [self.shape[place - 1] for place in self._places]
        rest = [n for at, n in enumerate(self.shape, 1) if at not in self._places]
        whole = values.reshape(len(values), *apart, *rest)
        moved = np.moveaxis(whole, range(1, 1 + len(apart)), self._places)
        return np.ascontiguousarray(moved)

    @property
    def _places(self) -> list[int]:
        return [1 + axis % len(self.shape) for axis in self.axes]


@dataclass
class Training:
    """One run.

    Attributes:
        run: its name.
        origin: of its weights.
        past: "previous" or "record".
        audited: whether the writer tells which held weights moved.
        records: the steps of the run.
        dropped: records that the writer gave up.
        layers: the variable that each layer is drawn by.
        others: further variables.
    """

    run: str
    origin: str
    past: str
    audited: bool
    records: list[int]
    dropped: int
    layers: list[Tensor]
    others: list[Tensor] = field(default_factory=list)

    @property
    def closed(self) -> bool:
        """Whether it ended: half of the runs do."""
        return len(self.records) % 2 == 0

    def of(self, layer: str) -> list[Tensor]:
        """The variables of a layer, in the order of the log."""
        return [one for one in (*self.layers, *self.others) if one.layer == layer]

    def past_of(self, tensor: Tensor) -> list[int]:
        """The step that each record of a variable compares with."""
        if self.past == "record":
            return [tensor.records[0] - 1, *tensor.records[:-1]]
        return [step - 1 for step in tensor.records]


def make_log(seed: int) -> list[Training]:
    """Some runs, of which the first two have one network and one origin."""
    rng = np.random.default_rng(seed)
    count = int(rng.integers(3, 7))
    names = list(np.array(NAMES)[np.sort(rng.choice(len(NAMES), count, replace=False))])
    plan = [(str(name), str(rng.choice(KINDS)), int(rng.integers(4, 41))) for name in names]
    other = [(name, kind, max(4, size - 1)) for name, kind, size in plan[1:]]
    plans = [("a", "9c1e", plan), ("b", "9c1e", plan), ("c/d", "77aa", other)]
    return [_training(rng, *one) for one in plans[: int(rng.integers(2, 4))]]


def _training(rng: Generator, run: str, origin: str, plan: list[tuple[str, str, int]]) -> Training:
    steps = int(rng.integers(30, 301))
    records = _records(rng, steps)
    past = str(rng.choice(["previous", "previous", "record"]))
    made = Training(run, origin, past, bool(rng.random() < 0.6), records, 0, [])
    made.dropped = int(rng.choice([0, 0, 0, 2]))
    for name, kind, size in plan:
        still = _spans(rng, steps) if rng.random() < 0.25 else np.zeros(steps + 1, bool)
        late = int(rng.choice([0, 0, 0, 7]))
        own = records[late :: int(rng.choice([1, 1, 1, 2, 5]))] or records[-1:]
        if rng.random() < 0.1:
            own = own[: max(2, len(own) * 2 // 3)]
        shape, axes = _shape(rng, kind, size)
        role = "scale" if kind == "norm" else "kernel"
        made.layers.append(_tensor(rng, (name, role), shape, axes, still, own))
        if rng.random() < 0.4:
            wide = (made.layers[-1].channels,)
            made.others.append(_tensor(rng, (name, "bias"), wide, (-1,), still, own))
    return made


def _records(rng: Generator, steps: int) -> list[int]:
    """Every so many steps, with gaps; the last step is one."""
    every = int(rng.choice([1, 1, 2, 3]))
    found = set(range(int(rng.integers(1, 6)), steps + 1, every))
    for _ in range(int(rng.integers(0, 3))):
        gap = int(rng.integers(1, steps))
        found -= set(range(gap, gap + int(rng.integers(2, 20))))
    return sorted(found | {steps})


def _shape(rng: Generator, kind: str, size: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    inputs = int(rng.integers(1, 5))
    if kind == "dense":
        return (int(rng.choice([inputs + 2, 64])), size), (-1,)
    if kind == "conv":
        return (3, 3, inputs, size), (-1,)
    if kind == "transpose":
        return (2, 2, size, inputs), (-2,)
    if kind == "depthwise":
        return (3, 3, max(1, size // 2), 2), (-2, -1)
    return (size,), (0,)


def _spans(rng: Generator, steps: int, most: int = 2) -> Flags:
    """Some stretches of steps."""
    found = np.zeros(steps + 1, bool)
    for _ in range(int(rng.integers(1, most + 1))):
        first = int(rng.integers(1, steps + 1))
        found[first : first + int(rng.integers(1, steps))] = True
    return found


def _tensor(
    rng: Generator,
    name: tuple[str, str],
    shape: tuple[int, ...],
    axes: tuple[int, ...],
    still: Flags,
    records: list[int],
) -> Tensor:
    layer, role = name
    whole = (len(still), *shape)
    variable = f"{layer}/{'gamma' if role == 'scale' else role}"
    made = Tensor(
        variable, layer, role, axes, np.zeros(whole, np.float32), np.ones(whole, bool),
        np.ones(whole, bool), still, records,
    )  # fmt: skip
    if role != "bias":
        _mask(rng, made)
    _train(rng, made)
    return made


def _mask(rng: Generator, made: Tensor) -> None:
    """Freezes, prunes and releases elements or whole channels from some steps on."""
    steps = len(made.still) - 1
    kept, trainable = made.split(made.kept).copy(), made.split(made.trainable).copy()
    for step in sorted(rng.integers(1, steps + 1, int(rng.choice([0, 1, 2, 4, 8]))).tolist()):
        mask = (kept if rng.random() < 0.5 else trainable)[step:]
        some = rng.random(made.channels) < rng.choice([0.1, 0.5, 1.0])
        what = rng.choice(["hold", "hold", "release", "elements", "one"])
        if what == "one":
            mask[:, some, int(rng.integers(mask.shape[2]))] = False
        elif what == "elements":
            mask &= rng.random(mask.shape[1:]) < 0.8
        else:
            mask[:, some] = what == "release"
    made.kept, made.trainable = made.join(kept), made.join(trainable)


def _train(rng: Generator, made: Tensor) -> None:
    """Moves what is free, sets to zero what is pruned, and lets some held channels move."""
    steps, channels = len(made.still) - 1, made.channels
    kept, trainable = made.split(made.kept), made.split(made.trainable)
    free = kept & trainable & ~made.still[:, None, None]
    # Relative deltas fall from 0.3 … 0.001 by up to five decades, with noise and jumps.
    start = 10.0 ** rng.uniform(-3, -0.5, channels)
    decades = rng.uniform(0, 5, channels)
    noise = rng.choice([0.02, 0.2, 0.5])
    stops = np.where(rng.random(channels) < 0.2, rng.integers(0, steps + 1, channels), steps + 1)
    leaks = np.zeros((steps + 1, channels), bool)
    if rng.random() < 0.5:
        for channel in rng.integers(0, channels, 3):
            leaks[:, channel] = _spans(rng, steps)
    now = rng.normal(size=kept.shape[1:]).astype(np.float32)
    now[:, :] *= rng.choice([0.0, 1.0, 1.0, 1.0]) if rng.random() < 0.3 else 1.0
    now[rng.random(channels) < 0.05] = 0
    found = np.zeros(kept.shape, np.float32)
    found[0] = now = now * kept[0]
    for step in range(1, steps + 1):
        size = start * 10 ** (-decades * step / steps + noise * rng.normal(size=channels))
        size[rng.random(channels) < 0.01] *= 30
        size[step >= stops] = 0
        norm = np.sqrt((np.nan_to_num(now, posinf=0, neginf=0).astype(np.float64) ** 2).sum(axis=1))
        way = rng.normal(size=now.shape)
        way *= (size * np.where(norm > 0, norm, 1e-2) / np.linalg.norm(way, axis=1))[:, None]
        moves = free[step] | (leaks[step][:, None] & ~free[step] & ~free[step - 1])
        with np.errstate(invalid="ignore"):
            now = np.where(moves, now + way, now).astype(np.float32)
        now[~kept[step] & kept[step - 1]] = 0
        if rng.random() < 0.02:
            at = int(rng.integers(channels)), int(rng.integers(now.shape[1]))
            now[at] = rng.choice([np.nan, np.inf, -np.inf, 0.5]) if moves[at] else now[at]
        if rng.random() < 0.05:
            now = np.where(np.isfinite(now) | ~moves, now, np.float32(0.1))
        found[step] = now
    made.weights = made.join(found)
