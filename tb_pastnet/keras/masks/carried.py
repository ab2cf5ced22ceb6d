"""The masks of a model: stored with it, and found when it is recorded.

The Keras methods that update, compile, save and copy are patched once, when the first masks are
made in a process.
"""

from __future__ import annotations

import functools
import gc
import weakref
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import keras
import tensorflow as tf

from tb_pastnet.core.mask_input import Mask
from tb_pastnet.errors import InvalidArgument
from tb_pastnet.keras.masks.mask_state import TRACED, MaskState
from tb_pastnet.keras.masks.optimizers import UPDATING, holding
from tb_pastnet.keras.masks.variable_masks import MASKS
from tb_pastnet.keras.model.tf_variable import tf_variable
from tb_pastnet.keras.model.tf_weights import TFWeight
from tb_pastnet.keras.model.weights import shown
from tb_pastnet.record.failures import LOGGER
from tb_pastnet.record.masks.commands import wrong_masks
from tb_pastnet.record.masks.mask_table import MaskTable

ATTRIBUTE = "_pastnet_masks"

_STATES: weakref.WeakSet[MaskState] = weakref.WeakSet()
"""Of all models: a part of one may load masks from its own file."""

_LOST_ZEROS = (
    "Could not keep the pruned weights of %s at zero: expected zeros in %s, got other values, set "
    "after pruning, as EarlyStopping(restore_best_weights=True) does. The next update zeroes them, "
    "and so does masks.prune(name, masks.kept[name]); both change the outputs. To choose among "
    "pruned networks only, pass start_from_epoch= after the end of the schedule."
)


def attach(model: Any, state: MaskState) -> None:
    """Stores the masks with the model, so they are saved with it."""
    _STATES.add(state)
    if not isinstance(model, keras.layers.Layer | tf.Module):
        return
    try:
        setattr(model, ATTRIBUTE, state)
    except tf.errors.NotFoundError as error:
        raise InvalidArgument(
            f"Could not restore the masks of {shown(model)}: expected the checkpoint that it was "
            "restored from, got none. Make Masks before you restore, or restore again."
        ) from error


def attached(model: Any) -> MaskState | None:
    """The masks that a model carries, None if it has none."""
    # Called at each step: `getattr` is slow if a model has none.
    state = getattr(model, "__dict__", {}).get(ATTRIBUTE)
    return state if state is None or isinstance(state, MaskState) else None


def carry(model: Any) -> MaskState | None:
    """Attaches the masks of its weights to a model, whatever made them; None if there are none."""
    state = attached(model)
    if state is None and any(MASKS.of(tf_variable(each)) is not None for each in model.variables):
        state = MaskState(model)
        attach(model, state)
    return state


def _carry_loaded(model: Any) -> None:
    """Attaches the masks that a file may have for a model if `Masks` view some of its weights."""
    if attached(model) is not None:
        return
    variables = [tf_variable(each) for each in model.variables]
    views = [state for state in list(_STATES) if _concern(state, variables)]
    if views:
        state = MaskState(model)
        if not any(view.enforces for view in views):
            state.declare()
        attach(model, state)


@functools.cache
def patch_keras() -> None:
    """Enforces masks in all updates of this process, and attaches them to models and copies."""
    keras.optimizers.Optimizer.apply = holding(keras.optimizers.Optimizer.apply)
    for name in ("make_train_function", "save", "save_weights", "load_weights"):
        setattr(keras.Model, name, _carrying(getattr(keras.Model, name)))
    for name in ("fit", "save", "save_weights"):
        setattr(keras.Model, name, _checking(getattr(keras.Model, name)))
    keras.layers.Layer.__reduce__ = _reducing(keras.layers.Layer.__reduce__)
    # Those that are already compiled, or have made updates.
    for each in gc.get_objects():
        if issubclass(type(each), keras.Model):
            TRACED.add(each)
        elif issubclass(type(each), keras.optimizers.Optimizer):
            UPDATING.setdefault(each)


