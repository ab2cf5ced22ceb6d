from __future__ import annotations

import copy
import logging

import keras
import numpy as np
import pytest

from tb_pastnet.core.decay import OneShot, PolynomialDecay
from tb_pastnet.errors import InvalidArgument
from tb_pastnet.keras.masks.masks import Masks
from tb_pastnet.keras.masks.pruning import PruningCallback

X, Y = np.ones((40, 2), "f"), np.ones(40, "f")


class FakeMasks:
    """Remembers what it was told, and at which of the optimizer's updates."""

    def __init__(self, model):
        self.model = model
        self.calls = []
        self.how = []

    def prune_smallest(self, sparsity, **how):
        self.calls.append((int(self.model.optimizer.iterations), round(sparsity, 6)))
        self.how.append(how)


def compiled(optimizer="sgd", **settings):
    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
    model.compile(optimizer, "mse", **settings)
    return model


def fit(model, *callbacks, batches=10, epochs=1):
    model.fit(
        X[:batches], Y[:batches], batch_size=1, epochs=epochs, verbose=0, callbacks=[*callbacks]
    )


@pytest.fixture
def model():
    return compiled()


@pytest.fixture
def masks(model):
    return FakeMasks(model)


def test_at_the_multiples_of_every_and_at_the_end(model, masks):
    fit(model, PruningCallback(masks, PolynomialDecay(0, 0.8, 2, 10, power=1), every=3))
    assert masks.calls == [(3, 0.1), (6, 0.4), (9, 0.7), (10, 0.8)]
    assert masks.how[0] == {"scope": "global", "structured": False, "variables": None}


def test_schedules_count_batches_under_gradient_accumulation():
    def accumulating():
        return compiled(keras.optimizers.SGD(0.1, gradient_accumulation_steps=4))

    schedule = PolynomialDecay(0, 0.8, 0, 8, power=1)
    masks = FakeMasks(accumulating())
    fit(masks.model, PruningCallback(masks, schedule, every=3))
    # After the batches 3, 6 and 8; the optimizer makes an update of every fourth.
    assert masks.calls == [(0, 0.3), (1, 0.6), (2, 0.8)]
    resumed = FakeMasks(accumulating())
    resumed.model.optimizer._iterations.assign(4)
    fit(resumed.model, PruningCallback(resumed, schedule, every=3))
    assert resumed.calls == [(1, 0.6), (2, 0.8)]


def test_the_same_sparsity_is_pruned_once(model, masks):
    fit(model, PruningCallback(masks, PolynomialDecay(0, 0.8, 0, 4, power=1), every=1), epochs=2)
    assert masks.calls == [(1, 0.2), (2, 0.4), (3, 0.6), (4, 0.8)]


@pytest.mark.parametrize("step", [0, 1, 5, 7])
def test_all_at_once_whatever_every_is(model, masks, step):
    fit(model, PruningCallback(masks, OneShot(0.5, step), every=4))
    assert masks.calls == [(step, 0.5)]


def test_what_begins_at_once_begins_before_the_first_batch(model, masks):
    fit(model, PruningCallback(masks, PolynomialDecay(0.3, 0.6, 0, 8, power=1), every=4))
    assert masks.calls == [(0, 0.3), (4, 0.45), (8, 0.6)]


def test_nothing_before_its_step(model, masks):
    fit(model, PruningCallback(masks, OneShot(0.5, 11), every=1))
    assert masks.calls == []


# Some versions of Keras say so at the end of an epoch whose last execution is short.
@pytest.mark.filterwarnings("ignore:Your input ran out of data")
def test_executions_of_several_steps():
    model = compiled(steps_per_execution=4)
    masks = FakeMasks(model)
    pruning = PruningCallback(masks, PolynomialDecay(0, 0.9, 0, 18, power=1), every=5)
    fit(model, pruning, epochs=2)
    # Executions end at 4, 8, 10, 14, 18, 20: of 5, 10, 15 and 18 in 8, 10 and 18.
    assert masks.calls == [(8, 0.4), (10, 0.5), (18, 0.9)]


