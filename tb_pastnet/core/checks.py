"""Numbers from the user: of every numeric type of Python and NumPy, but never a bool."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

from tb_pastnet.errors import InvalidArgument


def is_number(value: Any) -> bool:
    """Whether it is one real number, NaN and infinity too."""
    return isinstance(value, Real) and not isinstance(value, bool)


def is_whole(value: Any) -> bool:
    """Whether it is one whole number by its type, which 2.0 isn't."""
    return isinstance(value, Integral) and not isinstance(value, bool)


def check_step(step: Any, done: str) -> None:
    """Raises InvalidArgument for a step to look at that is neither whole, in 64 bits, nor None."""
    if step is not None and not (is_whole(step) and -(2**63) <= step < 2**63):
        raise InvalidArgument(
            f"Could not {done}: expected step= a whole number of 64 bits, got {step!r:.60}. Leave "
            f"it out for the last record."
        )


def check_rate(rate: Any) -> None:
    """Raises InvalidArgument for a learning rate that a user gives by name."""
    if isinstance(rate, str | bytes):
        raise InvalidArgument(
            f"Could not record the learning rate: expected learning_rate= a number or a function "
            f"of the step, got {rate!r:.60}. Pass its value; to Keras's recorders the optimizer."
        )


def check_threshold(value: Any) -> None:
    """Raises InvalidArgument if this can't be the relative delta below which channels are quiet."""
    if not is_number(value) or not 0 <= value < float("inf"):
        raise InvalidArgument(
            f"Could not find which channels are quiet: expected threshold= of at least 0, got "
            f"{value!r:.60}. It is a relative delta; leave it out for 1e-4."
        )


def check_sparsity(
    value: float, name: str = "a sparsity", task: str = "prune the smallest weights"
) -> float:
    """Reads a user's sparsity: a number from 0 up to below 1, else InvalidArgument."""
    if not is_number(value) or not 0 <= value < 1:
        raise InvalidArgument(
            f"Could not {task}: expected {name} from 0 up to below 1, got {value!r:.60}. It is the "
            f"fraction of all weights that are pruned afterwards: write 0.8 for 80 %."
        )
    return float(value)
