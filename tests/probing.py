"""How far outputs moved, in NumPy: the definitions of `core.function_change` anew."""

from __future__ import annotations

from typing import Any

import numpy as np


def change(current: Any, past: Any) -> list[float]:
    """Relative change and cosine of arrays, or of lists of them that count as one."""
    y, before = (
        np.concatenate([np.ravel(np.asarray(part, np.float64)) for part in side])
        for side in (_list(current), _list(past))
    )
    norms = np.linalg.norm(y), np.linalg.norm(before)
    delta = np.linalg.norm(y - before)
    if not (np.isfinite(y).all() and np.isfinite(before).all()):
        return [np.nan, np.nan]
    relative = 0.0 if delta == 0 else np.inf if norms[1] == 0 else delta / norms[1]
    if 0 in norms:
        return [relative, float(norms[0] == norms[1])]
    return [relative, float(y @ before) / norms[0] / norms[1]]


def decided(current: Any, past: Any) -> list[float]:
    """Mean divergence of probabilities (…, classes), and the share of other decisions."""
    p, before = (
        np.asarray(side, np.float64).reshape(-1, np.shape(side)[-1]) for side in (current, past)
    )
    terms = [
        sum(b * (np.log(b) - np.log(q)) for q, b in zip(*rows, strict=True) if b)
        for rows in zip(p, before, strict=True)
    ]
    return [float(np.mean(terms)), float(np.mean(p.argmax(1) != before.argmax(1)))]


def softmax(logits: Any) -> Any:
    """Probabilities along the last axis."""
    shifted = np.asarray(logits, np.float64)
    raised = np.exp(shifted - shifted.max(-1, keepdims=True))
    return raised / raised.sum(-1, keepdims=True)


def sigmoid(logits: Any) -> Any:
    """Probabilities of no and of yes, along a new last axis."""
    yes = 1 / (1 + np.exp(-np.asarray(logits, np.float64)))
    return np.stack([1 - yes, yes], -1)


def _list(side: Any) -> list[Any]:
    return side if isinstance(side, list) else [side]
