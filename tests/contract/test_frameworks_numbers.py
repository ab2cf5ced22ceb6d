"""Statistics of networks as they are in use, against NumPy on the weights of each step."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tb_pastnet as pastnet

ROOT = Path(__file__).parents[2]
ROUNDED = 0.0225
"""Relative, of what a log keeps."""
BELOW_ONE = 0.0444
"""The same of a share: nothing below 1 is rounded to it."""

Arrays = Mapping[str, np.ndarray]


def resnet_18() -> tuple[Any, Callable[[Any], Any]]:
    transformers = pytest.importorskip("transformers", reason="needs transformers")
    torch = pytest.importorskip("torch", reason="needs torch")
    config = transformers.ResNetConfig(
        depths=[2, 2, 2, 2], hidden_sizes=[64, 128, 256, 512], layer_type="basic", num_labels=10
    )
    x, y = torch.randn(4, 3, 32, 32), torch.arange(4)
    model = transformers.ResNetForImageClassification(config)
    return model, lambda model: model(x, labels=y).loss


def language_model() -> tuple[Any, Callable[[Any], Any]]:
    transformers = pytest.importorskip("transformers", reason="needs transformers")
    torch = pytest.importorskip("torch", reason="needs torch")
    config = transformers.GPT2Config(n_layer=2, n_embd=32, n_head=4, vocab_size=101, n_positions=16)
    tokens = torch.randint(0, 101, (4, 16))
    model = transformers.GPT2LMHeadModel(config)
    return model, lambda model: model(tokens, labels=tokens).loss


def by_channel(array: np.ndarray, axes: tuple[int, ...]) -> np.ndarray:
    """Float64 (channels, elements)."""
    front = np.moveaxis(np.float64(array), axes, range(len(axes)))
    return front.reshape(np.prod(front.shape[: len(axes)]), -1)


def checked(run: Any, steps: list[Arrays], axes_of: Callable[[str], tuple[int, ...]]) -> int:
    """Compares each statistic of each channel; gives how many there were."""
    count = 0
    for name, variable in run.variables.items():
        values = [by_channel(step[name], axes_of(name)) for step in steps]
        for row, (past, now) in enumerate(pairwise(values)):
            delta = now - past
            expected = {
                "norm": np.linalg.norm(now, axis=1),
                "past_norm": np.linalg.norm(past, axis=1),
                "delta_norm": np.linalg.norm(delta, axis=1),
                "delta_max": abs(delta).max(axis=1),
                "changed": (delta != 0).mean(axis=1),
                "nonfinite": np.zeros(len(now)),
            }
            for statistic, numbers in expected.items():
                shown = getattr(variable, statistic)[row]
                near = BELOW_ONE if statistic == "changed" else ROUNDED
                np.testing.assert_allclose(shown, numbers, rtol=near, err_msg=f"{name} {statistic}")
                count += len(numbers)
    return count


@pytest.mark.prove
@pytest.mark.parametrize("network", [resnet_18, language_model])
def test_statistics_of_torch_are_those_of_numpy(network: Any, tmp_path: Path, figure: Any) -> None:
    torch = pytest.importorskip("torch", reason="needs torch")
    torch.manual_seed(0)
    model, loss = network()
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3)

    def weights() -> Arrays:
        tensors = {**dict(model.named_parameters()), **dict(model.named_buffers())}
        return {
            name.replace(".", "/"): tensor.detach().numpy().copy()
            for name, tensor in tensors.items()
            if tensor.is_floating_point()
        }

    steps = [weights()]
    with pastnet.torch.Recorder(tmp_path, model, optimizer, every=1) as recorder:
        for step in range(1, 4):
            optimizer.zero_grad()
            loss(model).backward()
            optimizer.step()
            recorder.record(step)
            steps.append(weights())
    (run,) = pastnet.read(tmp_path).runs.values()
    # Of transformers' Conv1D the outputs come last.
    last = {
        f"{name.replace('.', '/')}/weight"
        for name, module in model.named_modules()
        if type(module).__name__ == "Conv1D"
    }
    trained = {name.replace(".", "/") for name, _ in model.named_parameters()}
    assert trained <= {*run.variables}
    count = checked(run, steps, lambda name: (-1 if name in last else 0,))
    assert count > 10_000
    figure(f"{network.__name__}: {count:,} numbers equal to NumPy's")


PROGRAM = """
import sys
import keras
import numpy as np
import tb_pastnet as pastnet

logdir, file = sys.argv[1:]
keras.utils.set_random_seed(0)
model = keras.applications.MobileNetV2((32, 32, 3), weights=None, classes=10)
model.compile("adamw", "sparse_categorical_crossentropy")
x, y = np.random.rand(12, 32, 32, 3), np.arange(12) % 10

class Weights(keras.callbacks.Callback):
    seen = []

    def on_train_begin(self, logs=None):
        self.seen.append(self.model.get_weights())

    def on_train_batch_end(self, batch, logs=None):
        self.seen.append(self.model.get_weights())

callback = pastnet.PastNetCallback(logdir, every=1)
model.fit(x, y, 4, shuffle=False, verbose=0, callbacks=[callback, Weights()])
callback.close()
flat = {f"{step}/{n}": w for step, ws in enumerate(Weights.seen) for n, w in enumerate(ws)}
np.savez(file, **flat)
"""


@pytest.mark.prove
def test_statistics_of_keras_on_jax_are_those_of_numpy(tmp_path: Path, figure: Any) -> None:
    pytest.importorskip("jax", reason="needs jax")
    file = tmp_path / "weights.npz"
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tmp_path / "log"), str(file)],
        env={**os.environ, "KERAS_BACKEND": "jax", "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    (run,) = pastnet.read(tmp_path / "log").runs.values()
    saved = np.load(file)
    names = [*run.variables]
    steps = [
        {name: saved[f"{step}/{number}"] for number, name in enumerate(names)} for step in range(4)
    ]

    def axes_of(name: str) -> tuple[int, ...]:
        return (-2, -1) if name.endswith("depthwise/kernel") else (-1,)

    assert sum(axes_of(name) != (-1,) for name in names) == 17
    count = checked(run, steps, axes_of)
    assert count > 100_000
    figure(f"MobileNetV2 of Keras on JAX: {count:,} numbers equal to NumPy's")
