"""Whose recorders these are: an adaptor for each, which the suite loads where it can."""

from __future__ import annotations

import os
from importlib import import_module

import pytest

from tests.conformance.room import Room

BACKEND = os.environ.get("KERAS_BACKEND", "tensorflow")

ADAPTORS = {
    "NumPy": ("numpy", ()),
    "a source of one's own": ("own_source", ()),
    "JAX": ("jax", ("jax",)),
    "PyTorch": ("torch", ("torch",)),
    "Lightning": ("lightning", ("torch", "lightning.pytorch")),
    "Hugging Face": ("hugging_face", ("torch", "transformers", "accelerate")),
    "Keras Recorder": ("keras_recorder", ("tensorflow", "keras")),
    "Keras callback": ("keras_callback", ("tensorflow", "keras")),
    "TF1 graphs": ("v1", ("tensorflow",)),
    "Keras on JAX": ("keras_callback", ("jax", "keras")),
    "Keras on PyTorch": ("keras_callback", ("torch", "keras")),
}
"""By what the docs call it: the module, and what it needs."""

BACKENDS = {"Keras on JAX": "jax", "Keras on PyTorch": "torch"}
"""A backend is chosen once in a process: these have one each, see test_keras_backends.py."""

HERE = [
    name
    for name in ADAPTORS
    if BACKENDS.get(name) == (BACKEND if BACKEND != "tensorflow" else None)
]
"""What runs in this process."""


def adaptor(name: str) -> type[Room]:
    module, needed = ADAPTORS[name]
    for package in needed:
        pytest.importorskip(package, reason=f"needs {package}")
    made: type[Room] = import_module(f"tests.conformance.adaptors.{module}").Adaptor
    return made
