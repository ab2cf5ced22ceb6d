"""Verdicts about layers, beside what the same training does when it goes on as long again."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tb_pastnet as pastnet

SIZE, STEPS, EVERY = (65, 9), 1500, 5

Rate = Callable[[float], float]


class Process:
    """Weights in motion: along a direction, towards a goal, at random, or all at once."""

    def __init__(
        self, *, drift: float = 0, pull: float = 0, noise: float = 0, rate: Rate = lambda _: 1.0,
        seed: int = 0, away: float = 1,
    ) -> None:  # fmt: skip
        self.rng = np.random.default_rng(seed)
        self.start = self.rng.normal(size=SIZE)
        self.weights = self.start.astype("f4")
        self.goal, self.along = self.start + self.rng.normal(size=SIZE), self.rng.normal(size=SIZE)
        self.back = self.weights.copy()
        self.weights *= np.float32(away)
        self.drift, self.pull, self.noise, self.rate = drift, pull, noise, rate

    def step(self, part: float) -> None:
        if self.back is not None and part > 0.01:
            self.weights, self.back = self.back, None
        push = self.drift * self.along + self.pull * (self.goal - self.weights)
        push += self.noise * self.rng.normal(size=SIZE)
        self.weights = (self.weights + self.rate(part) * push).astype("f4")


def recorded(logdir: Path, process: Process, rate: Rate | None = None) -> Any:
    """The layer after a training of so many steps, from its log."""
    rate = process.rate if rate is None else rate
    recorder = pastnet.numpy.Recorder(
        logdir,
        {"dense/kernel": lambda: process.weights},
        every=EVERY,
        learning_rate=lambda step: rate(step / STEPS),
    )
    with recorder:
        for step in range(1, STEPS + 1):
            process.step(step / STEPS)
            recorder.record(step)
    (run,) = pastnet.read(logdir).runs.values()
    return run.layers["dense"]


def cosine(part: float) -> float:
    return (1 + math.cos(math.pi * min(part, 1))) / 2


EXPECTED: dict[str, tuple[Callable[[], Process], str | None]] = {
    "a slow drift": (lambda: Process(drift=8e-5), "travels"),
    "a tiny learning rate": (lambda: Process(drift=5e-7), "travels"),
    "a drift hidden in noise": (lambda: Process(drift=4e-5, noise=2e-4), "travels"),
    "a random walk": (lambda: Process(noise=2e-4), "travels"),
    "a schedule that ends": (lambda: Process(drift=1e-2, noise=1e-2, rate=cosine), None),
    "half of a schedule": (
        lambda: Process(drift=1e-3, rate=lambda part: cosine(part / 2)),
        "travels",
    ),
    "an exact goal": (lambda: Process(pull=0.01), "arrived"),
    "half of the way": (lambda: Process(pull=1e-3), "travels"),
    "a jump from far away, then a drift": (lambda: Process(drift=1e-3, away=1e6), "travels"),
    "nothing": (Process, None),
}


@pytest.mark.parametrize("name", EXPECTED)
def test_verdicts_are_those_that_the_motion_deserves(tmp_path: Path, name: str) -> None:
    make, expected = EXPECTED[name]
    verdict = recorded(tmp_path, make()).verdict
    assert (verdict.kind if verdict else None) == expected


def test_noise_around_the_beginning_is_in_place(tmp_path: Path) -> None:
    process = Process(pull=0.05, noise=2e-4)
    process.goal = process.start
    layer = recorded(tmp_path, process)
    verdict = layer.verdict
    assert verdict.kind == "in place"
    assert verdict.norm == pytest.approx(np.linalg.norm(process.weights), rel=0.03)
    # About as far apart as any two places of the noise are.
    apart = 2e-4 * np.sqrt(2 * process.start.size / (2 * 0.05))
    assert verdict.distance == pytest.approx(apart, rel=0.4)
    (finding,) = pastnet.read(tmp_path).findings()
    assert (finding.kind, finding.cause, finding.layers) == ("settled", "in place", ("dense",))


def test_without_a_learning_rate_there_is_no_verdict(tmp_path: Path) -> None:
    process = Process(drift=1e-4)
    assert recorded(tmp_path, process, lambda _: math.nan).verdict is None


@pytest.mark.parametrize("seed", range(20))
def test_what_has_settled_would_not_have_gone_on(tmp_path: Path, seed: int) -> None:
    rng = np.random.default_rng(seed)
    process = Process(
        drift=rng.choice([0, 0, 10.0 ** rng.uniform(-7, -3)]),
        pull=10.0 ** rng.uniform(-4, -1),
        noise=rng.choice([0, 10.0 ** rng.uniform(-6, -4)]),
        rate=[lambda _: 1.0, cosine, lambda part: 1 - 0.8 * min(part, 1)][rng.integers(3)],
        seed=seed,
    )
    verdict = recorded(tmp_path, process).verdict
    now, way = process.weights, np.linalg.norm(process.weights - process.start)
    for step in range(STEPS):
        process.step(1 + step / STEPS)
    further = np.linalg.norm(process.weights - now)
    if verdict is not None and verdict.kind != "travels":
        assert further <= 0.1 * way


def trainings() -> Iterator[Any]:
    """Some trainings: model, optimizer, loss, learning rate schedule, steps."""
    torch = pytest.importorskip("torch", reason="torch isn't installed: an extra of its own")
    from sklearn.datasets import load_digits
    from torch import nn
    from torch.nn import functional

    images, labels = load_digits(return_X_y=True)
    images = torch.tensor(images / 16, dtype=torch.float32)
    labels = torch.tensor(labels)

    def digits(
        make: Callable[[Any], Any], *, conv: bool = False, steps: int, rate: Any = None
    ) -> Any:
        torch.manual_seed(0)
        if conv:
            model = nn.Sequential(
                nn.Unflatten(1, (1, 8, 8)), nn.Conv2d(1, 16, 3), nn.ReLU(), nn.Conv2d(16, 32, 3),
                nn.ReLU(), nn.Flatten(), nn.Linear(512, 10),
            )  # fmt: skip
        else:
            model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10))

        def loss() -> Any:
            some = torch.randint(0, len(labels), (64,))
            return functional.cross_entropy(model(images[some]), labels[some])

        return model, make(model.parameters()), loss, rate, steps

    def exact() -> Any:
        torch.manual_seed(1)
        inputs, model = torch.randn(512, 20), nn.Linear(20, 4)
        wanted = inputs @ torch.randn(20, 4)
        step = torch.optim.SGD(model.parameters(), 0.1)
        return model, step, lambda: functional.mse_loss(model(inputs), wanted), None, 600

    def bert(rate: float, steps: int) -> Any:
        transformers = pytest.importorskip("transformers", reason="it has the model")
        torch.manual_seed(0)
        config = transformers.BertConfig(
            vocab_size=300, hidden_size=48, num_hidden_layers=1, num_attention_heads=4,
            intermediate_size=96, max_position_embeddings=32,
        )  # fmt: skip
        model = transformers.BertForSequenceClassification(config)

        def loss() -> Any:
            words = torch.randint(0, 120, (8, 16))
            return model(input_ids=words, labels=words.sum(1) % 2).loss

        return model, torch.optim.AdamW(model.parameters(), rate), loss, None, steps

    optim = torch.optim
    yield "SGD 1e-3", lambda: digits(lambda p: optim.SGD(p, 1e-3), steps=1500)
    yield "SGD 1e-3, momentum", lambda: digits(lambda p: optim.SGD(p, 1e-3, 0.9), steps=1500)
    yield "AdamW 1e-5", lambda: digits(lambda p: optim.AdamW(p, 1e-5), steps=1000)
    yield "Adam 1e-3", lambda: digits(lambda p: optim.Adam(p, 1e-3), steps=3000)
    yield "Adam 1e-2", lambda: digits(lambda p: optim.Adam(p, 1e-2), steps=1000)
    yield "CNN", lambda: digits(lambda p: optim.SGD(p, 1e-3), conv=True, steps=600)
    yield "cosine", lambda: digits(lambda p: optim.AdamW(p, 1e-3), steps=1500, rate=cosine)
    yield (
        "to a fifth",
        lambda: digits(lambda p: optim.AdamW(p, 1e-3), steps=2000, rate=lambda u: 1 - 0.8 * u),
    )
    yield "exact", exact
    yield "BERT 5e-7", lambda: bert(5e-7, 40)
    yield "BERT 1e-6", lambda: bert(1e-6, 200)


NAMES = (
    "SGD 1e-3", "SGD 1e-3, momentum", "AdamW 1e-5", "Adam 1e-3", "Adam 1e-2", "CNN", "cosine",
    "to a fifth", "exact", "BERT 5e-7", "BERT 1e-6",
)  # fmt: skip
PROVEN = {"Adam 1e-3", "Adam 1e-2", "to a fifth", "BERT 1e-6", "CNN"}


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=pytest.mark.prove if n in PROVEN else ()) for n in NAMES]
)
def test_trained_layers_that_have_settled_would_not_have_gone_on(tmp_path: Path, name: str) -> None:
    model, optimizer, loss, rate, steps = dict(trainings())[name]()
    base = optimizer.param_groups[0]["lr"]

    def train(first: int, last: int, recorder: Any = None) -> None:
        for step in range(first, last + 1):
            if rate is not None:
                optimizer.param_groups[0]["lr"] = base * rate(min(step / steps, 1))
            optimizer.zero_grad()
            loss().backward()
            optimizer.step()
            if recorder is not None:
                recorder.record(step)

    def kernels() -> dict[str, np.ndarray]:
        return {
            key.replace(".", "/"): value.detach().numpy().copy()
            for key, value in model.named_parameters()
            if value.ndim > 1
        }

    start = kernels()
    with pastnet.torch.Recorder(tmp_path, model, optimizer, every=max(1, steps // 200)) as recorder:
        train(1, steps, recorder)
    now = kernels()
    train(steps + 1, 2 * steps)
    later = kernels()
    (run,) = pastnet.read(tmp_path).runs.values()
    kinds = {layer.variable: layer.verdict and layer.verdict.kind for layer in run.layers.values()}
    for key in start:
        if kinds[key] in ("in place", "arrived"):
            way = np.linalg.norm(now[key] - start[key])
            assert np.linalg.norm(later[key] - now[key]) <= 0.1 * way, (key, kinds[key])
    if name == "exact":
        assert kinds == {"./weight": "arrived"} or "arrived" in kinds.values()
    if name in ("BERT 5e-7", "SGD 1e-3", "AdamW 1e-5"):
        assert {kinds[key] for key in start} <= {"travels", None}
