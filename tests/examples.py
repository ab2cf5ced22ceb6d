"""More examples for a property, or fewer, than the profile of Hypothesis that runs has."""

from __future__ import annotations

from hypothesis import settings

DEEPEST = 5000
"""As many as `--hypothesis-profile=thorough` gives to any property."""


def examples(factor: float) -> settings:
    """So many times the usual number: at each change that is 50."""
    return settings(max_examples=min(round(factor * settings().max_examples), DEEPEST))
