"""Keras on JAX and on PyTorch, each in a process of its own: a backend is chosen once."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import keras
import pytest

from tb_pastnet.keras import variable_recorder
from tb_pastnet.keras.variable_recorder import VariableSource
from tb_pastnet.record.source import ArraySource, Source
from tb_pastnet.record.weight import Network
from tests.sampled import sampled

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module", params=sampled(["jax", "torch"], every=2))
def shown(request: pytest.FixtureRequest) -> dict[str, Any]:
    """What the program printed."""
    pytest.importorskip(request.param, reason=f"needs {request.param}")
    command = [sys.executable, "-m", "tests.unit.keras.variable_program"]
    env = {**os.environ, "KERAS_BACKEND": request.param, "PYTHONWARNINGS": "default"}
    done = subprocess.run(
        command, cwd=ROOT, env=env, capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 0, done.stderr
    answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return {"backend": request.param, **answer}


def test_losses_and_weights_are_bit_identical(shown: dict[str, Any]) -> None:
    assert shown["same"]
    assert shown["notes"] == []


def test_memory_is_donated_on_jax_as_without_a_recorder(shown: dict[str, Any]) -> None:
    if shown["backend"] == "jax":
        # All but the first state of the second epoch, which comes from the variables.
        assert shown["donated"].count(True) >= 14
    else:
        assert shown["donated"] == []


def test_deltas_are_those_of_the_weights_of_another_training(shown: dict[str, Any]) -> None:
    assert shown["worst"] < 0.03  # what a log rounds by
    assert shown["steps"] == [*range(1, 17)]


def test_variables_have_the_names_and_roles_that_they_have_on_tensorflow(
    shown: dict[str, Any],
) -> None:
    norm = [f"batch_normalization/{name}" for name in ("gamma", "beta")]
    moving = [f"batch_normalization/moving_{name}" for name in ("mean", "variance")]
    dense = [f"{layer}/{name}" for layer in ("dense", "dense_1") for name in ("kernel", "bias")]
    assert shown["names"] == ["first/kernel", "first/bias", *norm, *moving, *dense]
    assert shown["roles"] == [
        *("kernel", "bias", "scale", "bias", "statistic", "statistic"),
        *("kernel", "bias", "kernel", "bias"),
    ]


def test_learning_rates_are_those_of_the_updates_that_were_made(shown: dict[str, Any]) -> None:
    rates = [1e-2 * 0.5 ** ((step - 1) / 4) for step in shown["steps"]]
    assert shown["rates"] == pytest.approx(rates, rel=1e-5)


def test_gradient_accumulation_is_counted_in_batches(shown: dict[str, Any]) -> None:
    assert shown["accumulated"]["notes"] == []
    assert shown["accumulated"]["steps"] == [*range(1, 17)]
    assert shown["accumulated"]["rates"] == pytest.approx(shown["rates"], rel=1e-5)


def test_what_is_frozen_is_audited_also_through_another_fit(shown: dict[str, Any]) -> None:
    assert shown["all_steps"] == [*range(1, 25)]
    assert shown["violated"] == [["first/kernel", 17]]
    assert shown["trainable"] == [1, 0]


def test_several_steps_of_an_execution_are_counted(shown: dict[str, Any]) -> None:
    strides = {"jax": [3, 6, 8], "torch": [*range(1, 9)]}  # on PyTorch Keras knows no others
    assert shown["strides"] == strides[shown["backend"]]


class Processes(SimpleNamespace):
    """Of JAX's name, and of torch's; this is one of several."""

    def __init__(self, number: int) -> None:
        super().__init__(process_index=lambda: number, get_rank=lambda: number)
        self.process_count = self.get_world_size = lambda: 2
        self.is_available = self.is_initialized = lambda: True
        self.distributed = self


@pytest.mark.parametrize("number", [0, 1])
@pytest.mark.parametrize("backend", ["jax", "torch"])
def test_the_first_of_several_processes_writes(
    backend: str, number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keras.backend, "backend", lambda: backend)
    monkeypatch.setitem(sys.modules, backend, Processes(number))
    network = Network((), (), (), ())
    monkeypatch.setattr(
        ArraySource, "__init__", lambda own, *given: Source.__init__(own, *given[:3])
    )
    monkeypatch.setattr(variable_recorder, "TrainableFlags", lambda entries: None)
    source = VariableSource(network, None)
    assert (source.writes, source.workers) == (number == 0, 2)


@pytest.mark.parametrize("backend", ["jax", pytest.param("torch", marks=pytest.mark.prove)])
def test_the_page_about_backends_runs(backend: str, tmp_path: Path) -> None:
    pytest.importorskip(backend, reason=f"needs {backend}")
    page = (ROOT / "docs/how_to/keras_backends.md").read_text("utf-8")
    (program,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    chosen = program.replace('= "jax"', f"= {backend!r}")
    done = subprocess.run(
        [sys.executable, "-c", chosen],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.stdout == program.rpartition("# ")[2], done.stderr


def test_a_probe_is_refused(shown: dict[str, Any]) -> None:
    backend = shown["backend"]
    assert shown["refused"] == (
        f"Could not evaluate a probe: expected Keras on TensorFlow, got the backend '{backend}'. "
        f"Leave probe= out, or set KERAS_BACKEND=tensorflow."
    )
