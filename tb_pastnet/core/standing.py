"""Why weights are idle: no update changes them, though an optimizer should train them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class StandingCause(NamedTuple):
    """A cause for which weights are idle."""

    text: str  # in words, after a colon
    # whether it shows that they don't learn, before training has ended
    proven: bool = True
    moves: bool = False  # whether their bits may change nevertheless


UNKNOWN = "unknown"

CAUSES: Mapping[str, StandingCause] = {
    "no_optimizer": StandingCause(
        "no optimizer that makes steps has them. Add them to the optimizer's parameters, or freeze "
        "them if that is meant"
    ),
    "group_rate": StandingCause(
        "the learning rate of their group is 0. Set it, or freeze them if that is meant"
    ),
    "rate": StandingCause("the learning rate is 0", proven=False),
    "no_gradient": StandingCause(
        "their gradient is None: the loss doesn't depend on them (detach, no_grad, or a part that "
        "isn't used)"
    ),
    "zero_gradient": StandingCause("their gradient is exactly zero", proven=False),
    "zero_adapter": StandingCause(
        "what their adapter adds is still zero: its matrix B hasn't moved", proven=False
    ),
    "skipped": StandingCause(
        "every step of their optimizer was skipped, because their gradient isn't finite"
    ),
    "thrown_away": StandingCause(
        "updates are thrown away: the optimizer makes them, but something else has the last word. "
        "Keep the updated values"
    ),
    "weight_decay": StandingCause(
        "only weight decay moves them: their gradient is exactly zero", moves=True
    ),
    "rounded": StandingCause(
        "most updates are rounded away in 16 bits. Keep the trained weights in float32", moves=True
    ),
    UNKNOWN: StandingCause("the cause is unknown", proven=False),
}
"""Of each name in a log, the first that applies. A reader shows the name of a later version as it
is. tests/unit/test_copied_tables.py compares the tables of the docs."""


def is_proven(cause: str) -> bool:
    """Whether a cause, which a later version may have written, shows that weights don't learn."""
    return cause in CAUSES and CAUSES[cause].proven


def may_move(cause: str) -> bool:
    """Whether the bits of weights that are idle for a cause may change."""
    return cause in CAUSES and CAUSES[cause].moves


def in_words(cause: str) -> str:
    """A cause for a sentence; one of a later version by its name."""
    return CAUSES[cause].text if cause in CAUSES else cause
