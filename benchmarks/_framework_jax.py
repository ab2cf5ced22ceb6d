"""Trains a ResNet-50 in Flax, its memory donated, and times `record` after each step."""

from __future__ import annotations

import importlib
import json
import os
import sys
import tempfile
from itertools import count
from typing import Any

import numpy as np

from benchmarks._pairs import after
from tb_pastnet.core.numba_switch import SWITCH

jax: Any = importlib.import_module("jax")
nn: Any = importlib.import_module("flax.linen")
optax: Any = importlib.import_module("optax")
pastnet: Any = importlib.import_module("tb_pastnet.jax")

Made = Any


def bottleneck(x: Made, width: int, stride: int, name: str) -> Made:
    """A block of He et al. 2015, arXiv:1512.03385."""

    def normed(y: Made, part: str) -> Made:
        return nn.BatchNorm(use_running_average=False, name=f"{name}_norm{part}")(y)

    def conv(y: Made, size: int, filters: int, part: str, strides: int = 1) -> Made:
        layer = nn.Conv(
            filters, (size, size), (strides, strides), use_bias=False, name=f"{name}_conv{part}"
        )
        return normed(layer(y), part)

    y = nn.relu(conv(x, 1, width, "1"))
    y = nn.relu(conv(y, 3, width, "2", stride))
    y = conv(y, 1, 4 * width, "3")
    if x.shape != y.shape:
        x = conv(x, 1, 4 * width, "0", stride)
    return nn.relu(x + y)


class ResNet(nn.Module):  # type: ignore[misc]
    """A ResNet by the number of blocks in each stage."""

    depths: tuple[int, ...]
    width: int

    @nn.compact  # type: ignore[untyped-decorator]
    def __call__(self, x: Made) -> Made:
        """Logits of images."""
        x = nn.Conv(self.width, (7, 7), (2, 2), use_bias=False, name="stem")(x)
        x = nn.relu(nn.BatchNorm(use_running_average=False, name="stem_norm")(x))
        x = nn.max_pool(x, (3, 3), (2, 2), "SAME")
        for stage, depth in enumerate(self.depths):
            for block in range(depth):
                stride = 2 if stage and not block else 1
                x = bottleneck(x, self.width * 2**stage, stride, f"stage{stage}_block{block}")
        return nn.Dense(1000, name="head")(x.mean((1, 2)))


def main(pairs: str, size: str) -> None:
    """Prints seconds of steps, and of records with numba and without."""
    whole = size == "whole"
    model = ResNet((3, 4, 6, 3), 64) if whole else ResNet((1,), 4)
    rng, side = np.random.default_rng(0), 128 if whole else 32
    x = jax.numpy.asarray(rng.normal(size=(32, side, side, 3)), "float32")
    y = jax.numpy.asarray(rng.integers(0, 1000, 32))
    state = model.init(jax.random.key(0), x)
    optimizer = optax.adamw(1e-3)
    slots = optimizer.init(state["params"])

    def loss(params: Made, stats: Made) -> Made:
        logits, moved = model.apply(
            {"params": params, "batch_stats": stats}, x, mutable=["batch_stats"]
        )
        losses = optax.softmax_cross_entropy_with_integer_labels(logits, y)
        return losses.mean(), moved["batch_stats"]

    def update(state: Made, slots: Made) -> Made:
        grads, stats = jax.grad(loss, has_aux=True)(state["params"], state["batch_stats"])
        updates, slots = optimizer.update(grads, slots, state["params"])
        params = optax.apply_updates(state["params"], updates)
        return {"params": params, "batch_stats": stats}, slots

    compiled = jax.jit(update, donate_argnums=(0, 1))
    held = [state, slots]

    def step() -> None:
        held[:] = compiled(*held)
        jax.block_until_ready(held)

    recorders = []
    for fast in ("1", "0"):
        os.environ[SWITCH] = fast
        recorders.append(pastnet.Recorder(tempfile.mkdtemp(), state, every=1))
    numbers = [count(1), count(1)]
    actions = [
        lambda recorder=recorder, number=number: recorder.record(next(number), held[0])
        for recorder, number in zip(recorders, numbers, strict=True)
    ]
    steps, spent = after(step, actions, int(pairs), 2)
    sys.stdout.write(json.dumps([*zip(steps.tolist(), spent.tolist(), strict=True)]) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
