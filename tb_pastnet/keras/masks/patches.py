"""The Keras methods that masks patch: those that update, compile, save and copy.

They are patched once, when the first masks are made in a process.
"""

from __future__ import annotations

import functools
import gc
from collections.abc import Callable
from typing import Any

import keras

from tb_pastnet.keras.masks.carried import carry
from tb_pastnet.keras.masks.optimizers import holding
from tb_pastnet.keras.masks.traces import TRACED
from tb_pastnet.record.failures import LOGGER


@functools.cache
def patch_keras() -> None:
    """Enforces masks in all updates of this process, and attaches them to models and copies."""
    keras.optimizers.Optimizer.apply = holding(keras.optimizers.Optimizer.apply)
    for name in ("make_train_function", "save", "save_weights"):
        setattr(keras.Model, name, _carrying(getattr(keras.Model, name)))
    keras.layers.Layer.__reduce__ = _reducing(keras.layers.Layer.__reduce__)
    # Those that are already compiled.
    TRACED.update(each for each in gc.get_objects() if issubclass(type(each), keras.Model))


def _carrying(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            TRACED.add(self)
            carry(self)
        except Exception as error:
            # Training or saving continues: the model may not even have masks.
            LOGGER.warning("Could not attach the masks of its weights to a model: %s", error)
        return original(self, *args, **kwargs)

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
    state.settle()
    return model
