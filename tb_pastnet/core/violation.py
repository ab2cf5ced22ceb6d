"""Held weights that moved: what the audit found, a channel and a beginning each."""

from __future__ import annotations

import math
from dataclasses import dataclass

CAUSES: dict[str, str] = {
    "weight_decay": "weight decay",
    "momentum": "momentum left in the optimizer's slots",
    "ema": "the optimizer's moving average overwrote them",
    "loaded": "weights were loaded or set",
    "optimizer_replaced": "an optimizer trains them that doesn't hold them",
    "not_recompiled": "trainable was changed without compile",
    "bypassed": "a step that was traced before the masks came goes around them",
    "constraint": "the constraint of the weight changed them",
    "gradient": "a gradient reached them, as nothing holds them",
    "stale_gradient": "a gradient was left when they were frozen, so that the optimizer goes on",
    "another_model": "another model trains them",
    "written": "something else than an optimizer's apply wrote them",
    "unmasked_update": "an update that doesn't go through the masks",
    "unknown": "unknown",
}
"""What moved held weights, in words. A reader shows a cause that it doesn't know as it is."""


def between(first: int, last: int) -> str:
    """When something was so, for a sentence: at a step, or from one to another."""
    return f"at step {first:,}" if first == last else f"from step {first:,} to {last:,}"


@dataclass(frozen=True)
class Violation:
    """Held weights of one channel that aren't what they were when they were held.

    Attributes:
        first_step: the step of the first record that shows it.
        last_step: the step of the last record so far in which it moved.
        elements: held elements that differ now.
        held: held elements of the channel.
        largest: the largest |w - held value|; infinite where a weight or the difference isn't
            finite.
        cause: a key of `CAUSES`, or one of a later version.
    """

    variable: str
    channel: int
    first_step: int
    last_step: int
    elements: int
    held: int
    largest: float
    cause: str

    @property
    def key(self) -> tuple[str, int, int]:
        """Tells which violation this is: a later entry of the same replaces the earlier."""
        return self.variable, self.channel, self.first_step

    @property
    def text(self) -> str:
        """One sentence that says all of it."""
        size = (
            f"by at most {self.largest:.3g}"
            if math.isfinite(self.largest)
            else "to values that are not finite"
        )
        return (
            f"{self.variable}, channel {self.channel:,}: {self.elements:,} of {self.held:,} held "
            f"weights moved {between(self.first_step, self.last_step)}, {size}. Cause: "
            f"{CAUSES.get(self.cause, self.cause)}."
        )
