"""`pastnet.jax.preflight`: the right causes, nothing about what is healthy, and no trace left."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

import tb_pastnet as pastnet
from tb_pastnet.errors import InvalidArgument

jax = pytest.importorskip("jax", reason="JAX isn't installed: an extra of its own")
optax = pytest.importorskip("optax", reason="optax isn't installed")
from tests.contract.test_standing_jax import SET_TO_ZERO, loss, params  # noqa: E402

jnp = jax.numpy
preflight = pastnet.jax.preflight
RATED = optax.inject_hyperparams(optax.adam)
TRAINS = {"a": True, "b": True, "aside": False}


def made(tx: Any, factor: float = 1.0, keep: Any = lambda old, new: new) -> Any:
    """Params, optimizer state, and a step that donates both; with factor 0 nothing reaches aside."""
    p = params()

    def update(p: Any, state: Any) -> Any:
        updates, state = tx.update(jax.grad(loss)(p, 1, factor), state, p)
        return keep(p, optax.apply_updates(p, updates)), state, factor

    return p, tx.init(p), jax.jit(update, donate_argnums=(0, 1))


def aside(old: Any, new: Any) -> Any:
    return {**new, "aside": old["aside"]}


def only_gradients_masked() -> Any:
    keep = optax.masked(optax.set_to_zero(), {"a": False, "b": False, "aside": True})
    return optax.chain(keep, optax.adamw(1e-2, weight_decay=0.1))


BROKEN: dict[str, tuple[Any, dict[str, str]]] = {
    "zero gradient": (lambda: made(optax.adam(1e-2), 0.0), {"aside": "zero_gradient"}),
    "zero gradient, momentum": (lambda: made(optax.sgd(0.1, 0.9), 0.0), {"aside": "zero_gradient"}),
    "decay": (lambda: made(optax.adamw(1e-2, weight_decay=0.1), 0.0), {"aside": "weight_decay"}),
    "rate 0": (lambda: made(RATED(0.0)), dict.fromkeys(("a", "b", "aside"), "rate")),
    "thrown away": (lambda: made(RATED(1e-2), keep=aside), {"aside": "thrown_away"}),
    "no slots": (lambda: made(optax.sgd(0.1), 0.0), {"aside": "unknown"}),
    "not yet": (
        lambda: made(optax.MultiSteps(optax.adam(1e-2), 4)),
        dict.fromkeys(("a", "b", "aside"), "unknown"),
    ),
}


def layers(facts: Any) -> dict[str, str]:
    return {name.partition("/")[0]: cause for name, cause in facts.items()}


@pytest.mark.parametrize("name", BROKEN)
def test_what_stands_still_is_named_with_its_cause(name: str) -> None:
    make, expected = BROKEN[name]
    facts = preflight(*make())
    assert layers(facts.still) == expected
    assert not facts.ok


LEAKING = {
    "raw gradients": (lambda: optax.masked(optax.adam(1e-2), TRAINS), "unmasked_update"),
    "only gradients are masked": (only_gradients_masked, "weight_decay"),
    "nothing is masked": (lambda: optax.adam(1e-2), "gradient"),
}


@pytest.mark.parametrize("name", LEAKING)
def test_frozen_leaves_that_move_are_named_with_their_cause(name: str) -> None:
    make, cause = LEAKING[name]
    facts = preflight(*made(make()), trainable=TRAINS)
    assert layers(facts.leaks) == {"aside": cause}
    assert facts.frozen == ["aside/kernel"]
    assert not facts.still


HEALTHY = {
    "adam": lambda: made(optax.adam(1e-2)),
    "sgd": lambda: made(optax.sgd(0.1)),
    "adamw": lambda: made(optax.adamw(1e-2, weight_decay=0.5)),
    "set to zero": lambda: made(SET_TO_ZERO),
    "accumulated": lambda: made(optax.MultiSteps(optax.adam(1e-2), 2)),
    "rated": lambda: made(RATED(1e-3)),
    "moved by hand": lambda: made(
        optax.adam(1e-2),
        0.0,
        lambda old, new: {**new, "aside": {"kernel": old["aside"]["kernel"] + 1}},
    ),
    "lion": lambda: made(optax.lion(1e-3)),
    "sgd for a part": lambda: made(
        optax.multi_transform({True: optax.adam(1e-2), False: optax.sgd(0.1)}, TRAINS)
    ),
}


@pytest.mark.parametrize("name", HEALTHY)
def test_nothing_is_said_about_what_is_healthy(name: str) -> None:
    p, state, step = HEALTHY[name]()
    kept = [np.array(leaf) for leaf in jax.tree.leaves((p, state))]
    drawn = random.getstate(), np.random.get_state()[1].tobytes()  # noqa: NPY002

    def draws(*given: Any) -> Any:
        random.random()
        np.random.random()  # noqa: NPY002
        return step(*given)

    facts = preflight(p, state, draws)
    assert facts.ok, str(facts)
    assert facts.frozen == (["aside/kernel"] if name == "set to zero" else [])
    assert (facts.steps, facts.weights, facts.values) == (2, 3, 32 + 24 + 16)
    assert (random.getstate(), np.random.get_state()[1].tobytes()) == drawn  # noqa: NPY002
    for leaf, before in zip(jax.tree.leaves((p, state)), kept, strict=True):
        assert np.asarray(leaf).tobytes() == before.tobytes()


def test_declared_leaves_without_an_optimizer_and_masks_of_elements() -> None:
    p, state, step = made(SET_TO_ZERO)
    assert layers(preflight(p, state, step, trainable=True).still) == {"aside": "no_optimizer"}
    mask = np.ones((4, 8))
    mask[:, 2:] = 0
    facts = preflight(
        *made(optax.adam(1e-2)), trainable={"a": {"kernel": mask}, "b": True, "aside": True}
    )
    assert layers(facts.leaks) == {"a": "gradient"}
    assert facts.frozen == []


def test_modules_that_a_step_changes_in_place() -> None:
    nnx = pytest.importorskip("flax.nnx", reason="Flax isn't installed")
    model = nnx.Sequential(nnx.Linear(4, 3, rngs=nnx.Rngs(0)), nnx.Linear(3, 2, rngs=nnx.Rngs(1)))
    optimizer = nnx.Optimizer(model, optax.adam(1e-2), wrt=nnx.Param)

    def step(model: Any, optimizer: Any) -> Any:
        def loss(model: Any) -> Any:
            return (
                jax.lax.stop_gradient(model.layers[0](jnp.ones((2, 4)))) @ model.layers[1].kernel
            ).sum()

        optimizer.update(model, nnx.grad(loss)(model))

    kept = [np.array(leaf) for leaf in jax.tree.leaves((nnx.state(model), nnx.state(optimizer)))]
    facts = preflight(model, optimizer, step)
    assert set(facts.still) == {"layers/0/kernel", "layers/0/bias", "layers/1/bias"}
    assert {*facts.still.values()} == {"zero_gradient"}
    for leaf, before in zip(
        jax.tree.leaves((nnx.state(model), nnx.state(optimizer))), kept, strict=True
    ):
        assert np.asarray(leaf).tobytes() == before.tobytes()


def test_a_step_that_returns_something_else_is_refused() -> None:
    p, state, step = made(optax.sgd(0.1))
    with pytest.raises(InvalidArgument, match="step="):
        preflight(p, state, lambda p, state: (1.0, *step(p, state)))
    with pytest.raises(InvalidArgument, match="trainable="):
        preflight(p, state, step, trainable={"c": True})
    with pytest.raises(InvalidArgument, match="steps="):
        preflight(p, state, step, steps=0)
