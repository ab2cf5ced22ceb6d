"""The answers to the twenty questions of docs/benchmarks/histograms.md, from the weights alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks._histograms_training import EVERY, FORGET, Told
from demo.digits import STEPS_PER_EPOCH

LAYERS = ("conv1", "conv2", "hidden", "logits")
ASKED = (799, 800)  # the outputs are kept at these steps
QUIET = 1e-4
PATIENCE = 5

Array = NDArray[Any]


def values(told: Told) -> dict[str, Array]:
    """The weights after each step by layer and variable, such as "conv1/kernel"."""
    return {name.split("/", 1)[1]: kept.astype(np.float64) for name, kept in told.values.items()}


def delta(kernel: Array) -> Array:
    """Relative change of each channel in each step, from step 1 on: (steps, channels)."""
    flat = kernel.reshape(len(kernel), -1, kernel.shape[-1])
    change = np.linalg.norm(np.diff(flat, axis=0), axis=1)
    norm = np.linalg.norm(flat[:-1], axis=1)
    known: Array = np.where(change > 0, np.inf, 0.0)
    np.divide(change, norm, out=known, where=norm > 0)
    return known


def changed(variable: Array, start: int, end: int) -> Array:
    """The steps from start to end in which anything of a variable changed."""
    flat = variable.reshape(len(variable), -1)
    moved = (np.diff(flat, axis=0) != 0).any(1)
    steps = np.flatnonzero(moved) + 1
    return steps[(steps >= start) & (steps <= end)]


def pruned_at(kernel: Array) -> Array:
    """The step from which on a channel is zero up to the end, -1 for those that aren't."""
    zero = (kernel.reshape(len(kernel), -1, kernel.shape[-1]) == 0).all(1)
    last = len(zero) - 1 - np.argmin(zero[::-1], axis=0)  # the last step at which it isn't
    return np.where(zero[-1], last + 1, -1)


def overlap(a: Array, b: Array) -> list[float]:
    """Intersection over union of two masks, and what chance would give."""
    d1, d2 = a.mean(), b.mean()
    return [float((a & b).sum() / (a | b).sum()), float(d1 * d2 / (d1 + d2 - d1 * d2))]


def movement(own: dict[str, Array], told: Told) -> dict[int, Any]:
    """Questions 1 to 5, 11, 12 and 15."""
    kernels = {layer: own[f"{layer}/kernel"] for layer in LAYERS}
    deltas = {layer: delta(kernel) for layer, kernel in kernels.items()}
    last = deltas["hidden"][1::EVERY][-PATIENCE:]
    forgotten = FORGET * STEPS_PER_EPOCH + 1
    leaks = {
        name: changed(own[name], forgotten, len(own[name]))
        for name in ("logits/kernel", "logits/bias")
    }
    conv1 = changed(own["conv1/kernel"], 1, len(own["conv1/kernel"]))
    gap = int(np.argmax(np.diff(conv1)))
    before, after = (told.outputs[step].astype(np.float64) for step in ASKED)
    return {
        1: [layer for layer in LAYERS if not len(changed(kernels[layer], 401, 1000))],
        2: [int(conv1[gap]) + 1, int(conv1[gap + 1])],
        3: [layer for layer in LAYERS if (deltas[layer][-1] >= QUIET).any()],
        4: int((last < QUIET).all(0).sum()),
        5: float(deltas["conv2"][300 - 1, 5]),
        11: [name for name, steps in leaks.items() if len(steps)],
        12: [int(min(steps[0] for steps in leaks.values())), "without compile"],
        15: float(np.linalg.norm(after - before) / np.linalg.norm(before)),
    }


def pruning(own: dict[str, Array], other: dict[str, Array]) -> dict[int, Any]:
    """Questions 6 to 10, 13 and 14."""
    since, elsewhere = pruned_at(own["conv2/kernel"]), pruned_at(other["conv2/kernel"])
    stairs = sorted(set(since[since >= 0].tolist()))
    zeros = {layer: own[f"{layer}/kernel"][-1] == 0 for layer in LAYERS}
    return {
        6: [np.flatnonzero(since == stairs[0]).tolist(), stairs[0]],
        7: stairs,
        8: np.flatnonzero(since < 0).tolist(),
        9: float(np.concatenate([zero.ravel() for zero in zeros.values()]).mean()),
        10: float(zeros["hidden"].mean()),
        13: np.flatnonzero((since < 0) & (elsewhere >= 0)).tolist(),
        14: overlap(~zeros["hidden"], other["hidden/kernel"][-1] != 0),
    }


def distribution(own: dict[str, Array]) -> dict[int, Any]:
    """Questions 16 to 20."""
    logits, conv2, bias = own["logits/kernel"], own["conv2/kernel"][300], own["hidden/bias"][-1]
    return {
        16: float(logits[-1].max()),
        17: "above" if (conv2 > 0).sum() > (conv2 < 0).sum() else "below",
        18: float(np.ptp(logits[-1]) / np.ptp(logits[EVERY])),
        19: bool((np.abs(bias - bias.mean()) > 3 * bias.std()).any()),
        20: np.quantile(conv2, (0.25, 0.75)).tolist(),
    }


def truth(told: dict[str, Told]) -> dict[int, Any]:
    """The answers by the number of the question."""
    first, second = (values(run) for run in told.values())
    run = next(iter(told.values()))
    return movement(first, run) | pruning(first, second) | distribution(first)


def _steps(answer: Any, known: Any) -> bool:
    if None in answer or len(answer) != len(known):
        return False
    return bool(np.all(np.abs(np.subtract(answer, known)) <= EVERY))


def _relative(tolerance: float) -> Callable[[Any, Any], bool]:
    return lambda answer, known: bool(np.allclose(answer, known, rtol=tolerance, atol=0))


def _absolute(tolerance: float) -> Callable[[Any, Any], bool]:
    return lambda answer, known: bool(np.allclose(answer, known, rtol=0, atol=tolerance))


def _same(answer: Any, known: Any) -> bool:
    return sorted(answer) == sorted(known) if isinstance(known, list) else bool(answer == known)


RULES: dict[int, Callable[[Any, Any], bool]] = {
    2: _steps,
    5: _relative(0.05),
    6: lambda answer, known: _same(answer[0], known[0]) and _steps(answer[1:], known[1:]),
    7: lambda answer, known: _steps(sorted(answer), known),
    9: _absolute(0.001),
    10: _absolute(0.01),
    12: lambda answer, known: _steps(answer[:1], known[:1]) and known[1] in answer[1],
    14: _absolute(0.01),
    15: _relative(0.05),
    16: _relative(0.05),
    18: _relative(0.1),
    20: _relative(0.2),
}


def right(question: int, answer: Any, known: Any) -> bool:
    """Whether an answer is right within the tolerance that the question gives."""
    return RULES.get(question, _same)(answer, known)
