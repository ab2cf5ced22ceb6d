"""How far a layer travelled, from sketches, and what may be said of it.

A layer whose deltas are small may still go far: steps in one direction add up. So a verdict comes
from distances over many steps, in the last half of a run.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tb_pastnet.core.sketch import SPREAD

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

FEWEST = 8
"""Sketches in the last half of the steps that a verdict needs."""

NOWHERE = 0.25
"""The growth exponent up to which a layer goes nowhere. Noise around a point has 0.16 or less, a
random walk 0.5, a drift in one direction 1."""

ARRIVED = 1e-3
"""The way of the last tenth of the steps, as a share of the largest distance from the start, and of
the norm, up to which a layer has arrived."""

_LOWEST_RATE = 0.1
_CLOSE = 1.25
_FEWEST_PAIRS = 3

DEVIATIONS = 2.3
"""So many standard deviations cover 19 of 20 distances, seen from the estimate: the error is of
the distance itself, which may be larger."""


class Distance(NamedTuple):
    """An estimated Euclidean distance.

    Attributes:
        value: the estimate; NaN if it is unknown.
        error: in 19 of 20 cases the distance is at most so far from the estimate.
    """

    value: float
    error: float


def distances(apart: Floats, grid: Floats) -> tuple[Floats, Floats]:
    """Distances of layers, and of all together.

    Args:
        apart: (…, layers, 64), differences of sketches, NaN if one isn't known.
        grid: (…, layers), the distances of neighbours on the grids of both, added.

    Returns:
        The distances, float64 (…, layers), and their errors.
    """
    values = np.sqrt(np.sum(apart**2, axis=-1))
    # Each of 64 numbers is rounded by at most half of its grid's distance.
    rounding = np.sqrt(apart.shape[-1] / 12) * grid
    return values, DEVIATIONS * SPREAD * values + 2 * rounding


def together(values: Floats, errors: Floats) -> tuple[Floats, Floats]:
    """The distance of several layers as one, from those of each, (…, layers)."""
    total = np.sqrt(np.sum(values**2, axis=-1))
    with np.errstate(divide="ignore", invalid="ignore"):
        error = np.sqrt(np.sum((values * errors) ** 2, axis=-1)) / total
    return total, np.where(total > 0, error, np.sqrt(np.sum(errors**2, axis=-1)))


IN_PLACE, AT_GOAL, TRAVELS = "in place", "arrived", "travels"


class Verdict(NamedTuple):
    """What the sketches of the last half of a run prove of a layer.

    Attributes:
        kind: "in place": it moves, and goes nowhere; "arrived": it has stopped on its way;
            "travels": neither.
        since: the step of the first sketch in the last half.
        steps: the number of steps in a tenth of the run.
        distance: the estimated way over so many steps, at the end.
        norm: of the layer at the end.
        exponent: how distances grow with the number of steps: 0 in place, 0.5 a random walk, 1 a
            drift; NaN if unknown.
        text: all of this in words.
    """

    kind: str
    since: int
    steps: int
    distance: float
    norm: float
    exponent: float
    text: str

    @property
    def share(self) -> float:
        """The way as a share of the norm; NaN if that is 0."""
        return self.distance / self.norm if self.norm > 0 else math.nan


class Ending(NamedTuple):
    """What a verdict needs to know of a layer besides its sketches.

    Attributes:
        norm: at its newest record.
        trains: whether updates may change any of it, and its learning rate is known and above a
            tenth of its highest.
        jump: the last step at which a mask changed or training was resumed; None: never.
    """

    norm: float
    trains: bool
    jump: int | None


def verdict(steps: Integers, sketches: Floats, ending: Ending) -> Verdict | None:
    """What may be said of a layer at the end of its records; None if too little is known.

    Args:
        steps: int64 (sketches,), increasing.
        sketches: float64 (sketches, 64), NaN where unknown.
        ending: how its records end.
    """
    known = np.isfinite(sketches).all(axis=1)
    steps, sketches = steps[known], sketches[known]
    if not (len(steps) and ending.trains):
        return None
    middle = (steps[0] + steps[-1]) / 2
    late = steps >= middle
    jumped = ending.jump is not None and ending.jump > middle
    # What doesn't change at all is another matter.
    if jumped or np.count_nonzero(late) < FEWEST or not np.ptp(sketches[late], axis=0).any():
        return None
    tenth = max(int(steps[-1] - steps[0]) // 10, 1)
    exponent = growth(steps[late], sketches[late], tenth)
    ago = int(np.argmin(np.abs(steps - (steps[-1] - tenth))))
    way = float(np.linalg.norm(sketches[-1] - sketches[ago]))
    farthest = float(np.linalg.norm(sketches - sketches[0], axis=1).max())
    # A start far away, such as of a codebook whose first values are huge, makes any way look short.
    if way <= ARRIVED * min(farthest, ending.norm):
        kind = AT_GOAL
    elif exponent <= NOWHERE:
        kind = IN_PLACE
    else:
        kind = TRAVELS
    since, span = int(steps[late][0]), int(steps[-1] - steps[ago])
    words = _words(kind, since, span, way, ending.norm)
    return Verdict(kind, since, span, way, ending.norm, exponent, words)


def percent(share: float) -> str:
    """A share in words, of two digits or all before the point: "0.27 %", "140 %"."""
    value = 100 * share
    return f"{value:,.0f} %" if value >= 99.5 else f"{value:.2g} %"


def _words(kind: str, since: int, span: int, way: float, norm: float) -> str:
    how = "" if kind == TRAVELS else f" since step {since:,}"
    of = f"{percent(way / norm)} of its norm" if norm > 0 else f"{way:.2g}"
    return f"{kind}{how}: {of} in the last {span:,} steps"


def growth(steps: Integers, sketches: Floats, tenth: int) -> float:
    """How distances grow with the number of steps, as an exponent; NaN if there are too few.

    It compares the mean distance over a tenth of a run with that over a fortieth, or over the
    smallest numbers of steps of ratio 4 for which there are sketches.
    """
    smallest = float(np.median(np.diff(steps)))
    short = max(tenth / 4, smallest)
    near, far = (_mean_distance(steps, sketches, lag) for lag in (short, 4 * short))
    if not (near > 0 and np.isfinite(far)):
        return np.nan if not near == far == 0 else 0.0
    return float(np.log(far / near) / np.log(4))


def _mean_distance(steps: Integers, sketches: Floats, lag: float) -> float:
    """The root mean square distance of sketches about so many steps apart."""
    places = np.searchsorted(steps, steps + lag)
    squares = []
    for first, place in enumerate(places.tolist()):
        some = [each for each in (place - 1, place) if first < each < len(steps)]
        if not some:
            continue
        second = min(some, key=lambda each: abs(steps[each] - steps[first] - lag))
        ratio = (steps[second] - steps[first]) / lag
        if 1 / _CLOSE <= ratio <= _CLOSE:
            squares.append(float(np.sum((sketches[second] - sketches[first]) ** 2)))
    return float(np.sqrt(np.mean(squares))) if len(squares) >= _FEWEST_PAIRS else np.nan


def is_high(rates: Floats) -> bool:
    """Whether the last learning rate is known, and above a tenth of the highest."""
    if not len(rates) or not np.isfinite(rates[-1]):
        return False
    return bool(rates[-1] > _LOWEST_RATE * np.nanmax(rates))
