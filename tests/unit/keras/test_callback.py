from __future__ import annotations

from contextlib import nullcontext
from itertools import product

import keras
import numpy as np
import pytest
from keras import layers

import tb_pastnet as pastnet
from tb_pastnet import Masks, PastNetCallback
from tb_pastnet.core.quantize import PRECISION
from tb_pastnet.core.statistics import CHANGED, DELTA_NORM, NORM, TRAINABLE
from tb_pastnet.errors import InvalidArgument
from tb_pastnet.keras.steps import BatchCount
from tb_pastnet.record.recording import Recording
from tb_pastnet.record.schedule import Schedule
from tests.recorded import read_lineages, read_one

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(40, 6)).astype("f"), RNG.integers(0, 3, 40)
OPTIMIZERS = {
    "SGD": lambda: keras.optimizers.SGD(0.1, momentum=0.9),
    "Adam": lambda: keras.optimizers.Adam(0.01),
    "AdamW": lambda: keras.optimizers.AdamW(0.01, weight_decay=0.01),
}


def build():
    return keras.Sequential(
        [
            keras.Input((6,)),
            layers.Dense(8, activation="relu"),
            layers.BatchNormalization(),
            layers.Dropout(0.3),
            layers.Dense(3),
        ]
    )


def compiled(optimizer="Adam", **settings):
    keras.utils.set_random_seed(1)
    model = build()
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(OPTIMIZERS[optimizer](), loss, **settings)
    return model


def fit(model, *callbacks, epochs=2, batch_size=4, **settings):
    history = model.fit(
        X, Y, epochs=epochs, batch_size=batch_size, verbose=0, callbacks=list(callbacks), **settings
    )
    return history.history["loss"], [weight.numpy() for weight in model.weights]


@pytest.fixture
def callback(tmp_path):
    made = PastNetCallback(tmp_path, every=1)
    yield made
    made.close()


COMPILED = {"graph": False, "XLA": True}
# The callback reads variables between steps, whichever optimizer moved them. By default, as below, XLA compiles.
NOW = [("SGD", "graph")]


@pytest.mark.promise("failing_internals")
@pytest.mark.parametrize(
    ("optimizer", "how"),
    [
        pair if pair in NOW else pytest.param(*pair, marks=pytest.mark.prove)
        for pair in product(OPTIMIZERS, COMPILED)
    ],
)
def test_training_is_bit_identical(callback, tmp_path, optimizer, how):
    jit = COMPILED[how]
    losses, weights = fit(compiled(optimizer, jit_compile=jit))
    with_losses, with_weights = fit(compiled(optimizer, jit_compile=jit), callback)
    assert with_losses == losses
    assert all((a == b).all() for a, b in zip(weights, with_weights, strict=True))
    callback.close()
    log = read_one(tmp_path)
    assert log.record_steps() == list(range(1, 21))
    assert log.record_past_steps() == list(range(20))
    assert log.last.notes == {}
    assert (log.values("dense/kernel")[:, CHANGED] > 0).any()


# Some versions of Keras say so at the end of an epoch whose last execution is short.
@pytest.mark.filterwarnings("ignore:Your input ran out of data")
def test_executions_of_several_steps(callback, tmp_path):
    # 10 batches an epoch: 4, 4 and 2, though Keras says 4.
    losses, weights = fit(compiled(steps_per_execution=4))
    with_losses, with_weights = fit(compiled(steps_per_execution=4), callback)
    assert with_losses == losses
    assert all((a == b).all() for a, b in zip(weights, with_weights, strict=True))
    callback.close()
    log = read_one(tmp_path)
    assert log.record_steps() == [4, 8, 10, 14, 18, 20]
    assert log.record_past_steps() == [0, 4, 8, 10, 14, 18]


