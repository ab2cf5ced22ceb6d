"""Loading a model with the masks that were saved with it."""

from __future__ import annotations

import os
import zipfile
from typing import Any

import h5py
import keras
import tensorflow as tf

from tb_pastnet.keras.masks.carried import ATTRIBUTE
from tb_pastnet.keras.masks.mask_state import STORED
from tb_pastnet.keras.masks.masks import Masks
from tb_pastnet.record.failures import LOGGER

_WEIGHTS = "model.weights.h5"


def load_model(path: str | os.PathLike[str], **arguments: Any) -> Any:
    """Loads a model like `keras.models.load_model`, with the masks that were saved with it.

    `Masks(model).resumed` shows whether masks and held values were restored bit-identical;
    differences are also logged.

    Args:
        path: a .keras file, with or without masks.
        arguments: as for `keras.models.load_model`: custom_objects, compile, safe_mode.

    Returns:
        The model. `pastnet.Masks(model)` finds its masks; they are enforced as soon as it trains.

    Raises:
        InvalidArgument: the file's masks are of other variables.
        ValueError: from Keras, if the file can't be read.

    Example:
        >>> import tempfile, numpy as np
        >>> model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(2)])
        >>> model.compile("adam", "mse")
        >>> Masks(model).prune("dense/kernel", channels=[1])
        >>> _ = model.fit(np.ones((4, 3)), np.ones((4, 2)), verbose=0)
        >>> path = f"{tempfile.mkdtemp()}/model.keras"
        >>> model.save(path)
        >>> loaded = load_model(path)
        >>> Masks(loaded).sparsity(), bool(Masks(loaded).resumed)
        (0.5, True)
    """
    model = keras.models.load_model(path, **arguments)
    masks = Masks(model)
    stored = _stored(os.fspath(path))
    if stored is not None:
        masks.state.deserialize(stored)
    resumed = masks.resumed
    if resumed is not None and not resumed:
        LOGGER.warning("Loaded %s: %s", os.fspath(path), resumed)
    return model


def _stored(path: str) -> bytes | None:
    """The masks in a saved model. Keras itself has skipped them, because the model had none yet."""
    if tf.io.gfile.isdir(path):
        with tf.io.gfile.GFile(f"{path}/{_WEIGHTS}", "rb") as file:
            return _read(file)
    with tf.io.gfile.GFile(path, "rb") as file:
        if not zipfile.is_zipfile(file):
            return None
        with zipfile.ZipFile(file) as archive, archive.open(_WEIGHTS) as weights:
            return _read(weights)


def _read(file: Any) -> bytes | None:
    with h5py.File(file, "r") as stored:
        masks = stored.get(f"{ATTRIBUTE}/vars/{STORED}")
        return None if masks is None else bytes(masks[()].tobytes())
