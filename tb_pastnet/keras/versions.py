"""The supported versions of Keras and TensorFlow; one error reports anything else."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from typing import Any

import keras

from tb_pastnet.core.subject import KERAS, check_subject
from tb_pastnet.errors import InvalidArgument, UnsupportedBackend

OLDEST = {"keras": (3, 7), "tensorflow": (2, 16)}


def check_versions(modules: Mapping[str, Any] = sys.modules) -> None:
    """Raises UnsupportedBackend where an imported package is older than what we support."""
    for name, oldest in OLDEST.items():
        version = str(getattr(modules.get(name), "__version__", "999"))
        if tuple(map(int, re.findall(r"\d+", version)[:2])) < oldest:
            needed = ".".join(map(str, oldest))
            raise UnsupportedBackend(
                f"Could not load tb_pastnet for Keras: expected {name} {needed} or newer, got "
                f"{version}. Run: pip install 'tensorflow>=2.16' 'keras>=3.7'"
            )


def need_tensorflow(doing: str) -> None:
    """Raises UnsupportedBackend where Keras runs on something else."""
    if (backend := keras.backend.backend()) != "tensorflow":
        raise UnsupportedBackend(
            f"Could not {doing}: expected the TensorFlow backend, got {backend!r}. Set "
            f"KERAS_BACKEND=tensorflow before Keras is imported; PastNetCallback records on every "
            f"backend."
        )


def check_model(model: object) -> None:
    """Raises an error for what Keras 3 can't train: a model of tf_keras, a module of PyTorch."""
    refuse_legacy(model)
    if not isinstance(model, keras.layers.Layer):
        check_subject(model, KERAS, "record")
        raise InvalidArgument(
            f"Could not follow {model!r:.60}: expected model= a keras.Model, got "
            f"{type(model).__name__}. Pass the model itself."
        )


def refuse_legacy(model: object) -> None:
    """Raises UnsupportedBackend for a model or layer of Keras 2, as in `tf_keras`."""
    if _is_of("tf_keras", model):
        raise UnsupportedBackend(
            f"Could not use model {getattr(model, 'name', '')!r}: expected one of Keras 3, got one "
            f"of tf_keras. Unset TF_USE_LEGACY_KERAS, or record its variables: Recorder(logdir, "
            f"{{v.name: v for v in model.variables}})."
        )


def _is_of(package: str, thing: object) -> bool:
    return any(kind.__module__.partition(".")[0] == package for kind in type(thing).__mro__)
