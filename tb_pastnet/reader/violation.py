"""Held weights that moved."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Violation:
    """Held weights of one channel that weren't what they were when they were held.

    Attributes:
        layer: the id of the layer.
        variable: the id of the variable.
        channel: which of its channels.
        first_step: the step of the first record that shows it.
        last_step: the step of the last one.
        elements: how many of the held weights differ at the last one.
        held: how many weights of the channel were held.
        largest: the largest |w - held value|; infinite where that isn't finite.
        cause: what moved them, such as "weight_decay", "momentum" or "unknown".
        text: all of it in one sentence.
    """

    layer: str
    variable: str
    channel: int
    first_step: int
    last_step: int
    elements: int
    held: int
    largest: float
    cause: str
    text: str
