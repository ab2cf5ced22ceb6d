"""Enforces the masks of a model: in all future updates, and in the compiled steps of `fit`."""

from __future__ import annotations

import weakref
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from tb_pastnet.core.mask_input import Mask
from tb_pastnet.errors import InvalidArgument
from tb_pastnet.keras.masks.mask_state import MaskState
from tb_pastnet.keras.masks.optimizers import (
    Hook,
    averages_of,
    install,
    slots_of,
)
from tb_pastnet.keras.masks.patches import patch_keras
from tb_pastnet.keras.masks.traces import retrace
from tb_pastnet.keras.masks.variable_masks import VariableMasks
from tb_pastnet.keras.model.optimizers import innermost, optimizers_of
from tb_pastnet.keras.model.weights import shown


class MaskEnforcer:
    """Enforces changes of masks once `enforces`; before, masks are only declared."""

    def __init__(self, model: Any, state: MaskState) -> None:
        patch_keras()
        self._model = model
        self._state = state
        self.enforces = False
        # Weak, because a replaced optimizer's slots may be twice as large as the model.
        self._hooks: weakref.WeakSet[Hook] = weakref.WeakSet()
        self._latest: weakref.ref[Hook] | None = None

    def enforce(self, optimizer: keras.optimizers.Optimizer | None) -> None:
        """Enforces from now on, whatever updates the weights."""
        optimizers = optimizers_of(self._model) if optimizer is None else [optimizer]
        if not all(isinstance(each, keras.optimizers.Optimizer) for each in optimizers):
            raise InvalidArgument(
                f"Could not hold the masks of {shown(self._model)}: expected a Keras optimizer, "
                f"got {type(optimizer).__name__}. Pass the one that trains it, or only audit with "
                f"enforce=False."
            )
        for each in optimizers:
            hook = install(innermost(each))
            self._hooks.add(hook)
            self._latest = weakref.ref(hook)
        if not self.enforces:
            self.enforces = True
            for masks in self._state.masked.values():
                masks.fresh = masks.fresh or not masks.enforced
                self.enforce_now(masks)

    def optimizer(self) -> Any:
        """The innermost known optimizer of the model, None without one."""
        compiled = getattr(self._model, "optimizer", None)
        if compiled is not None:
            return innermost(compiled)
        latest = None if self._latest is None else self._latest()
        others = (hook for masks in self._state.masked.values() for hook in masks.hooks)
        hook = latest or next(others, None)
        return None if hook is None else hook.optimizer

    def enforce_now(self, masks: VariableMasks) -> None:
        """Enforces a change; steps traced before a variable's first masks don't use them."""
        if not self.enforces:
            return
        masks.enforced = True
        masks.hooks.update(self._hooks)
        masks.put_back()
        for hook in masks.hooks:
            average = averages_of(hook.optimizer).get(id(masks.variable))
            if average is not None:
                masks.restore(average, masks.through, masks.held_now())
        if masks.fresh:
            masks.fresh = False
            retrace([masks.variable])

    def clear_slots(self, variable: tf.Variable, where: Mask) -> None:
        """Resets the optimizer slots of some elements to their initial values."""
        masks = self._state.storage_of(variable)
        for hook in () if masks is None else masks.hooks:
            # For Adagrad and Ftrl, which divide by it.
            start = getattr(hook.optimizer, "initial_accumulator_value", 0.0)
            for name, slot in slots_of(hook.optimizer, variable).items():
                value = float(start) if name == "_accumulators" else 0.0
                fresh = np.array(value, slot.dtype.as_numpy_dtype)
                slot.assign(np.where(where, fresh, slot.numpy()))
