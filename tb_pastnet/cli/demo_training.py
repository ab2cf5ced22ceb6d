"""The trainings of `pastnet demo`: a small network in NumPy, which the NumPy recorder records."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tb_pastnet.numpy.recorder import Recorder

STEPS, EVERY, BATCH = 900, 6, 512
FREEZE = 240
"""From this step on the first layer is meant to be frozen."""
PRUNE = (300, 390, 480, 570)
"""At each of these steps an eighth of the channels of the second layer is pruned."""

_RATE, _DECAY, _BETA = 2e-3, 0.05, 0.99
_SIZES = {"hidden1": (16, 48), "hidden2": (48, 32), "logits": (32, 4)}
_FROZEN, _PRUNED = "hidden1", "hidden2"

Floats = npt.NDArray[np.float32]
Weights = dict[str, Floats]


class DemoRun(NamedTuple):
    """A training: the first layer is frozen, or only its gradients are zero; the second pruned."""

    name: str
    freezes: bool = False
    leaks: bool = False
    prunes: bool = False


RUNS = (
    DemoRun("plain"),
    DemoRun("freeze_and_prune", freezes=True, prunes=True),
    DemoRun("leak", freezes=True, leaks=True),
)


def train(run: DemoRun, folder: Path) -> float:
    """Trains a run, recorded; returns the share of examples that are right at the end."""
    network = _Network()
    examples, labels = _data()
    read = {name: partial(network.weights.__getitem__, name) for name in network.weights}
    with Recorder(folder, read, every=EVERY, learning_rate=_RATE) as recorder:
        recorder.expect_end(STEPS)
        for step in range(1, STEPS + 1):
            if run.freezes and step == FREEZE:
                recorder.declare(trainable={f"{_FROZEN}/*": False})
            if run.prunes and step in PRUNE:
                recorder.declare(kept=network.prune())
            chosen = np.random.default_rng(step).integers(0, len(labels), BATCH)
            gradients = network.gradients(examples[chosen], labels[chosen])
            if run.freezes and step >= FREEZE:
                for name in [name for name in gradients if name.startswith(_FROZEN)]:
                    if run.leaks:  # the planted mistake: weight decay needs no gradient
                        gradients[name][:] = 0
                    else:
                        del gradients[name]
            network.update(gradients)
            recorder.record(step)
    return float((network.layers(examples)[-1].argmax(1) == labels).mean())


class _Network:
    """Three dense layers with ReLU, and AdamW without momentum: the leak is only its decay."""

    def __init__(self) -> None:
        rng = np.random.default_rng(0)
        self.weights: Weights = {}
        for layer, shape in _SIZES.items():
            spread = np.sqrt(2 / shape[0])
            self.weights[f"{layer}/kernel"] = rng.normal(0, spread, shape).astype(np.float32)
            self.weights[f"{layer}/bias"] = np.zeros(shape[1], np.float32)
        self._squares = {name: np.zeros_like(value) for name, value in self.weights.items()}
        self._updates = dict.fromkeys(self.weights, 0)
        self._kept = np.ones(_SIZES[_PRUNED][1], bool)

    def layers(self, examples: Floats) -> list[Floats]:
        """The examples, and the outputs of each layer for them."""
        outputs = [examples]
        for layer in _SIZES:
            linear = outputs[-1] @ self.weights[f"{layer}/kernel"] + self.weights[f"{layer}/bias"]
            outputs.append(linear if layer == "logits" else np.maximum(linear, 0))
        return outputs

    def gradients(self, examples: Floats, labels: npt.NDArray[np.int64]) -> Weights:
        """The gradients of the mean cross entropy."""
        *inputs, logits = self.layers(examples)
        exponents = np.exp(logits - logits.max(1, keepdims=True))
        delta = exponents / exponents.sum(1, keepdims=True)
        delta[np.arange(len(labels)), labels] -= 1
        delta /= len(labels)
        gradients: Weights = {}
        for layer, own in zip(reversed(_SIZES), reversed(inputs), strict=True):
            gradients[f"{layer}/kernel"], gradients[f"{layer}/bias"] = own.T @ delta, delta.sum(0)
            delta = (delta @ self.weights[f"{layer}/kernel"].T) * (own > 0)
        return gradients

    def update(self, gradients: Weights) -> None:
        """A step of AdamW for the weights that have a gradient; what is pruned stays zero."""
        for name, gradient in gradients.items():
            weight, square = self.weights[name], self._squares[name]
            self._updates[name] += 1
            square += (1 - _BETA) * (gradient**2 - square)
            spread = np.sqrt(square / (1 - _BETA ** self._updates[name])) + 1e-8
            weight -= _RATE * _DECAY * weight
            weight -= _RATE * gradient / spread
        self._zero()

    def prune(self) -> dict[str, npt.NDArray[np.bool_]]:
        """Prunes the channels with the smallest norms, an eighth of all; returns what is kept."""
        norms = np.linalg.norm(self.weights[f"{_PRUNED}/kernel"], axis=0)
        norms[~self._kept] = np.inf
        self._kept[np.argsort(norms)[: len(norms) // 8]] = False
        self._zero()
        kernel = np.broadcast_to(self._kept, _SIZES[_PRUNED])
        return {f"{_PRUNED}/kernel": kernel.copy(), f"{_PRUNED}/bias": self._kept.copy()}

    def _zero(self) -> None:
        for name in ("kernel", "bias"):
            self.weights[f"{_PRUNED}/{name}"][..., ~self._kept] = 0


def _data() -> tuple[Floats, npt.NDArray[np.int64]]:
    """Examples of four classes, which a network has to bend apart."""
    rng = np.random.default_rng(1)
    examples = rng.normal(size=(2048, _SIZES["hidden1"][0])).astype(np.float32)
    hidden = np.tanh(examples @ rng.normal(size=(examples.shape[1], 24)))
    labels = (hidden @ rng.normal(size=(24, _SIZES["logits"][1]))).argmax(1)
    return examples, labels.astype(np.int64)