def _carrying(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            TRACED.add(self)
            state = carry(self)
            if original.__name__ == "load_weights":
                _carry_loaded(self)
            if original.__name__ == "save" and state is not None and state.masked:
                _warn_of_hdf5(*args, **kwargs)
        except Exception as error:
            # Training or saving continues: the model may not even have masks.
            LOGGER.warning("Could not attach the masks of its weights to a model: %s", error)
        return original(self, *args, **kwargs)

    return method


def _warn_of_hdf5(filepath: Any, *_: Any, **__: Any) -> None:
    if str(filepath).endswith((".h5", ".hdf5")):
        LOGGER.warning(
            "Could not save masks into %s: expected a .keras or .weights.h5 file, got Keras's old "
            "format, which stores only weights and configs. Save into a .keras file.",
            filepath,
        )


def _checking(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        result = original(self, *args, **kwargs)
        state = attached(self)
        if state is not None:
            lost = [name for name, masks in state.masked.items() if masks.has_lost_zeros()]
            if lost:
                LOGGER.warning(_LOST_ZEROS, shown(self), ", ".join(map(repr, lost)))
        return result

    return method


def _reducing(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def reduce(self: Any) -> Any:
        function, arguments = original(self)
        state = carry(self)
        if state is None or not state.masked:
            return function, arguments
        enforced = any(masks.enforced for masks in state.masked.values())
        return _copied, (state.serialize(), enforced, function, *arguments)

    return reduce


def _copied(masks: bytes, enforced: bool, function: Callable[..., Any], *arguments: Any) -> Any:
    """Makes a model as Keras does, with masks."""
    from tb_pastnet.keras.masks.masks import Masks  # they patch

    model = function(*arguments)
    state = Masks(model, enforce=enforced).state
    state.deserialize(masks)
    state.registry.settle()
    return model


def masks_in(model: Any, weights: Sequence[TFWeight]) -> Callable[[], MaskTable | None]:
    """Returns a function for the masks of some weights, whatever made them; None if there are none.

    It is called at each step.
    """
    view = MaskTable(weights, MASKS)
    seen, found = -1, False

    def find() -> MaskTable | None:
        nonlocal seen, found
        if seen != view.version:
            seen, found = view.version, bool(view.masked)
        return attached(model) or (view if found else None)

    return find


def given_masks(masks: Any, weights: Sequence[TFWeight]) -> Callable[[], MaskTable | None]:
    """The masks that a user gives for some weights; raises InvalidArgument where they aren't."""
    table = getattr(masks, "state", None)
    if not isinstance(table, MaskState):
        raise wrong_masks("record masks", f"a {type(masks).__name__}")
    check_concerns(table, [weight.trained for weight in weights], "record masks")
    return lambda: table


def check_concerns(masks: MaskState, variables: Iterable[Any], doing: str) -> None:
    """Raises InvalidArgument where masks are of none of some tf.Variables."""
    if not _concern(masks, variables):
        raise wrong_masks(doing, f"masks of {', '.join([*masks.weights][:2])} of another one")


def _concern(masks: MaskState, variables: Iterable[Any]) -> bool:
    masks.look()
    own = {id(weight.trained) for weight in masks.weights.values()}
    return not own.isdisjoint(map(id, variables))


def left_behind(weights: Sequence[TFWeight]) -> list[str]:
    """Weights without masks that are zero where masks of another model prune, by name.

    `keras.models.clone_model` and `set_weights` leave them so. Frozen values prove nothing: another
    model may begin with the same ones.
    """
    pruned = [(each.variable, ~each.kept.numpy()) for each in MASKS.all()]
    pruned = [(variable, where) for variable, where in pruned if where.any()]
    return [
        weight.name
        for weight in weights
        if pruned and MASKS.of(weight.variable) is None and not weight.found.statistic
        if any(_zero_there(weight, *each) for each in pruned)
    ]


def _zero_there(weight: TFWeight, variable: Any, where: Mask) -> bool:
    if variable.shape != weight.variable.shape:
        return False
    value = weight.read()
    # All zeros, such as a new bias, prove nothing.
    return bool(value.any() and not value[where].any())
