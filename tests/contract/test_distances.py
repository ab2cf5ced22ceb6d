"""Estimated distances of trained weights, beside NumPy's, for many tables of signs."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest

from tb_pastnet.core import sketch as module
from tb_pastnet.core.travel import distances, together

torch = pytest.importorskip("torch", reason="torch isn't installed: an extra of its own")
nn, functional = torch.nn, torch.nn.functional

SEEDS, SNAPSHOTS = 20, 10
Weights = dict[str, np.ndarray]


class Attention(nn.Module):
    """A small GPT: it predicts the next of some numbers."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(40, 32)
        self.block = nn.TransformerEncoderLayer(32, 4, 64, dropout=0, batch_first=True)
        self.head = nn.Linear(32, 40)

    def forward(self, words: Any) -> Any:
        mask = nn.Transformer.generate_square_subsequent_mask(words.shape[1])
        return self.head(self.block(self.words(words), src_mask=mask, is_causal=True))


class Adapted(nn.Module):
    """A frozen layer with a trained difference of rank 4, as LoRA has it."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(96, 64) / 8, requires_grad=False)
        self.a = nn.Parameter(torch.randn(4, 64) / 8)
        self.b = nn.Parameter(torch.zeros(96, 4))

    def forward(self, x: Any) -> Any:
        return x @ (self.weight + self.b @ self.a).T


def cnn() -> tuple[Any, Callable[[], Any]]:
    model = nn.Sequential(
        nn.Conv2d(1, 16, 3), nn.ReLU(), nn.Conv2d(16, 32, 3), nn.Flatten(), nn.Linear(512, 10)
    )
    images, labels = torch.randn(256, 1, 8, 8), torch.randint(0, 10, (256,))
    return model, lambda: functional.cross_entropy(model(images), labels)


def gpt() -> tuple[Any, Callable[[], Any]]:
    model, words = Attention(), torch.randint(0, 40, (16, 17))

    def loss() -> Any:
        found = model(words[:, :-1]).reshape(-1, 40)
        return functional.cross_entropy(found, words[:, 1:].reshape(-1))

    return model, loss


def embedding() -> tuple[Any, Callable[[], Any]]:
    model = nn.Embedding(500, 24)
    return model, lambda: model(torch.randint(0, 25, (64,))).pow(2).sum()


def one_feature() -> tuple[Any, Callable[[], Any]]:
    model = nn.Sequential(nn.Linear(64, 96), nn.Tanh(), nn.Linear(96, 1))
    inputs = torch.randn(256, 64)
    inputs[:, 7] *= 20
    return model, lambda: (model(inputs).squeeze() - inputs[:, 7]).pow(2).mean() / 100


def head() -> tuple[Any, Callable[[], Any]]:
    model = nn.Sequential(nn.Linear(64, 96), nn.ReLU(), nn.Linear(96, 10))
    model[0].requires_grad_(False)
    inputs, labels = torch.randn(256, 64), torch.randint(0, 10, (256,))
    return model, lambda: functional.cross_entropy(model(inputs), labels)


def lora() -> tuple[Any, Callable[[], Any]]:
    model, inputs = Adapted(), torch.randn(128, 64)
    wanted = torch.randn(128, 96)
    return model, lambda: functional.mse_loss(model(inputs), wanted)


TRAININGS = (cnn, gpt, embedding, one_feature, head, lora)


@cache
def snapshots(make: Callable[[], tuple[Any, Callable[[], Any]]]) -> list[Weights]:
    """The weights of a training, again and again."""
    torch.manual_seed(0)
    model, loss = make()
    trained = [each for each in model.parameters() if each.requires_grad]
    sgd = make in (embedding, one_feature)
    optimizer = torch.optim.SGD(trained, 0.05) if sgd else torch.optim.Adam(trained, 3e-3)
    found = []
    for step in range(10 * SNAPSHOTS):
        if step % 10 == 0:
            values = {name: each.detach().numpy().copy() for name, each in model.named_parameters()}
            if make is lora:
                values = {"effective": values["weight"] + values["b"] @ values["a"]}
            found.append({name: value for name, value in values.items() if value.size > 64})
        optimizer.zero_grad()
        loss().backward()
        optimizer.step()
    return found


def compared(make: Any, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Of pairs of snapshots: relative errors of layers, and whether each is within its own."""
    found = snapshots(make)
    sketches = [np.stack([module.sketch(value) for value in weights.values()]) for weights in found]
    rng = np.random.default_rng(seed)
    errors, inside = [], []
    for _ in range(30):
        first, second = rng.choice(len(found), 2, replace=False)
        true = np.array([
            np.linalg.norm(old.astype("f8") - new)
            for old, new in zip(found[first].values(), found[second].values(), strict=True)
        ])  # fmt: skip
        values, stated = distances(sketches[first] - sketches[second], np.zeros(len(true)))
        moved = true > 0
        errors += (np.abs(values - true)[moved] / true[moved]).tolist()
        inside += (np.abs(values - true) <= stated)[moved].tolist()
        value, error = together(values, stated)
        inside.append(bool(abs(value - np.linalg.norm(true)) <= error))
    return np.array(errors), np.array(inside)


@pytest.mark.prove
@pytest.mark.parametrize("make", TRAININGS, ids=lambda make: make.__name__)
def test_distances_are_right_with_any_signs(make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    errors, inside = [], []
    tables = module.tables
    for seed in range(SEEDS):
        monkeypatch.setattr(module, "tables", lambda seed=seed: tables(3 + 100 * seed))
        more, within = compared(make, seed)
        errors.append(more)
        inside.append(within)
    assert np.quantile(np.concatenate(errors), 0.95) <= 0.2
    assert np.concatenate(inside).mean() >= 0.95


@pytest.mark.parametrize("make", TRAININGS, ids=lambda make: make.__name__)
def test_distances_are_right_with_the_signs_of_records(make: Any) -> None:
    errors, inside = compared(make, 0)
    assert np.quantile(errors, 0.95) <= 0.25
    assert inside.mean() >= 0.9


def test_a_small_distance_after_a_long_way_keeps_its_digits() -> None:
    from tb_pastnet.format.sketches import Sketches, decode_sketches, encode_sketches

    rng, place = np.random.default_rng(0), {"tag": "sketches", "step": 1, "lineage": 1}
    off = []
    for _ in range(100):
        far, near = (rng.normal(size=4096) * size for size in (0.7 / 64, 1e-4 / 64))
        both = np.stack([module.sketch(far), module.sketch(far + near)])[:, None]
        steps = np.arange(2)
        made = Sketches((0,), steps, steps, both, False, np.zeros((2, 1)))
        stored = decode_sketches(encode_sketches(made, **place), **place)
        value, _ = distances(stored.values[1, 0] - stored.values[0, 0], np.zeros(()))
        off.append(abs(value / np.linalg.norm(near) - 1))
    assert np.quantile(off, 0.99) <= 0.25
