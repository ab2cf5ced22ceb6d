"""What NumPy says of two values of a weight, in float64, by channels of the last axis."""

from __future__ import annotations

from typing import Any

import numpy as np

ROUNDED = 0.0225
"""Relative, of what a log keeps."""
BELOW_ONE = 0.0444
"""The same of a share: nothing below 1 is rounded to it."""


def statistics(past: np.ndarray, now: np.ndarray) -> dict[str, np.ndarray]:
    old, new = (
        each.astype(np.float64).reshape(-1, (each.shape or (1,))[-1]) for each in (past, now)
    )
    with np.errstate(invalid="ignore", over="ignore"):
        delta = new - old
        return {
            "norm": np.linalg.norm(new, axis=0),
            "past_norm": np.linalg.norm(old, axis=0),
            "delta_norm": np.linalg.norm(delta, axis=0),
            "delta_max": abs(delta).max(axis=0),
            "changed": (new != old).mean(axis=0),
            "nonfinite": (~np.isfinite(new)).sum(axis=0),
        }


def compare(variable: Any, row: int, past: np.ndarray, now: np.ndarray) -> None:
    """All statistics of a record."""
    for name, expected in statistics(past, now).items():
        shown = getattr(variable, name)[row]
        rounded = BELOW_ONE if name == "changed" else ROUNDED
        np.testing.assert_allclose(shown, expected, rtol=rounded, atol=1e-30, err_msg=name)


def bits_differ(before: np.ndarray, now: np.ndarray) -> np.ndarray:
    """Whether any bit of each channel differs."""
    words = (each.view(f"u{each.itemsize}") for each in map(np.ascontiguousarray, (before, now)))
    old, new = (each.reshape(-1, (each.shape or (1,))[-1]) for each in words)
    return (old != new).any(axis=0)