def test_a_second_fit_goes_on(model, masks):
    pruning = PruningCallback(masks, PolynomialDecay(0, 0.8, 0, 16, power=1), every=6)
    fit(model, pruning)
    fit(model, pruning)
    assert masks.calls == [(6, 0.3), (12, 0.6), (16, 0.8)]


def test_resuming_in_the_middle_and_after_the_end(model, masks):
    schedule = PolynomialDecay(0, 0.8, 0, 16, power=1)
    model.optimizer.iterations.assign(8)
    fit(model, PruningCallback(masks, schedule, every=6))
    assert masks.calls == [(12, 0.6), (16, 0.8)]
    # At the step itself it may have been killed before it pruned, and after the end as well.
    for base, sparsity in ((12, 0.6), (30, 0.8)):
        masks.calls.clear()
        model.optimizer.iterations.assign(base)
        fit(model, PruningCallback(masks, schedule, every=6), batches=1)
        assert masks.calls == [(base, sparsity)]


def test_a_backup_that_is_restored_by_a_later_callback(model, masks):
    class Restore(keras.callbacks.Callback):
        def on_train_begin(self, logs=None):
            self.model.optimizer.iterations.assign(8)

    schedule = PolynomialDecay(0, 0.8, 0, 16, power=1)
    fit(model, PruningCallback(masks, schedule, every=6), Restore())
    assert masks.calls == [(12, 0.6), (16, 0.8)]


def test_going_back_to_an_earlier_step(model, masks):
    pruning = PruningCallback(masks, PolynomialDecay(0, 0.8, 0, 8, power=1), every=4)
    fit(model, pruning)
    model.optimizer.iterations.assign(2)
    fit(model, pruning)
    assert masks.calls == [(4, 0.4), (8, 0.8)] * 2


def test_another_compile_goes_on_counting(model, masks):
    pruning = PruningCallback(masks, PolynomialDecay(0, 0.8, 0, 16, power=1), every=8)
    fit(model, pruning)
    model.compile("adam", "mse")
    fit(model, pruning)
    assert masks.calls == [(8, 0.4), (6, 0.8)]


def test_what_is_told_to_the_masks(model, masks):
    names = (name for name in ["kernel"])
    fit(model, PruningCallback(masks, OneShot(0.5, 1), 1, "layer", True, names), batches=1)
    assert masks.how == [{"scope": "layer", "structured": True, "variables": ["kernel"]}]


@pytest.mark.parametrize(("structured", "steps"), [(False, 1), (True, 4)])
def test_masks_of_a_network(structured, steps):
    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(8), keras.layers.Dense(4)])
    model.compile("adam", "mse", steps_per_execution=steps)
    masks = Masks(model)
    seen = []
    watch = keras.callbacks.LambdaCallback(
        on_train_batch_end=lambda batch, logs: seen.append(masks.sparsity())
    )
    schedule = PolynomialDecay(0, 0.75, 0, 8, power=1)
    pruning = PruningCallback(masks, schedule, 4, structured=structured)
    model.fit(X, np.ones((40, 4)), batch_size=4, verbose=0, callbacks=[pruning, watch])
    if structured:
        whole = [
            mask.all(axis=0) | ~mask.any(axis=0) for mask in masks.kept.values() if mask.ndim == 2
        ]
        assert np.concatenate(whole).all()
        assert (
            sum(int((~mask.any(axis=0)).sum()) for mask in masks.kept.values() if mask.ndim == 2)
            == 9
        )
        assert seen == sorted(seen)
    else:
        # 48 weights: 3/8 of them at step 4, 3/4 at step 8.
        assert seen == [0.0] * 3 + [18 / 48] * 4 + [36 / 48] * 3


