"""A recorder leaves no trace on what is trained: flags, versions, gradients, attributes, hooks."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tb_pastnet as pastnet

pytest.importorskip("torch", reason="needs torch")

from tb_pastnet.core.quantize import PRECISION
from tests import modules_table
from tests.interpreter import ROOT, Interpreter

pytestmark = pytest.mark.promise("no_trace")

LISTED = (ROOT / "docs" / "how_to" / "recording.md").read_text()
TREES: dict[str, Callable[[Any], Any]] = {
    "singles": lambda jnp: {"w": jnp.ones((7, 5)), "b": jnp.zeros(5)},
    "large": lambda jnp: {"w": jnp.ones((4097, 33)), "v": jnp.ones((4097, 33))},
    "halves": lambda jnp: {"w": jnp.ones((64, 65), jnp.bfloat16), "v": jnp.ones(9, jnp.float16)},
    "held": lambda jnp: {"w": jnp.ones((129, 8)), "held": jnp.ones((63, 8))},
}


@pytest.mark.parametrize("name", modules_table.TABLE)
def test_a_module_of_torch_is_as_without_a_recorder(name: str, tmp_path: Path) -> None:
    build = modules_table.TABLE[name]
    expected = modules_table.torch_run(build)
    got = modules_table.torch_run(build, tmp_path / "run")
    assert got.errors == expected.errors
    for number, (here, there) in enumerate(zip(got.steps, expected.steps, strict=True)):
        assert here == there, f"step {number}"
    assert got.values == expected.values
    assert not got.views
    if got.records:
        figures_are_those_of(got.saved, pastnet.read(tmp_path)["run"])


def figures_are_those_of(saved: dict[int, dict[str, np.ndarray]], run: Any) -> None:
    """Norms of weights and of their deltas from record to record are NumPy's, in all channels."""
    met = 0
    for name, variable in run.variables.items():
        for row, (step, past) in enumerate(zip(variable.steps, variable.past_steps, strict=True)):
            if name not in saved[step]:  # computed by a parametrization, or without memory
                continue
            now, met = saved[step][name], met + 1
            np.testing.assert_allclose(length(variable.norm[row]), length(now), PRECISION)
            if past in saved and name in saved[past] and past < step:
                delta = length(now - saved[past][name])
                shown = length(variable.delta_norm[row])
                np.testing.assert_allclose(shown, delta, PRECISION, 1e-7, err_msg=name)
    assert met


def length(values: Any) -> float:
    return float(np.linalg.norm(np.reshape(values, -1)))


def test_hooks_of_torch_are_those_of_the_table(tmp_path: Path) -> None:
    before = modules_table.global_hooks()
    recorder = pastnet.torch.Recorder(tmp_path, modules_table.nn.Linear(2, 3))
    found = modules_table.global_hooks()
    assert {name for name in found if found[name] != before[name]} == {
        "_global_optimizer_pre_hooks",
        "_global_optimizer_post_hooks",
    }
    for name in ("register_optimizer_step_pre_hook", "register_optimizer_step_post_hook"):
        assert name in LISTED
    recorder.close()
    assert modules_table.global_hooks() == before


@pytest.mark.parametrize("name", TREES)
def test_a_tree_of_jax_is_as_without_a_recorder(name: str, tmp_path: Path) -> None:
    jax = pytest.importorskip("jax", reason="needs jax")

    def grow(tree: Any) -> Any:
        return {key: value if key == "held" else value * 0.75 for key, value in tree.items()}

    def run(folder: Path | None) -> tuple[list[Any], list[bytes]]:
        tree, seen = TREES[name](jax.numpy), []
        step = jax.jit(grow, donate_argnums=0)
        recorder = None
        if folder is not None:
            masks = {key: key != "held" for key in tree}
            recorder = pastnet.jax.Recorder(folder, tree, every=2, trainable=masks)
        for number in range(1, 8):
            donated, tree = tree, step(tree)
            before = {each.unsafe_buffer_pointer() for each in tree.values()}
            if recorder is not None:
                recorder.record(number, tree)
            # As long as nothing holds a view, the next step gets the same buffers.
            seen.append([each.is_deleted() for each in donated.values()])
            seen.append([each._npy_value is None for each in tree.values()])
            seen.append([sorted(vars(each)) for each in tree.values() if hasattr(each, "__dict__")])
            seen.append(before == {each.unsafe_buffer_pointer() for each in tree.values()})
        if recorder is not None:
            recorder.close()
            assert recorder.records == 4
            assert not recorder.notes.counts()
        return seen, [np.asarray(each).tobytes() for each in tree.values()]

    assert run(tmp_path / "run") == run(None)


def traces_on(backend: str, folder: Path) -> str:
    """What the program prints; on TensorFlow, in a process that needn't import it."""
    if backend == "tensorflow":
        process = Interpreter()
        try:
            return process.run(
                "import runpy, sys\nsys.argv = argv\n"
                "runpy.run_module('tests.keras_traces', run_name='__main__')",
                argv=["keras_traces", str(folder)],
            )
        finally:
            process.close()
    done = subprocess.run(
        [sys.executable, "-m", "tests.keras_traces", str(folder)],
        env={**os.environ, "KERAS_BACKEND": backend, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("backend", ["tensorflow", "jax", "torch"])
def test_a_model_of_keras_is_as_without_a_callback(backend: str, tmp_path: Path) -> None:
    pytest.importorskip(backend, reason=f"needs {backend}")
    listed = set(re.findall(r"`(\w+)`", LISTED))
    for name, found in json.loads(traces_on(backend, tmp_path).splitlines()[-1]).items():
        facts = found["same"], found["resizable"], found["records"]
        assert facts == (True, True, 3), (name, found)
        assert set(found["open"]) <= listed, name
        assert found["closed"] == [], name


def test_a_tensor_that_a_function_returns_to_numpy_stays_resizable(tmp_path: Path) -> None:
    kernel = modules_table.torch.ones(7, 3, requires_grad=True)
    with pastnet.numpy.Recorder(tmp_path, {"dense/kernel": lambda: kernel}, every=1) as recorder:
        for step in range(1, 4):
            with modules_table.torch.no_grad():
                kernel *= 0.5
            recorder.record(step)
    assert recorder.records == 3
    assert kernel.untyped_storage().resizable()
