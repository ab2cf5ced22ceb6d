"""Causes by what an optimizer of optax keeps, when leaves began to be held and now."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest

import tb_pastnet as pastnet

jnp = pytest.importorskip("jax.numpy", reason="its room is tested where JAX is installed")
optax = pytest.importorskip("optax", reason="its states are read")

START = {
    "body": {"w": np.linspace(0.5, 2, 6, dtype="f4").reshape(2, 3)},
    "w": np.ones((2, 3), "f4"),
}
MASKS = {"body": False, "w": True}


def state(value, w=1.0):
    """Slots as those of Adam: leaves by the paths of the parameters."""
    return {"mu": {"body": {"w": jnp.asarray(value)}, "w": jnp.full((2, 3), w)}}


def cause(folder, begun, now):
    moved = {
        **START,
        "body": {"w": START["body"]["w"] + np.arange(6, dtype="f4").reshape(2, 3) + 1},
    }
    with pastnet.jax.Recorder(folder, START, every=1, trainable=MASKS, opt_state=begun) as recorder:
        recorder.record(1, moved, opt_state=now)
    (run,) = pastnet.read(folder).runs.values()
    (only,) = {violation.cause for violation in run.violations}
    return only


SLOT = np.linspace(1, 3, 6, dtype="f4").reshape(2, 3)


@pytest.mark.parametrize(
    ("begun", "now", "expected"),
    [
        (state(SLOT), state(SLOT * 0.9), "momentum"),
        (state(SLOT), state(SLOT * np.linspace(0.2, 2, 6, dtype="f4").reshape(2, 3)), "gradient"),
        (state(SLOT * 0), state(SLOT), "gradient"),
        (state(SLOT * 0), state(SLOT * 0), "written"),
        ({"mu": {"w": SLOT}}, {"mu": {"w": SLOT}}, "unmasked_update"),
        # optax.MultiSteps gathers the gradients of all leaves.
        (
            {"mu": {"w": SLOT}, "acc_grads": {"body": {"w": SLOT}, "w": SLOT}},
            {"mu": {"w": SLOT}, "acc_grads": {"body": {"w": SLOT * 0}, "w": SLOT}},
            "unmasked_update",
        ),
        # A slot of another shape, or of no leaf, says nothing; nor does a state without any.
        (state(SLOT[:1]), state(SLOT[:1] * 0.9), "unmasked_update"),
        ({"count": np.int32(1)}, {"count": np.int32(2)}, "unknown"),
        (None, None, "unknown"),
        (None, state(SLOT), "unknown"),
        (state(SLOT), None, "unknown"),
    ],
)
def test_causes(begun, now, expected, tmp_path):
    assert cause(tmp_path, begun, now) == expected


@pytest.mark.parametrize(
    ("now", "expected"),
    [([0.99, 1.98], "unknown"), ([0.99, 2.0], "unknown"), ([1.01, 2.02], "written")],
)
def test_few_elements_that_shrink_without_a_gradient_may_decay(now, expected, tmp_path):
    start, still = {"b": np.array([1, 2], "f4")}, {"mu": {"b": jnp.zeros(2)}}
    settings = {"every": 1, "trainable": {"b": False}, "opt_state": still}
    with pastnet.jax.Recorder(tmp_path, start, **settings) as recorder:
        recorder.record(1, {"b": np.array(now, "f4")}, opt_state=still)
    (run,) = pastnet.read(tmp_path).runs.values()
    assert {violation.cause for violation in run.violations} == {expected}


def test_a_few_of_many_elements_that_shrink_are_written(tmp_path):
    start, still = {"w": np.ones((2, 3), "f4")}, {"mu": {"w": jnp.zeros((2, 3))}}
    settings = {"every": 1, "trainable": {"w": False}, "opt_state": still}
    with pastnet.jax.Recorder(tmp_path, start, **settings) as recorder:
        now = np.where(np.arange(3) < 1, np.float32(0.9), start["w"])
        recorder.record(1, {"w": now}, opt_state=still)
    (run,) = pastnet.read(tmp_path).runs.values()
    assert {violation.cause for violation in run.violations} == {"written"}


@pytest.mark.parametrize("make", [optax.adamw, optax.lion])
def test_weight_decay_of_a_scalar_is_not_taken_for_a_write(make, tmp_path):
    params, optimizer = {"scale": jnp.full(2, 2.0)}, make(0.1, weight_decay=0.5)
    state = optimizer.init(params)
    settings = {"every": 1, "trainable": {"scale": False}, "opt_state": state}
    with pastnet.jax.Recorder(tmp_path, params, **settings) as recorder:
        for step in range(1, 4):
            updates, state = optimizer.update({"scale": jnp.zeros(2)}, state, params)
            params = optax.apply_updates(params, updates)
            recorder.record(step, params, opt_state=state)
    (run,) = pastnet.read(tmp_path).runs.values()
    assert {violation.cause for violation in run.violations} == {"unknown"}


def test_without_a_state_a_note_says_what_would_show_the_cause(tmp_path):
    moved = {**START, "body": {"w": START["body"]["w"] + 1}}
    for given in (None, state(SLOT)):
        settings = {"every": 1, "trainable": MASKS, "opt_state": given}
        with pastnet.jax.Recorder(tmp_path, START, **settings) as recorder:
            recorder.record(1, moved, opt_state=given)
            assert ["opt_state=" in note for note in recorder.notes.counts()] == [True] * (
                not given
            )


def test_a_state_that_comes_with_a_later_record_is_as_good(tmp_path):
    moved = {**START, "body": {"w": START["body"]["w"] + 1}}
    with pastnet.jax.Recorder(tmp_path, START, every=1, trainable=MASKS) as recorder:
        recorder.record(1, START, opt_state=state(SLOT))
        recorder.record(2, moved, opt_state=state(SLOT * 0.9))
    (run,) = pastnet.read(tmp_path).runs.values()
    assert {violation.cause for violation in run.violations} == {"momentum"}


def test_what_is_declared_anew_is_compared_with_the_state_of_then(tmp_path):
    moved = {**START, "body": {"w": START["body"]["w"] + 1}}
    with pastnet.jax.Recorder(tmp_path, START, every=1, opt_state=state(SLOT * 9)) as recorder:
        recorder.declare(START, trainable=MASKS, opt_state=state(SLOT))
        recorder.record(1, moved, opt_state=state(SLOT * 0.9))
    (run,) = pastnet.read(tmp_path).runs.values()
    assert {violation.cause for violation in run.violations} == {"momentum"}


def test_more_that_is_held_is_compared_with_the_state_of_then(tmp_path):
    moved = {**START, "body": {"w": START["body"]["w"] + 1}}
    some = {"body": {"w": np.arange(6).reshape(2, 3) < 3}, "w": True}
    with pastnet.jax.Recorder(
        tmp_path, START, every=1, trainable=some, opt_state=state(SLOT * 0)
    ) as recorder:
        recorder.declare(START, trainable=MASKS, opt_state=state(SLOT))
        recorder.record(1, moved, opt_state=state(SLOT * 0.9))
    (run,) = pastnet.read(tmp_path).runs.values()
    assert {violation.cause for violation in run.violations} == {"momentum"}


def test_a_leaf_does_not_take_the_slots_of_another_whose_path_ends_alike(tmp_path):
    moved = {**START, "w": START["w"] + SLOT}
    own, others = {"mu": {"w": SLOT}}, {"mu": {"body": {"w": SLOT}}}
    for number, (given, expected) in enumerate(((own, "gradient"), (others, "unmasked_update"))):
        begun = {"mu": {"body": {"w": SLOT * 0}, "w": SLOT * 0}} if number == 0 else others
        folder = tmp_path / str(number)
        with pastnet.jax.Recorder(
            folder, START, every=1, trainable={"body": True, "w": False}, opt_state=begun
        ) as recorder:
            recorder.record(1, moved, opt_state=given)
        (run,) = pastnet.read(folder).runs.values()
        assert {violation.cause for violation in run.violations} == {expected}


def test_nothing_of_a_state_is_held(tmp_path):
    class Slots(dict):
        pass

    given = Slots(state(SLOT))
    alive = weakref.ref(given)
    with pastnet.jax.Recorder(
        tmp_path, START, every=1, trainable=MASKS, opt_state=None
    ) as recorder:
        recorder.record(1, START, opt_state={"slots": [given]})
        del given
        gc.collect()
        assert alive() is None
