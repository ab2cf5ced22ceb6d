"""What can be read of an optimizer of Keras, as evidence. What can't be read is left out."""

from __future__ import annotations

import weakref
from contextlib import suppress
from typing import Any, NamedTuple

import keras
import numpy as np
import tensorflow as tf

from tb_pastnet.keras.audit.assigned import assignments, count_assignments
from tb_pastnet.keras.audit.causes import Array
from tb_pastnet.keras.audit.watch import Ints, values_at
from tb_pastnet.keras.masks.hook import hook_of
from tb_pastnet.keras.masks.slots import averages_of, slots_of
from tb_pastnet.keras.model.walk import tf_variable

_BETAS = ("momentum", "beta_1", "beta_2", "rho")
_POINTS = 64
_FORGOTTEN = 1e-4


class Applied(NamedTuple):
    """Updates that an optimizer has made, and those that went through its hook.

    Attributes:
        made: raw `iterations`.
        loaded: how often that was set by hand.
        hooked: updates through the hook.
        generation: of the masks, that the last of them knew.
    """

    made: int = 0
    loaded: int = 0
    hooked: int = 0
    generation: int = 0


def nothing() -> None:
    """A weak reference to nothing."""


def reference(thing: Any) -> Any:
    """A weak reference where that can be: what was replaced may be large."""
    try:
        return weakref.ref(thing)
    except TypeError:
        return nothing


def applied(optimizer: Any) -> Applied:
    """Counts updates; zeros without a hook. From the first call on also what sets the counter."""
    hook = None if optimizer is None else hook_of(optimizer)
    if hook is None:
        return Applied()
    counter = tf_variable(optimizer._iterations)
    count_assignments(counter)
    return Applied(
        _whole(counter),
        assignments(counter),
        _whole(hook.applied),
        _whole(hook.generation),
    )


def updates(optimizer: Any) -> int:
    """Its `iterations`, 0 without an optimizer."""
    with suppress(Exception):
        return _whole(optimizer.iterations)
    return 0


def rate(optimizer: Any) -> float:
    """The learning rate, NaN where it follows a schedule or isn't known."""
    with suppress(Exception):
        if not _schedule(optimizer):
            return float(tf.convert_to_tensor(optimizer.learning_rate))
    return float("nan")


def rates(optimizer: Any, since: int, until: int, then: float) -> list[Array]:
    """The learning rates of some updates.

    Args:
        optimizer: innermost, of Keras.
        since: its updates before.
        until: its updates after.
        then: the rate before.

    Returns:
        One array of shape (until − since,), or several where the rate was changed in between.
    """
    schedule, count = _schedule(optimizer), until - since
    if schedule:
        points = np.unique(np.linspace(since, until - 1, _POINTS).astype(np.int64))
        known = [float(schedule(point)) for point in points.tolist()]
        return [np.interp(np.arange(since, until), points, known)]
    now = rate(optimizer)
    if then == now or not np.isfinite(then):
        return [np.full(count, now)]
    # A callback changed it, at one of these updates.
    changes = range(count + 1) if count <= _POINTS else (0, count)
    return [np.repeat([then, now], [at, count - at]) for at in changes]


def decay(optimizer: Any, variable: Any) -> float:
    """The weight decay of a variable.

    Args:
        optimizer: innermost, of Keras.
        variable: the keras.Variable.
    """
    with suppress(Exception):
        if not optimizer._use_weight_decay(variable):
            return 0.0
        # Muon leaves some variables to AdamW.
        other = getattr(optimizer, "_should_use_adamw", None)
        if other is not None and other(variable):
            return float(optimizer.adam_weight_decay or 0)
        return float(optimizer.weight_decay or 0)
    return 0.0


def betas(optimizer: Any) -> list[float]:
    """The factors by which slots decay."""
    known = (vars(optimizer).get(name) for name in _BETAS)
    return [float(beta) for beta in known if beta]


def trains(optimizer: Any, variable: Any) -> bool:
    """Whether the variable is among those that the optimizer was built for."""
    known = getattr(optimizer, "_trainable_variables", ())
    return any(tf_variable(one) is variable for one in known)


def average(optimizer: Any, variable: Any, before: int) -> Any:
    """The moving average of a variable, where it has overwritten the weights.

    Args:
        optimizer: innermost, of Keras.
        variable: the tf.Variable.
        before: updates at the last check.

    Returns:
        A tf.Variable, None where it hasn't since then.
    """
    found = averages_of(optimizer).get(id(variable))
    if found is None:
        return None
    now, often = updates(optimizer), optimizer.ema_overwrite_frequency
    if often:
        return found if now // often > before // often else None
    # Without a frequency weights are overwritten when `fit` ends. Long after any other movement
    # the average has come to equal the weights by itself.
    return found if optimizer.ema_momentum ** (now - before) > _FORGOTTEN else None


def slots_at(optimizer: Any, variable: Any, positions: Ints) -> dict[str, Array]:
    """Some elements of all slots of a variable.

    Args:
        optimizer: innermost, of Keras; None has none.
        variable: the tf.Variable.
        positions: in the flattened variable.
    """
    if optimizer is None or not len(positions):
        return {}
    with suppress(Exception):
        slots = slots_of(optimizer, variable)
        return {name: values_at(slot, positions) for name, slot in slots.items()}
    return {}


def _whole(variable: Any) -> int:
    return int(tf.convert_to_tensor(variable))


def _schedule(optimizer: Any) -> Any:
    found = getattr(optimizer, "_learning_rate", None)
    schedule = keras.optimizers.schedules.LearningRateSchedule
    return found if isinstance(found, schedule) else None