def test_what_the_masks_raise_is_the_users(model):
    class Refusing:
        def prune_smallest(self, sparsity, **how):
            raise InvalidArgument("refused")

    with pytest.raises(InvalidArgument, match="refused"):
        fit(model, PruningCallback(Refusing(), OneShot(0.5, 1)))


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (
            {"masks": None},
            "expected masks=pastnet.Masks(model) or pastnet.torch.Masks(model), got None",
        ),
        (
            {"schedule": 0.5},
            "expected schedule=pastnet.PolynomialDecay(…) or pastnet.OneShot(…), got 0.5",
        ),
        ({"every": 0}, "expected every= as a whole number from 1 on, got 0"),
        ({"every": True}, "expected every= as a whole number from 1 on, got True"),
        ({"every": 2.0}, "expected every= as a whole number from 1 on, got 2.0"),
        ({"scope": "local"}, "expected scope='global' or 'layer', got 'local'"),
        ({"structured": 1}, "expected structured=True or False, got 1"),
    ],
)
def test_arguments_that_are_none(masks, change, expected):
    with pytest.raises(InvalidArgument) as error:
        PruningCallback(**{"masks": masks, "schedule": OneShot(0.5, 1), **change})
    assert str(error.value) == (f"Could not prune by a schedule: {expected}. Write it so.")


def test_under_gradient_accumulation_steps_are_batches():
    model = compiled(keras.optimizers.SGD(0.1, gradient_accumulation_steps=4))
    masks = FakeMasks(model)
    pruning = PruningCallback(masks, PolynomialDecay(0, 0.8, 0, 16, power=1), every=3)
    fit(model, pruning)
    # After 3, 6 and 9 batches, of which the optimizer has made 0, 1 and 2 updates.
    assert masks.calls == [(0, 0.15), (1, 0.3), (2, 0.45)]
    fit(model, pruning)
    assert masks.calls[3:] == [(3, 0.6), (3, 0.75), (4, 0.8)]


@pytest.mark.parametrize("stops_first", [False, True])
def test_weights_from_before_the_pruning_are_warned_of_once(tmp_path, caplog, stops_first):
    """EarlyStopping restores those of its best epoch, here the first."""
    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(8)], name="net")
    model.compile("sgd", "mse")
    masks = Masks(model)
    pruning = PruningCallback(masks, OneShot(0.5, 6), every=1)
    stopping = keras.callbacks.EarlyStopping(
        "loss", min_delta=1e9, patience=9, restore_best_weights=True
    )
    callbacks = [stopping, pruning] if stops_first else [pruning, stopping]
    with caplog.at_level(logging.WARNING, "tb_pastnet"):
        model.fit(X, np.ones((40, 8)), 10, epochs=3, verbose=0, callbacks=callbacks)
        model.save(tmp_path / "net.keras")
    (record,) = caplog.records
    assert record.message.startswith(
        "Could not keep the pruned weights of model 'net' at zero: expected zeros in "
        "'dense/kernel', got other values, set after pruning, as EarlyStopping(restore_best"
    )
    assert (masks.sparsity(), masks.zeros()) == (0.5, 0)
    masks.prune("dense/kernel", masks.kept["dense/kernel"])
    assert masks.zeros() == 0.5


def test_a_file_with_values_set_by_hand_is_warned_of(tmp_path, caplog):
    model = compiled()
    masks, before = Masks(model), model.get_weights()
    masks.prune_smallest(0.5)
    with caplog.at_level(logging.WARNING, "tb_pastnet"):
        model.set_weights(before)
        fit(model)
        model.save_weights(tmp_path / "trained.weights.h5")
        assert not caplog.records
        model.set_weights(before)
        model.save_weights(tmp_path / "net.weights.h5")
    assert "expected zeros in 'dense/kernel', got other values" in caplog.text


def test_pruning_to_the_same_sparsity_zeroes_what_was_set_by_hand():
    model = compiled()
    masks, before = Masks(model), model.get_weights()
    masks.prune_smallest(0.5)
    model.set_weights(before)
    masks.prune_smallest(0.5)
    assert masks.zeros() == masks.sparsity() == 0.5


def test_a_copy_prunes_a_copy_of_the_model(model):
    masks = Masks(model)
    pruning = copy.deepcopy(PruningCallback(masks, OneShot(0.5, 2)))
    with pytest.raises(InvalidArgument, match="Could not prune the model that is trained"):
        fit(model, pruning)
    fit(pruning._masks.model, pruning)
    assert (masks.sparsity(), pruning._masks.sparsity()) == (0, 0.5)
