"""What is declared not trainable, or pruned, is compared bitwise; nothing else is."""

from __future__ import annotations

import functools

import numpy as np
import pytest

import tb_pastnet as pastnet

jax = pytest.importorskip("jax", reason="its room is tested where JAX is installed")
jnp = pytest.importorskip("jax.numpy", reason="its room is tested where JAX is installed")
optax = pytest.importorskip("optax", reason="it trains what is recorded here")
Recorder = pastnet.jax.Recorder

X = np.random.default_rng(0).normal(size=(32, 12)).astype(np.float32)
Y = np.random.default_rng(1).normal(size=(32, 3)).astype(np.float32)
MASKS = {"body": False, "head": True}


def network():
    keys = jax.random.split(jax.random.key(0), 2)
    return {
        "body": {"kernel": jax.random.normal(keys[0], (12, 6)), "bias": jnp.ones(6)},
        "head": {"kernel": jax.random.normal(keys[1], (6, 3)), "bias": jnp.zeros(3)},
    }


def loss_of(params):
    hidden = jax.nn.tanh(X @ params["body"]["kernel"] + params["body"]["bias"])
    return jnp.mean((hidden @ params["head"]["kernel"] + params["head"]["bias"] - Y) ** 2)


def train(logdir, optimizer, steps=8, change=None, **options):
    """Trains with a donating step; `change` may declare between steps."""

    @functools.partial(jax.jit, donate_argnums=(0, 1))
    def step(params, state):
        updates, state = optimizer.update(jax.grad(loss_of)(params), state, params)
        return optax.apply_updates(params, updates), state

    params = network()
    state = optimizer.init(params)
    with Recorder(logdir, params, every=2, **options) as recorder:
        for number in range(1, steps + 1):
            donated = params["body"]["kernel"]
            params, state = step(params, state)
            assert donated.is_deleted()
            recorder.record(number, params)
            if change is not None:
                change(recorder, number, params)
        assert [note for note in recorder.notes.counts() if "opt_state=" not in note] == []
    (run,) = pastnet.read(logdir).runs.values()
    return run


def spread():
    return {"body": {"kernel": False, "bias": False}, "head": {"kernel": True, "bias": True}}


def zeroed(optimizer):
    """The exact way: what isn't trainable gets no update."""
    return optax.chain(optimizer, optax.masked(optax.set_to_zero(), {"body": True, "head": False}))


@pytest.mark.parametrize(
    "masks", [MASKS, spread(), lambda params: MASKS], ids=["prefix", "whole", "function"]
)
def test_what_is_frozen_exactly_is_no_violation(masks, tmp_path):
    run = train(tmp_path, zeroed(optax.adamw(1e-2)), trainable=masks)
    assert list(run.violations) == []
    overview = run.overview()
    states = dict(zip(overview.layers, overview.frozen[-1].tolist(), strict=True))
    assert (states["body"], states["head"]) == (6, 0)


def test_masks_may_be_a_module_that_can_be_called(tmp_path):
    nn = pytest.importorskip("equinox.nn", reason="its modules are tested where it is installed")
    module = nn.Linear(2, 3, key=jax.random.key(0))
    masks = jax.tree.map(lambda _: False, module)
    with Recorder(tmp_path, module, every=1, trainable=masks) as recorder:
        recorder.record(1, jax.tree.map(lambda array: array + 1, module))
    (run,) = pastnet.read(tmp_path).runs.values()
    assert {violation.variable for violation in run.violations} == {"weight", "bias"}


def test_partition_freezes_exactly(tmp_path):
    labels = {"body": "freeze", "head": "train"}
    optimizers = {"train": optax.adamw(1e-2), "freeze": optax.set_to_zero()}
    run = train(tmp_path, optax.partition(optimizers, labels), trainable=MASKS)
    assert list(run.violations) == []


def test_an_update_of_zero_moves_a_negative_zero(tmp_path):
    params = {"w": jnp.array([[-0.0, 1.0]])}
    with Recorder(tmp_path, params, every=1, trainable={"w": False}) as recorder:
        recorder.record(1, optax.apply_updates(params, {"w": jnp.zeros((1, 2))}))
    (run,) = pastnet.read(tmp_path).runs.values()
    assert [(each.channel, each.largest) for each in run.violations] == [(0, 0.0)]


def test_masked_passes_raw_gradients_to_the_others(tmp_path):
    run = train(tmp_path, optax.masked(optax.adamw(1e-2), MASKS), trainable=MASKS)
    violated = {violation.variable for violation in run.violations}
    assert violated == {"body/kernel", "body/bias"}
    assert {violation.first_step for violation in run.violations} == {1}
    assert {violation.cause for violation in run.violations} == {"unknown"}


def test_weight_decay_is_known_by_its_numbers(tmp_path):
    def without_gradients(optimizer):
        stop = optax.masked(optax.set_to_zero(), {"body": True, "head": False})
        return optax.chain(stop, optimizer)

    run = train(tmp_path, without_gradients(optax.adamw(1e-2, weight_decay=0.1)), trainable=MASKS)
    kernel = [each for each in run.violations if each.variable == "body/kernel"]
    assert {violation.cause for violation in kernel} == {"weight_decay"}
    assert {violation.channel for violation in kernel} == set(range(6))


def test_elements_are_held_one_by_one(tmp_path):
    free = np.ones((12, 6), bool)
    free[3, 2] = False
    masks = {"body": {"kernel": free, "bias": True}, "head": True}
    run = train(tmp_path, optax.sgd(0.1), trainable=masks)
    assert {(each.variable, each.channel, each.held) for each in run.violations} == {
        ("body/kernel", 2, 1)
    }
    share = run.variables["body/kernel"].trainable[-1]
    np.testing.assert_allclose(share, np.where(np.arange(6) == 2, 11 / 12, 1), rtol=0.01)


def test_masks_of_what_is_not_recorded_say_nothing(tmp_path):
    run = train(tmp_path, optax.sgd(0.1), trainable=MASKS, kept=MASKS, variables=["head/*"])
    assert list(run.violations) == []
    assert list(run.variables) == ["head/bias", "head/kernel"]


def test_masks_that_let_all_through_hold_no_view(tmp_path):
    every = jax.tree.map(np.ones_like, network())
    run = train(tmp_path, optax.sgd(0.1), trainable=every, kept=every)  # its steps donate
    assert list(run.violations) == []


def test_pruned_weights_should_be_zero(tmp_path):
    kept = np.ones((12, 6), bool)
    kept[:, 1] = False
    masks = {"body": {"kernel": kept, "bias": True}, "head": True}
    run = train(tmp_path, optax.sgd(0.1), kept=masks)
    assert {(each.variable, each.channel) for each in run.violations} == {("body/kernel", 1)}
    assert run.variables["body/kernel"].kept[-1].tolist() == [1, 0, 1, 1, 1, 1]


def test_what_is_declared_later_is_held_from_then_on(tmp_path):
    def change(recorder, step, params):
        if step == 4:
            recorder.declare(params, trainable=MASKS)

    run = train(tmp_path, optax.sgd(0.1), change=change)
    assert {violation.variable for violation in run.violations} == {"body/kernel", "body/bias"}
    assert {violation.first_step for violation in run.violations} == {6}
    frozen = [row[0] for row in run.overview().frozen.tolist()]
    assert frozen == [0, 0, 0, 6, 6]


def test_what_follows_is_no_violation(tmp_path):
    run = train(tmp_path, optax.sgd(0.1), trainable=MASKS, follows=["body/*"])
    assert list(run.violations) == []
    assert run.overview().following[-1].tolist() == [6, 0]
