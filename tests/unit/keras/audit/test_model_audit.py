"""Which optimizer an audit reads, and what it reads of it."""

from __future__ import annotations

import keras
import numpy as np
import pytest

from tb_pastnet.keras.audit.model_audit import ModelAudit
from tb_pastnet.keras.masks.masks import Masks
from tb_pastnet.keras.model.tf_weights import network

KERNEL = "dense/kernel"


def small(optimizer=None):
    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(2)])
    if optimizer is not None:
        model.compile(optimizer, "mse")
    return model


def source(model, optimizer=None):
    return ModelAudit(model, network(model).weights, optimizer)


def facts_of(audit, masks=None):
    """What is read of the optimizer of a kernel, whose masks may be those of a state."""
    held = audit.held(audit.weights[0])
    held.masks = None if masks is None else masks.masked.get(KERNEL)
    return audit.optimizers()(held)


def test_the_optimizer_that_is_given_goes_first():
    given = keras.optimizers.SGD()
    model = small(keras.optimizers.Adam())
    assert facts_of(source(model, given)).optimizer is given


def test_masks_know_the_one_that_trains_a_model_which_is_not_compiled():
    optimizer = keras.optimizers.Adam()
    masks = Masks(model := small(), optimizer)
    masks.prune(KERNEL, channels=[0])
    assert facts_of(source(model), masks.state).optimizer is optimizer
    assert facts_of(source(model)) is None


def test_it_is_the_one_that_updates_the_weight_not_one_that_never_did():
    model = small("adam")
    masks = Masks(model)
    masks.prune(KERNEL, channels=[0])
    whole = keras.Sequential([keras.Input((3,)), *model.layers])
    whole.compile("sgd", "mse")
    whole.fit(np.ones((4, 3)), np.ones((4, 2)), verbose=0)
    assert facts_of(source(model), masks.state).optimizer is whole.optimizer


def test_else_it_is_the_compiled_one_inside_of_what_scales_its_loss():
    inner = keras.optimizers.SGD()
    model = small(keras.optimizers.LossScaleOptimizer(inner))
    assert facts_of(source(model)).optimizer is inner
    assert facts_of(source(model), Masks(model, enforce=False).state).optimizer is inner


@pytest.mark.parametrize("optimizer", [None, object()])
def test_none_where_none_of_keras_is_known(optimizer):
    assert facts_of(source(small(), optimizer)) is None


def test_what_is_read():
    model = small(keras.optimizers.AdamW(0.25, weight_decay=0.5, beta_2=0.75))
    model.fit(np.ones((4, 3)), np.ones((4, 2)), batch_size=2, verbose=0)
    audit = source(model)
    held = audit.held(audit.weights[0])
    facts = facts_of(audit)
    assert (facts.updates, facts.rate, facts.decay(held)) == (2, 0.25, 0.5)
    assert facts.betas == [0.9, 0.75]
    assert facts.schedule is None
    assert facts.applied == (2, 0, None, 0)
    assert facts.average(held) is None
    assert facts.trains(held)
    positions = np.array([0, 5])
    kernels = [slot for slot in model.optimizer.variables if slot.shape == (3, 2)]
    slots = sorted(facts.slots(held, positions).values(), key=list)
    expected = sorted((slot.numpy().reshape(-1)[positions] for slot in kernels), key=list)
    np.testing.assert_array_equal(slots, expected)


def test_updates_through_a_hook_are_counted():
    masks = Masks(model := small("sgd"))
    masks.freeze(KERNEL, channels=[1])
    audit = source(model)
    generation = masks.state.masked[KERNEL].generation
    assert facts_of(audit).applied == (0, 0, 0, 0)
    model.fit(np.ones((4, 3)), np.ones((4, 2)), batch_size=2, verbose=0)
    assert facts_of(audit).applied == (2, 0, 2, generation)
    model.optimizer.iterations.assign(7)
    assert facts_of(audit).applied == (7, 1, 2, generation)


def test_a_moving_average_and_a_schedule():
    schedule = keras.optimizers.schedules.ExponentialDecay(0.5, 10, 0.5)
    settings = {"use_ema": True, "ema_momentum": 0.5, "ema_overwrite_frequency": 3}
    model = small(keras.optimizers.SGD(schedule, **settings))
    model.fit(np.ones((2, 3)), np.ones((2, 2)), verbose=0)
    audit = source(model)
    facts = facts_of(audit)
    average = facts.average(audit.held(audit.weights[0]))
    assert (average.overwrites_every, average.momentum) == (3, 0.5)
    assert average.values_at(np.array([1, 2])).shape == (2,)
    assert float(facts.schedule(0)) == 0.5
    assert np.isnan(facts.rate)


def test_an_optimizer_that_was_never_built_has_made_nothing():
    audit = source(small("adam"))
    held, facts = audit.held(audit.weights[0]), facts_of(audit)
    assert (facts.updates, facts.slots(held, np.array([0])), facts.trains(held)) == (0, {}, False)


def test_assignments_by_hand_count_from_the_first_question():
    audit = source(model := small("sgd"))
    held = audit.held(audit.weights[0])
    model.layers[0].kernel.assign(np.ones((3, 2)))
    assert audit.assigned(held) == 0
    model.layers[0].kernel.assign(np.ones((3, 2)))
    model.fit(np.ones((2, 3)), np.ones((2, 2)), verbose=0)
    assert audit.assigned(held) == 1
