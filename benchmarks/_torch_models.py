"""The networks of `_models` in torch, for peers that have nothing else."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any, NamedTuple

from benchmarks._models import BATCH, BLOCKS, HEADS, TOKENS, VOCABULARY, WIDTH

# By name, as our own environment has neither.
torch: Any = importlib.import_module("torch")
nn: Any = torch.nn


class TorchTask(NamedTuple):
    """A network and one batch for it.

    Attributes:
        model: it gives logits.
        x: images, vectors or tokens.
        y: classes.
    """

    model: Any
    x: Any
    y: Any

    def training(self) -> tuple[Any, Any, Callable[[], None]]:
        """An optimizer, a loss, and a training step of both."""
        optimizer, loss = torch.optim.Adam(self.model.parameters(), 1e-4), nn.CrossEntropyLoss()

        def step() -> None:
            optimizer.zero_grad()
            loss(self.model(self.x), self.y).backward()
            optimizer.step()

        return optimizer, loss, step


def cnn() -> TorchTask:
    """The small CNN."""
    layers, before = [], 3
    for filters in (64, 128, 256, 512):
        layers += [nn.Conv2d(before, filters, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)]
        before = filters
    layers += [nn.Flatten(), nn.Linear(2 * 2 * 512, 608), nn.ReLU(), nn.Linear(608, 10)]
    return _task(nn.Sequential(*layers), (BATCH, 3, 32, 32))


def small() -> TorchTask:
    """200 small variables."""
    layers = [layer for _ in range(99) for layer in (nn.Linear(64, 64), nn.ReLU())]
    return _task(nn.Sequential(*layers, nn.Linear(64, 10)), (BATCH, 64))


def tiny() -> TorchTask:
    """Two layers, only to see that a benchmark works."""
    return _task(nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 10)), (BATCH, 8))


def resnet_50() -> TorchTask:
    """ResNet-50 of torchvision for ten classes."""
    model = importlib.import_module("torchvision").models.resnet50(num_classes=10)
    return _task(model, (32, 3, 128, 128))


def transformer() -> TorchTask:
    """The language model: `nn.TransformerEncoder` between an embedding and a linear layer."""
    layer = nn.TransformerEncoderLayer(
        WIDTH, HEADS, 4 * WIDTH, 0.0, "gelu", batch_first=True, norm_first=True
    )
    model = nn.Sequential(
        nn.Embedding(VOCABULARY, WIDTH),
        nn.TransformerEncoder(layer, BLOCKS, nn.LayerNorm(WIDTH)),
        nn.Linear(WIDTH, VOCABULARY),
        nn.Flatten(0, 1),
    )
    text = torch.randint(0, VOCABULARY, (32, TOKENS + 1))
    return TorchTask(model, text[:, :-1], text[:, 1:].flatten())


TORCH_TASKS = {
    "CNN": cnn,
    "ResNet-50": resnet_50,
    "transformer": transformer,
    "200 small variables": small,
    "tiny": tiny,
}


def _task(model: Any, shape: tuple[int, ...]) -> TorchTask:
    return TorchTask(model, torch.rand(shape), torch.randint(0, 10, shape[:1]))
