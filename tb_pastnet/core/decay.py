"""The sparsity of a network by step of its training."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tb_pastnet.core.arguments import answered
from tb_pastnet.core.checks import check_sparsity, is_number, is_whole
from tb_pastnet.errors import InvalidArgument


@answered
@dataclass(frozen=True)
class PolynomialDecay:
    """The sparsity rises fast at first, then more and more slowly.

    s(t) = final + (initial − final) · (1 − (t − begin) / (end − begin)) ** power, after Zhu and
    Gupta 2017, arXiv:1710.01878, whose power is 3.

    Attributes:
        initial: sparsity at `begin_step`, from 0 on.
        final: sparsity from `end_step` on, at least `initial` and below 1.
        begin_step: the first step at which weights are pruned.
        end_step: the last one, after `begin_step`.
        power: 1 for a straight line, above 0.

    Raises:
        InvalidArgument: a number is out of range.

    Example:
        >>> decay = PolynomialDecay(0.0, 0.8, begin_step=100, end_step=300)
        >>> [decay(step) for step in (99, 100, 200, 300, 400)]
        [None, 0.0, 0.7000000000000001, 0.8, 0.8]
    """

    initial: float
    final: float
    begin_step: int
    end_step: int
    power: float = 3

    def __post_init__(self) -> None:
        first = check_sparsity(self.initial, "initial=", "make a PolynomialDecay")
        last = check_sparsity(self.final, "final=", "make a PolynomialDecay")
        _check_step(self.begin_step, "begin_step")
        _check_step(self.end_step, "end_step")
        if last < first:
            raise _wrong("initial <= final", f"{first} and {last}", "Pruned weights stay pruned.")
        if self.end_step <= self.begin_step:
            got = f"{self.begin_step} and {self.end_step}"
            raise _wrong("begin_step < end_step", got, "For a single step use OneShot.")
        if not is_number(self.power) or not 0 < self.power < float("inf"):
            raise _wrong("a power above 0", repr(self.power), "Published is 3.")

    def __call__(self, step: int) -> float | None:
        """The sparsity at a step; None before `begin_step`."""
        if step < self.begin_step:
            return None
        left = max(0.0, 1 - (step - self.begin_step) / (self.end_step - self.begin_step))
        return float(self.final + (self.initial - self.final) * left**self.power)


@answered
@dataclass(frozen=True)
class OneShot:
    """Prunes everything at one step.

    Attributes:
        sparsity: from 0 up to below 1.
        step: when; 0 is before the first batch.

    Raises:
        InvalidArgument: a number is out of range.

    Example:
        >>> once = OneShot(0.5, step=100)
        >>> once(99), once(100), once(101)
        (None, 0.5, 0.5)
    """

    sparsity: float
    step: int

    def __post_init__(self) -> None:
        check_sparsity(self.sparsity, "sparsity=", "make a OneShot")
        _check_step(self.step, "step")

    @property
    def end_step(self) -> int:
        """The last step at which weights are pruned."""
        return self.step

    def __call__(self, step: int) -> float | None:
        """The sparsity at a step; None before `step`."""
        return None if step < self.step else float(self.sparsity)


def _check_step(step: Any, name: str) -> None:
    if not is_whole(step) or step < 0:
        raise _wrong(f"{name} from 0 on", f"{step!r:.60}", "Steps are whole batches.")


def _wrong(expected: str, got: str, mend: str) -> InvalidArgument:
    return InvalidArgument(f"Could not plan the pruning: expected {expected}, got {got}. {mend}")
