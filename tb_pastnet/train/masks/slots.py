"""What an optimizer keeps of a variable: momentums and the like, and its moving average.

Keras has no public way from a variable to its slots. They are the optimizer's lists with one entry
for each variable, found by their length and shapes, so that a new optimizer's are found as well.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tb_pastnet.train.model.walk import tf_variable

_AVERAGES = "_model_variables_moving_average"
_WEIGHTS = "_trainable_variables"


def slots_of(optimizer: Any, variable: Any) -> dict[str, Any]:
    """The slots of a variable that have its shape, without its moving average.

    Args:
        optimizer: innermost, of Keras.
        variable: a tf.Variable.

    Returns:
        tf.Variables by the name of the optimizer's list, such as "_momentums"; none where the
        optimizer isn't built or doesn't train the variable.
    """
    return {name: slot for name, slot in _entries(optimizer, variable) if name != _AVERAGES}


def average_of(optimizer: Any, variable: Any) -> Any:
    """The moving average of a variable, None without `use_ema`."""
    if not getattr(optimizer, "use_ema", False):
        return None
    return dict(_entries(optimizer, variable)).get(_AVERAGES)


def _entries(optimizer: Any, variable: Any) -> Iterator[tuple[str, Any]]:
    weights = [tf_variable(weight) for weight in getattr(optimizer, _WEIGHTS, [])]
    at = next((i for i, weight in enumerate(weights) if weight is variable), None)
    if at is None:
        return
    for name, entries in vars(optimizer).items():
        if name == _WEIGHTS or not isinstance(entries, list) or len(entries) != len(weights):
            continue
        slot = tf_variable(entries[at])
        if slot is not None and slot.shape == variable.shape:
            yield name, slot