@pytest.mark.parametrize("method", [(BatchCount, "advance"), (Schedule, "passes")])
def test_the_end_has_the_step_of_its_values_though_the_last_call_failed(
    tmp_path, monkeypatch, method
):
    calls, real = iter(range(1, 100)), getattr(*method)

    def failing(self, *arguments):
        if next(calls) == 20:  # the last one, at which no record is due
            raise RuntimeError("injected")
        return real(self, *arguments)

    monkeypatch.setattr(*method, failing)
    model, callback = compiled(), PastNetCallback(tmp_path, every=7)
    fit(model, callback)
    callback.close()
    log = read_one(tmp_path)
    assert log.record_steps()[-1] == 20
    norms = np.linalg.norm(model.layers[0].get_weights()[0], axis=0)
    np.testing.assert_allclose(log.values("dense/kernel")[-1, NORM], norms, rtol=PRECISION)


def test_mixed_precision(callback, tmp_path):
    keras.mixed_precision.set_global_policy("mixed_float16")
    try:
        model = compiled()
        assert isinstance(model.optimizer, keras.optimizers.LossScaleOptimizer)
        fit(model, callback)
        base = callback.recorder.last_step
        fit(model, callback)
    finally:
        keras.mixed_precision.set_global_policy("float32")
    callback.close()
    logs = read_lineages(tmp_path)
    assert base == 20
    assert logs[0].record_steps()[:20] == list(range(1, 21))
    assert logs[0].last.learning_rates.tolist()[-1:] in ([], [pytest.approx(0.01)])


def test_gradient_accumulation_counts_batches(callback, tmp_path):
    keras.utils.set_random_seed(1)
    model = build()
    model.compile(keras.optimizers.SGD(0.1, gradient_accumulation_steps=4), "mse")
    model.fit(X, RNG.normal(size=(40, 3)), batch_size=4, verbose=0, callbacks=[callback])
    assert callback.recorder.last_step == 10
    model.fit(X, RNG.normal(size=(40, 3)), batch_size=4, verbose=0, callbacks=[callback])
    callback.close()
    log = read_one(tmp_path)
    assert log.record_steps() == list(range(1, 21))
    moved = log.values("dense/kernel")[:, CHANGED].max(axis=1) > 0
    assert (np.flatnonzero(moved) + 1).tolist() == [4, 8, 12, 16, 20]


class Fails(keras.callbacks.Callback):
    def __init__(self, at):
        super().__init__()
        self.at = at

    def on_train_batch_begin(self, batch, logs=None):
        if batch == self.at:
            raise MemoryError


def fit_until(at, callback, model):
    """A `fit` that raises before a batch; None: one that doesn't."""
    with nullcontext() if at is None else pytest.raises(MemoryError):
        fit(model, callback, Fails(at), epochs=1)


@pytest.mark.parametrize("end", ["close", "the program"])
@pytest.mark.parametrize(
    ("ends", "closed"), [([3], False), ([3, None], True), ([None, 3], False), ([None, 0], False)]
)
def test_the_end_of_a_run_is_that_of_its_last_fit(callback, tmp_path, ends, closed, end):
    model = compiled()
    for at in ends:
        fit_until(at, callback, model)
    # The program closes the sink only.
    callback.close() if end == "close" else callback.recorder._sink.close(30)
    assert pastnet.read(tmp_path).runs["."].closed is closed


def test_what_is_raised_after_fit_does_not_end_it(callback, tmp_path):
    fit_until(None, callback, compiled())
    try:
        raise MemoryError  # of an evaluation
    except MemoryError:
        callback.close()
    assert pastnet.read(tmp_path).runs["."].closed


def test_each_trial_says_how_its_own_fit_ended(tmp_path):
    callback = PastNetCallback(tmp_path / "{trial}", every=1)
    for at in (3, None, 3, None):
        fit_until(at, callback, compiled())
    callback.close()
    runs = pastnet.read(tmp_path).runs
    assert [runs[name].closed for name in "1234"] == [False, True, False, True]


