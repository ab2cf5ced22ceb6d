"""Why leaves of a pytree are idle, as far as their optimizer state shows it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tb_pastnet as pastnet

jax = pytest.importorskip("jax", reason="JAX isn't installed: an extra of its own")
optax = pytest.importorskip("optax", reason="optax isn't installed")
jnp = jax.numpy

STEPS = 44
X = np.random.default_rng(0).normal(size=(16, 4)).astype("f4")
RATE = 1e-2


def params() -> dict[str, Any]:
    rng = np.random.default_rng(1)
    shapes = {"a": (4, 8), "b": (8, 3), "aside": (8, 2)}
    return {name: {"kernel": jnp.asarray(rng.normal(size=shape) / 2, jnp.float32)}
            for name, shape in shapes.items()}  # fmt: skip


def loss(p: Any, number: int, factor: float = 0.0) -> Any:
    """The layer aside has a factor of 0: its gradient is exactly zero."""
    hidden = jnp.tanh((X + number / 50) @ p["a"]["kernel"])
    own = ((hidden @ p["b"]["kernel"] - 1) ** 2).mean()
    return own + factor * (hidden @ p["aside"]["kernel"]).sum()


def record(
    path: Path,
    tx: Any,
    *,
    factor: float = 0.0,
    keep: Callable[[Any, Any], Any] = lambda old, new: new,
    passes_state: bool = True,
    rate: float | None = RATE,
    cast: Any = jnp.float32,
) -> tuple[Any, Any]:
    p = jax.tree.map(lambda value: value.astype(cast), params())
    state = tx.init(p)

    def update(p: Any, state: Any, number: int) -> Any:
        updates, state = tx.update(jax.grad(loss)(p, number, factor), state, p)
        return optax.apply_updates(p, updates), state

    update = jax.jit(update)
    with pastnet.jax.Recorder(path, p, every=1, learning_rate=rate) as recorder:
        for number in range(1, STEPS + 1):
            new, state = update(p, state, number)
            p = keep(p, new)
            recorder.record(number, p, opt_state=state if passes_state else None)
        recorder.flush()
        before = pastnet.read(path).findings()
    assert not recorder.notes.counts()
    return before, pastnet.read(path).findings()


def causes(findings: Any) -> dict[str, str]:
    own = (each for each in findings if each.kind in ("stalled", "frozen"))
    return {layer: each.cause or each.kind for each in own for layer in each.layers}


def labels(p: Any) -> Any:
    return {name: "zero" if name == "aside" else "train" for name in p}


def without(name: str) -> Callable[[Any, Any], Any]:
    return lambda old, new: {**new, name: old[name]}


SET_TO_ZERO = optax.multi_transform(
    {"train": optax.adam(RATE), "zero": optax.set_to_zero()}, labels
)
STILL: dict[str, tuple[Any, dict[str, Any], dict[str, str]]] = {
    "set to zero": (SET_TO_ZERO, {"factor": 1.0}, {"aside": "frozen"}),
    "zero gradient": (optax.adam(RATE), {}, {"aside": "zero_gradient"}),
    "zero gradient, momentum": (optax.sgd(RATE, 0.9), {}, {"aside": "zero_gradient"}),
    "decay": (optax.adamw(RATE, weight_decay=1e-2), {}, {"aside": "weight_decay"}),
    "thrown away": (
        optax.adam(RATE),
        {"factor": 1.0, "keep": without("aside")},
        {"aside": "thrown_away"},
    ),
    "never returned": (
        optax.adam(RATE),
        {"factor": 1.0, "keep": lambda old, new: old},
        dict.fromkeys(("a", "b", "aside"), "thrown_away"),
    ),
    "rate 0": (
        optax.adam(0.0),
        {"factor": 1.0, "rate": 0.0},
        dict.fromkeys(("a", "b", "aside"), "rate"),
    ),
    # What isn't shown is unknown.
    "no state": (optax.adam(RATE), {"passes_state": False}, {"aside": "unknown"}),
    "no slots": (optax.sgd(RATE), {}, {"aside": "unknown"}),
    "no rate": (
        optax.adam(0.0),
        {"factor": 1.0, "rate": None},
        dict.fromkeys(("a", "b", "aside"), "unknown"),
    ),
    "16 bits": (
        optax.adam(1e-7),
        {"factor": 1.0, "cast": jnp.bfloat16, "rate": 1e-7},
        dict.fromkeys(("a", "b", "aside"), "unknown"),
    ),
}
AT_END = {"zero_gradient", "rate", "unknown"}


@pytest.mark.parametrize("name", STILL)
def test_causes_of_standing_still(tmp_path: Path, name: str) -> None:
    tx, more, expected = STILL[name]
    before, after = record(tmp_path, tx, **more)
    assert causes(after) == expected
    assert causes(before) == {k: v for k, v in expected.items() if v not in AT_END}


SLOW: dict[str, tuple[Any, dict[str, Any]]] = {
    "all train": (optax.adam(RATE), {"factor": 1.0}),
    "accumulation": (optax.MultiSteps(optax.adam(RATE), 4), {"factor": 1.0}),
    "warm-up": (optax.adam(optax.linear_schedule(0.0, RATE, 10)), {"factor": 1.0, "rate": None}),
    "decay that is not alone": (optax.adamw(RATE, weight_decay=1e-2), {"factor": 1e-3}),
}


@pytest.mark.parametrize("name", SLOW)
def test_what_learns_is_not_stalled(tmp_path: Path, name: str) -> None:
    tx, more = SLOW[name]
    before, after = record(tmp_path, tx, **more)
    assert causes(before) == causes(after) == {}


def test_a_leaf_without_slots_that_once_moved_is_not_frozen(tmp_path: Path) -> None:
    """Its optimizer, here plain SGD, may have none."""
    tx = optax.multi_transform({"train": optax.adam(RATE), "zero": optax.sgd(RATE)}, labels)
    kept: list[Any] = []

    def keep(old: Any, new: Any) -> Any:
        kept.append(new)
        return new if len(kept) < 10 else {**new, "aside": old["aside"]}

    before, after = record(tmp_path, tx, factor=1.0, keep=keep)
    assert causes(before) == {}
    assert causes(after) == {"aside": "unknown"}
