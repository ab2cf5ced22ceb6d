"""Long matrices of cases: a sample of them at each change, all of them in the proof."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def sampled(cases: Iterable[Any], every: int, first: int = 0) -> list[Any]:
    """Parameters of a test, of which each `every`-th runs at each change, from the `first` on.

    A tuple has a value for each argument.
    """
    tuples = (case if isinstance(case, tuple) else (case,) for case in cases)
    return [
        pytest.param(*values, marks=() if number % every == first else pytest.mark.prove)
        for number, values in enumerate(tuples)
    ]