def test_several_fits_are_one_lineage(callback, tmp_path):
    model = compiled()
    fit(model, callback, epochs=1)
    assert read_one(tmp_path).last.closed
    fit(model, callback, epochs=1)
    callback.close()
    log = read_one(tmp_path)
    assert log.record_steps() == list(range(1, 21))
    assert log.last.closed
    steps = log.tags["timeline"]
    assert steps == sorted(set(steps))


def test_another_model_starts_a_lineage(callback, tmp_path):
    fit(compiled(), callback, epochs=1)
    fit(compiled(), callback, epochs=1)
    callback.close()
    first, second = read_lineages(tmp_path)
    assert first.record_steps() == second.record_steps() == list(range(1, 11))
    assert first.description.origin == second.description.origin


def test_a_replaced_layer_starts_a_run(callback, tmp_path):
    model = compiled()
    fit(model, callback)
    model.pop()
    model.add(layers.Dense(3, name="head"))
    model.compile(model.optimizer.__class__(), model.loss)
    fit(model, callback)
    callback.close()
    first, second = pastnet.read(tmp_path).runs.values()
    assert list(first.layers) == ["dense", "batch_normalization", "dense_1"]
    assert list(second.layers) == ["dense", "batch_normalization", "head"]


@pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")  # in Keras
def test_a_resumed_training_goes_on(tmp_path):
    model = compiled()
    first = PastNetCallback(tmp_path / "run", every=1)
    fit(model, first, epochs=1)
    model.save(tmp_path / "model.keras")
    first.close()
    second = PastNetCallback(tmp_path / "run", every=1)
    fit(keras.models.load_model(tmp_path / "model.keras"), second, epochs=1)
    second.close()
    one, two = read_lineages(tmp_path / "run")
    assert two.record_steps() == list(range(11, 21))
    assert two.record_past_steps() == list(range(10, 20))
    assert two.description.origin == one.description.origin
    assert [v.id for v in two.description.variables] == [v.id for v in one.description.variables]


def test_a_model_that_its_first_batch_builds(callback, tmp_path):
    class Late(keras.Model):
        def __init__(self):
            super().__init__()
            self.dense = layers.Dense(3)

        def call(self, inputs):
            return self.dense(inputs)

    model = Late()
    model.compile("sgd", "mse")
    model.fit(X, np.ones((40, 3)), batch_size=4, verbose=0, callbacks=[callback])
    callback.close()
    log = read_one(tmp_path)
    assert log.record_steps()[-1] == 10
    assert list(log.codes) == ["dense/kernel", "dense/bias"]


def test_a_model_built_after_training_began_is_recorded_from_there(callback, tmp_path):
    model = compiled()
    callback.set_model(model)
    model.built = model.layers[0].built = False
    callback.on_train_begin()
    for batch in range(3):
        callback.on_train_batch_begin(batch)
        model.built = True
        assert batch > 0 or callback.recorder is None
        callback.on_train_batch_end(batch)
    callback.on_epoch_end(0)
    callback.on_train_end()
    callback.close()
    assert read_one(tmp_path).record_steps() == [2, 3]


def test_what_fails_before_a_batch_hurts_no_training(callback, tmp_path, monkeypatch):
    monkeypatch.setattr(Recording, "expect_end", lambda *given: 1 / 0)
    assert len(fit(compiled(), callback)[0]) == 2
    callback.close()
    log = read_one(tmp_path)
    assert log.record_steps() == list(range(1, 21))
    assert list(log.last.notes) == ["Could not make a record: ZeroDivisionError: division by zero"]


def test_a_model_that_cannot_be_recorded_late_is_noted(callback, caplog):
    model = keras.Sequential([keras.Input((6,)), layers.ReLU()])
    callback.set_model(model)
    callback.on_train_begin()
    for batch in range(3):
        callback.on_train_batch_begin(batch)
        callback.on_train_batch_end(batch)
    callback.on_epoch_end(0)
    callback.on_train_end()
    assert callback.recorder is None
    assert [r.message for r in caplog.records if "expected at least one variable" in r.message]


