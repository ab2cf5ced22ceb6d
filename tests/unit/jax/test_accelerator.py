"""Trainings on a GPU. They run where there is one: `python -m pytest tests/unit/jax`."""

from __future__ import annotations

import numpy as np
import pytest

import tb_pastnet as pastnet
from tb_pastnet.core.quantize import PRECISION

jax = pytest.importorskip("jax", reason="JAX isn't installed: an extra of its own")
optax = pytest.importorskip("optax", reason="optax isn't installed")

pytestmark = pytest.mark.skipif(jax.default_backend() == "cpu", reason="this machine has no GPU")


def train(logdir=None, dtype="float32", steps=6, masks=None):
    """Trains with donated memory; the parameters after each step, as a user's own copies."""
    rng = np.random.default_rng(0)
    params = {
        "first": {"kernel": jax.numpy.asarray(rng.normal(size=(8, 16)), dtype)},
        "second": {"kernel": jax.numpy.asarray(rng.normal(size=(16, 3)), dtype)},
    }
    x = jax.numpy.asarray(rng.normal(size=(32, 8)), dtype)
    optimizer = optax.adamw(1e-2)
    slots = optimizer.init(params)

    def loss(params):
        hidden = jax.nn.relu(x @ params["first"]["kernel"])
        return jax.numpy.mean((hidden @ params["second"]["kernel"] - 1) ** 2)

    def update(params, slots):
        updates, slots = optimizer.update(jax.grad(loss)(params), slots, params)
        return optax.apply_updates(params, updates), slots

    def copies():
        return {
            f"{name}/kernel": np.array(params[name]["kernel"].astype("float32")) for name in params
        }

    step = jax.jit(update, donate_argnums=(0, 1))
    states = [copies()]
    recorder = logdir and pastnet.jax.Recorder(logdir, params, every=1, trainable=masks)
    donated = []
    for number in range(1, steps + 1):
        before = params["first"]["kernel"]
        params, slots = step(params, slots)
        donated.append(before.is_deleted())
        if recorder:
            recorder.record(number, params)
        states.append(copies())
    assert all(donated)
    if recorder:
        assert recorder.flush()
        assert recorder.notes.counts() == {}
        recorder.close()
    return states


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_a_training_goes_on_to_the_bit_and_numbers_are_those_of_the_weights(dtype, tmp_path):
    plain, states = train(dtype=dtype), train(tmp_path, dtype)
    for was, now in zip(plain, states, strict=True):
        assert all(was[key].tobytes() == now[key].tobytes() for key in was)
    (run,) = pastnet.read(tmp_path).runs.values()
    assert run.steps.tolist() == [1, 2, 3, 4, 5, 6]
    for name, variable in run.variables.items():
        for record, step in enumerate(run.steps.tolist()):
            now, past = (states[at][name].T.astype(np.float64) for at in (step, step - 1))
            np.testing.assert_allclose(
                variable.norm[record], np.linalg.norm(now, axis=1), rtol=PRECISION
            )
            np.testing.assert_allclose(
                variable.delta_norm[record], np.linalg.norm(now - past, axis=1), rtol=PRECISION
            )


def test_held_leaves_that_move(tmp_path):
    train(tmp_path, masks={"first": {"kernel": False}, "second": {"kernel": True}})
    (run,) = pastnet.read(tmp_path).runs.values()
    assert {each.variable for each in run.violations} == {"first/kernel"}
