"""Keeps the masks of a model in force: on its optimizer, and on every one that replaces it.

`compile` gives a model a new optimizer, without our hook. The model's `train_step` is wrapped, so
that the hook is there again before the new step is traced.
"""

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
    hook_of,
    merged,
    slots_of,
)
from tb_pastnet.keras.masks.variable_masks import VariableMasks
from tb_pastnet.keras.model.optimizers import innermost, optimizers_of
from tb_pastnet.keras.model.weights import shown

ATTRIBUTE = "_pastnet_masks"


class MaskEnforcer:
    """Puts hooks where updates are made, once `enforces`; before, masks are only declared."""

    def __init__(self, model: Any, state: MaskState) -> None:
        self._model = model
        self._state = state
        self.enforces = False
        # Weak, as a replaced optimizer's slots may be twice as large as the model.
        self._hooks: list[weakref.ref[Hook]] = []

    @property
    def hooks(self) -> list[Hook]:
        """On every optimizer that was met and is still alive, in this order."""
        return [hook for reference in self._hooks if (hook := reference()) is not None]

    def enforce(self, optimizer: keras.optimizers.Optimizer | None) -> None:
        """Holds from now on."""
        optimizers = optimizers_of(self._model) if optimizer is None else [optimizer]
        if not optimizers or not isinstance(optimizers[0], keras.optimizers.Optimizer):
            got = "none" if optimizer is None else type(optimizer).__name__
            raise InvalidArgument(
                f"Could not hold the masks of {shown(self._model)}: expected a model compiled with "
                f"a Keras optimizer, or optimizer=, got {got}. Compile the model first, pass the "
                f"optimizer that trains it, or only watch with enforce=False."
            )
        for each in optimizers:
            self.install(each)
        if self.enforces:
            return
        self.enforces = True
        if isinstance(self._model, keras.Model):
            self._wrap_train_step(self._model)
        # Of masks that were only declared no traced step knows.
        for masks in self._state.masked.values():
            self.enforce_now(masks, first=True)

    def compiled_optimizer(self) -> Any:
        """The optimizer that the model is compiled with, None where it isn't."""
        return getattr(self._model, "optimizer", None)

    def optimizer(self) -> Any:
        """The innermost optimizer that trains the model as far as is known, None without one."""
        compiled = self.compiled_optimizer()
        if compiled is not None:
            return innermost(compiled)
        return self.hooks[-1].optimizer if self.hooks else None

    def install(self, optimizer: keras.optimizers.Optimizer) -> None:
        """Puts the hook on an optimizer, once."""
        inner = innermost(optimizer)
        hook = hook_of(inner)
        if hook is None:
            merged(lambda _: self._hooks.append(weakref.ref(Hook(inner, self._state))), inner)
        elif not any(table is self._state for table in hook.tables):
            # Networks that one optimizer trains, such as the parts of a larger one.
            hook.tables.append(self._state)
            self._hooks.append(weakref.ref(hook))

    def enforce_now(self, masks: VariableMasks, *, first: bool) -> None:
        """Puts a change in force at once; no traced step knows of a variable's first masks."""
        if not self.enforces:
            return
        masks.zero()
        for hook in self.hooks:
            average = averages_of(hook.optimizer).get(id(masks.variable))
            if average is not None:
                masks.restore(average, masks.through, masks.held_now())
        if first:
            self.retrace()

    def retrace(self) -> None:
        """Lets `fit` trace its step again. An own step is traced by its owner."""
        if getattr(self._model, "train_function", None) is not None:
            self._model.make_train_function(force=True)

    def clear_slots(self, variable: tf.Variable, where: Mask) -> None:
        """Sets what optimizers keep of some elements to what it is for weights that are new."""
        for hook in self.hooks:
            # Of Adagrad and Ftrl, which divide by it.
            start = getattr(hook.optimizer, "initial_accumulator_value", 0.0)
            for name, slot in slots_of(hook.optimizer, variable).items():
                value = float(start) if name == "_accumulators" else 0.0
                fresh = np.array(value, slot.dtype.as_numpy_dtype)
                slot.assign(np.where(where, fresh, slot.numpy()))

    def _wrap_train_step(self, model: Any) -> None:
        original = model.train_step

        def train_step(*args: Any, **kwargs: Any) -> Any:
            with tf.init_scope():
                for optimizer in optimizers_of(model):
                    self.install(optimizer)
            return original(*args, **kwargs)

        model.train_step = train_step


def attach(model: Any, state: MaskState) -> None:
    """Keeps the masks with the model, so that they are saved with it."""
    if not isinstance(model, keras.layers.Layer | tf.Module):
        return
    MaskState.attached += 1
    try:
        setattr(model, ATTRIBUTE, state)
    except tf.errors.NotFoundError as error:
        raise InvalidArgument(
            f"Could not take up the masks of {shown(model)}: expected the checkpoint that it was "
            f"restored from, got none in its place. Make Masks before you restore, or restore "
            f"again."
        ) from error


def attached(model: Any) -> MaskState | None:
    """The masks that a model carries, None where it has none."""
    # Asked at each step: `getattr` takes long to find that a model has none.
    state = getattr(model, "__dict__", {}).get(ATTRIBUTE)
    return state if state is None or isinstance(state, MaskState) else None