def test_an_optimizer_that_does_not_count(callback, tmp_path):
    model = compiled()
    fit(model, callback, epochs=1)
    model.optimizer = None
    callback.on_train_begin()
    assert callback.recorder.last_step == 10


@pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")  # in Keras
def test_learning_rates_and_chosen_variables(tmp_path):
    def rate(epoch):
        return 0.1 / (1 + epoch)

    callback = PastNetCallback(tmp_path, every=5, variables="dense*/kernel")
    fit(compiled(), callback, keras.callbacks.LearningRateScheduler(rate))
    callback.close()
    log = read_one(tmp_path)
    rates = np.concatenate([timeline.learning_rates for timeline in log.timelines])
    np.testing.assert_allclose(rates, [0.1, 0.1, 0.1, 0.05, 0.05])
    assert list(log.codes) == ["dense/kernel", "dense_1/kernel"]


def test_frozen_layers_do_not_move(tmp_path):
    model = compiled()
    model.layers[0].trainable = False
    model.compile("sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    callback = PastNetCallback(tmp_path, every=1)
    fit(model, callback, epochs=1)
    callback.close()
    log = read_one(tmp_path)
    assert (log.values("dense/kernel")[:, DELTA_NORM] == 0).all()
    assert (log.values("dense/kernel")[:, TRAINABLE] == 0).all()
    assert (log.values("dense_1/kernel")[:, DELTA_NORM] > 0).all()
    assert (log.values("batch_normalization/moving_mean")[:, TRAINABLE] == 1).all()


def test_what_concerns_the_model_is_checked_when_fit_begins(tmp_path):
    callback = PastNetCallback(tmp_path, channel_axis={"nothing": 0})
    with pytest.raises(InvalidArgument, match=r"Could not find variable 'nothing'"):
        fit(compiled(), callback)


def test_a_violation_stops_the_training(tmp_path):
    model = compiled()
    masks = Masks(model, enforce=False)
    masks.freeze("dense/kernel", channels=[0])
    callback = PastNetCallback(tmp_path, every=1, on_violation="stop")
    losses, _ = fit(model, callback, epochs=3)
    assert callback.recorder.last_step == 1
    assert len(losses) == 1
    callback.close()


@pytest.mark.parametrize("verbose", [0, 2])
def test_the_end_of_fit_says_what_was_recorded(tmp_path, capsys, caplog, verbose):
    model = compiled()
    for every, past in ((100, 3), (1, "previous")):
        callback = PastNetCallback(tmp_path / str(every), every=every, past=past)
        model.fit(X, Y, batch_size=8, epochs=1, verbose=verbose, callbacks=[callback])
        callback.close()
    lines = [line for line in capsys.readouterr().out.splitlines() if str(tmp_path) in line]
    # That nothing was recorded is said in any case.
    (none,) = (record.message for record in caplog.records)
    assert none.startswith(f"No record in {tmp_path / '100'}: the training made 5 steps")
    start, end = (
        "PastNet: 5 records; nothing was frozen; no violations, ",
        f"tensorboard --logdir {tmp_path / '1'}",
    )
    whole = [line.startswith(start) and line.endswith(end) for line in lines]
    assert whole == ([True] if verbose else [])


def test_a_probe_has_a_cadence_of_its_own_which_the_log_knows(tmp_path):
    model = compiled()
    callback = PastNetCallback(tmp_path, every=1, probe=X[:4], probe_every=3)
    fit(model, callback, epochs=2)
    callback.close()
    run = pastnet.read(tmp_path).runs["."]
    assert run.steps.tolist() == list(range(1, 21))
    # Nothing is missed where none was due.
    assert run.function.steps.tolist() == [1, 4, 7, 10, 13, 16, 19]
    assert not run.function._series.notes
    assert read_one(tmp_path).description.probe_every == 3
    with pytest.raises(InvalidArgument, match="expected probe_every= a whole number"):
        PastNetCallback(tmp_path, probe_every=0)


def test_what_moves_after_the_last_step_is_in_the_log(tmp_path):
    class Late(keras.callbacks.Callback):
        def on_train_end(self, logs=None):
            kernel = self.model.layers[0].kernel
            kernel.assign_add(keras.ops.ones_like(kernel))

    model = compiled()
    model.layers[0].trainable = False
    model.compile("sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    callback = PastNetCallback(tmp_path, every=2)
    fit(model, Late(), callback, epochs=1)
    run = pastnet.read(tmp_path).runs["."]
    assert {(each.variable, each.first_step) for each in run.violations} == {("dense/kernel", 11)}
    callback.close()


class Best(keras.callbacks.EarlyStopping):
    """The weights of the first epoch are the best."""

    def __init__(self):
        super().__init__("loss", patience=99, mode="max", restore_best_weights=True)


@pytest.mark.parametrize("how", ["average", "best, before", "best, after"])
def test_weights_that_are_put_in_place_at_the_end_are_recorded(how, tmp_path):
    model, trained = compiled(), []
    if how == "average":
        optimizer = keras.optimizers.SGD(0.1, use_ema=True, ema_momentum=0.5)
        model.compile(optimizer, keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    callback = PastNetCallback(tmp_path, every=3)
    see = keras.callbacks.LambdaCallback(
        on_train_batch_end=lambda batch, logs: trained.append(model.layers[0].kernel.numpy())
    )
    others = [] if how == "average" else [Best()]
    fit(model, see, *([callback, *others] if "after" in how else [*others, callback]))
    callback.close()
    run = pastnet.read(tmp_path).runs["."]
    assert run.steps[-2:].tolist() == [20, 21]
    kernel = run.variables["dense/kernel"]
    swap = model.layers[0].kernel.numpy() - trained[kernel.past_steps[-1] - 1]
    np.testing.assert_allclose(
        kernel.delta_norm[-1], np.linalg.norm(swap.astype("f8"), axis=0), rtol=PRECISION
    )
    assert swap.any()
    for name, weight in zip(run.variables, (w.numpy() for w in model.weights), strict=False):
        norm = np.linalg.norm(weight.astype("f8").reshape(-1, weight.shape[-1]), axis=0)
        np.testing.assert_allclose(run.variables[name].norm[-1], norm, PRECISION, 1e-30)


def test_training_that_goes_on_after_averages_continues_at_its_own_steps(callback, tmp_path):
    model, trained = compiled(), []
    optimizer = keras.optimizers.SGD(0.1, use_ema=True, ema_momentum=0.5)
    model.compile(optimizer, keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    fit(model, callback, epochs=1)
    average = model.layers[0].kernel.numpy()
    assert read_one(tmp_path).record_steps() == [*range(1, 12)]
    see = keras.callbacks.LambdaCallback(
        on_train_batch_end=lambda batch, logs: trained.append(model.layers[0].kernel.numpy())
    )
    fit(model, callback, see, epochs=1)
    callback.close()
    run = pastnet.read(tmp_path).runs["."]
    assert run.steps.tolist() == [*range(1, 22)]
    assert (len(run.lineages), run.account.superseded) == (2, 1)
    kernel = run.variables["dense/kernel"]
    assert kernel.past_steps[10] == 10
    np.testing.assert_allclose(
        kernel.delta_norm[10],
        np.linalg.norm(trained[0].astype("f8") - average, axis=0),
        rtol=PRECISION,
    )


def test_a_loop_that_tells_callbacks_nothing_of_itself(tmp_path, caplog):
    model, callback = compiled(), PastNetCallback(tmp_path, every=2)
    callback.set_model(model)
    callback.on_train_begin()
    callback.on_epoch_begin(0)
    for batch in range(5):
        callback.on_train_batch_begin(batch)
        model.train_on_batch(X[:8], Y[:8])
        callback.on_train_batch_end(batch)
    callback.on_epoch_end(0)
    callback.on_train_end()
    callback.close()
    assert pastnet.read(tmp_path).runs["."].steps.tolist() == [1, 2, 4, 5]
    assert caplog.text == ""
