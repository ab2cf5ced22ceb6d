"""Loads a saved model with its masks."""

from __future__ import annotations

import os
from typing import Any

import keras

from tb_pastnet.train.log.notes import LOGGER
from tb_pastnet.train.masks.masks import Masks


def load_model(path: str | os.PathLike[str], **arguments: Any) -> Any:
    """Loads a model as `keras.models.load_model` does, and the masks that were saved with it.

    Whether masks and held values came back bit-identical is told by `Masks(model).resumed`; where
    some didn't, it is logged as well.

    Args:
        path: a .keras file, of ours or of a stock Keras; a file without masks gives none.
        arguments: as for `keras.models.load_model`: custom_objects, compile, safe_mode.

    Returns:
        The model. `pastnet.Masks(model)` finds its masks; they hold as soon as it trains.

    Raises:
        InvalidArgument: the file's masks are of other variables.
        ValueError: from Keras, where the file can't be read.

    Example:
        >>> import tempfile
        >>> model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(2)])
        >>> model.compile("adam", "mse")
        >>> Masks(model).prune("dense/kernel", channels=[1])
        >>> path = f"{tempfile.mkdtemp()}/model.keras"
        >>> model.save(path)
        >>> loaded = load_model(path)
        >>> Masks(loaded).sparsity(), bool(Masks(loaded).resumed)
        (0.5, True)
    """
    model = keras.models.load_model(path, **arguments)
    masks = Masks(model, enforce=getattr(model, "optimizer", None) is not None)
    # Only now does the model have masks to load into.
    model.load_weights(path)
    resumed = masks.resumed
    if resumed is not None and not resumed:
        LOGGER.warning("Loaded %s: %s", os.fspath(path), resumed)
    return model
