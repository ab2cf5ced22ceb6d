"""Held weights that moved, as found by the audit: one violation for each channel and first step."""

from __future__ import annotations

import math
from dataclasses import dataclass

CAUSES: dict[str, str] = {
    "weight_decay": "weight decay",
    "momentum": "momentum left in the optimizer's slots",
    "ema": "the optimizer's moving average overwrote them",
    "loaded": "weights were loaded or set",
    "optimizer_replaced": "an optimizer that ignores the masks trains them",
    "not_recompiled": "trainable was changed without a new compile",
    "bypassed": "a train step traced before the masks were set bypasses them",
    "constraint": "the weight's constraint changed them",
    "gradient": "a gradient reached them: nothing enforces the masks",
    "stale_gradient": "their optimizer got a gradient for them, left over or set by hand",
    "another_model": "another model trains them",
    "written": "something other than the optimizer wrote them (declare targets with follows=)",
    "unmasked_update": "an update bypassed the masks",
    "unknown": "unknown",
}
"""What moved held weights, in words. A reader shows an unknown cause as it is."""

MOVING_STATISTICS = "Statistics of frozen layers still follow their inputs"
"""The beginning of a note on statistics, which are never held and so make no violation."""


def between(first: int, last: int) -> str:
    """A time for a sentence: at a step, or from one to another."""
    return f"at step {first:,}" if first == last else f"from step {first:,} to {last:,}"


@dataclass(frozen=True)
class Violation:
    """Held weights of one channel that differ from the values at which they were held.

    Attributes:
        first_step: the step of the first record that shows it.
        last_step: the step of the last record so far in which it moved.
        elements: held elements that differ now; None: that is unknown, because fingerprints were
            compared.
        held: held elements of the channel.
        largest: the largest |w - held value|; infinite where a weight or the difference isn't
            finite, NaN where it is unknown.
        cause: a key of `CAUSES`, or one of a later version.
    """

    variable: str
    channel: int
    first_step: int
    last_step: int
    elements: int | None
    held: int
    largest: float
    cause: str

    @property
    def key(self) -> tuple[str, int, int]:
        """Identifies this violation: a later entry with the same key replaces the earlier."""
        return self.variable, self.channel, self.first_step

    @property
    def text(self) -> str:
        """The violation in one sentence."""
        time = between(self.first_step, self.last_step)
        cause = f"Likely cause: {CAUSES.get(self.cause, self.cause)}."
        if self.elements is None:
            return (
                f"{self.variable}, channel {self.channel:,}: of {self.held:,} held weights some "
                f"moved {time}; their fingerprint doesn't show how many, or how far. {cause}"
            )
        size = (
            f"by at most {self.largest:.3g}"
            if math.isfinite(self.largest)
            else "to non-finite values"
        )
        return (
            f"{self.variable}, channel {self.channel:,}: {self.elements:,} of {self.held:,} held "
            f"weights moved {time}, {size}. {cause}"
        )
