"""Held weights where training is more than an optimizer: fit, XLA, mixed precision, sparse, NaN."""

from __future__ import annotations

import keras
import numpy as np
import pytest
import tensorflow as tf

import tb_pastnet as pastnet
from tests.masked import bits, data, free, gradients, held_bits, masks_on, network, values

FITS = {
    "graph": {"jit_compile": False},
    "eager": {"run_eagerly": True},
    "xla": {"jit_compile": True},
    "steps_per_execution": {"jit_compile": False, "steps_per_execution": 4},
    "xla_in_executions": {"jit_compile": True, "steps_per_execution": 4},
}


# What the last is made of comes before it.
@pytest.mark.parametrize("how", [*[*FITS][:4], pytest.param([*FITS][4], marks=pytest.mark.prove)])
def test_fit_holds(how):
    """Also with slots that the first step makes."""
    model = network(
        optimizer=keras.optimizers.SGD(0.05, momentum=0.9, weight_decay=0.1),
        built=how not in ("graph", "xla"),
        **FITS[how],
    )
    masks = masks_on(model)
    before, held, through = values(model), held_bits(model, masks), free(masks)
    model.fit(*data(32), batch_size=8, epochs=2 if how == "eager" else 6, verbose=0)
    assert held_bits(model, masks) == held
    assert all((values(model)[name] != before[name])[t].all() for name, t in through.items())


def test_loss_scaling_of_mixed_precision():
    before = keras.mixed_precision.dtype_policy()
    keras.mixed_precision.set_dtype_policy("mixed_float16")
    try:
        model = network(optimizer=keras.optimizers.AdamW(0.05, weight_decay=0.1))
    finally:
        keras.mixed_precision.set_dtype_policy(before)
    masks = masks_on(model)
    held = held_bits(model, masks)
    model.fit(*data(32), batch_size=8, epochs=6, verbose=0)
    assert isinstance(model.optimizer, keras.optimizers.LossScaleOptimizer)
    # The first steps overflow, until the scale is halved often enough.
    assert 14 < int(model.optimizer.inner_optimizer.iterations) <= 24
    assert held_bits(model, masks) == held


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64"])
def test_other_dtypes(dtype):
    model = keras.Sequential([keras.Input((6,)), keras.layers.Dense(5, dtype=dtype)])
    model.compile(keras.optimizers.SGD(0.05, momentum=0.9, weight_decay=0.1), "mse")
    masks = pastnet.Masks(model)
    masks.prune("kernel", channels=[0])
    masks.freeze("kernel", channels=[1])
    before = model.get_weights()[0]
    x, _ = data(32)
    model.fit(x, x[:, :5], batch_size=8, epochs=5, verbose=0)
    after = model.get_weights()[0]
    assert bits(after[:, :2]) == bits(before[:, :2])
    assert (after[:, 2:] != before[:, 2:]).all()


@pytest.mark.parametrize("name", ["SGD", "Adam", "Adagrad", "Ftrl"])
def test_sparse_gradients_of_an_embedding(name):
    """Rows are channels; a step's gradient is of the rows that it looked up."""

    def looked_up(optimizer, after_step):
        keras.utils.set_random_seed(0)
        table = keras.layers.Embedding(8, 3)
        model = keras.Sequential([keras.Input((4,), dtype="int32"), table])
        after_step = after_step(model, optimizer)

        @tf.function
        def step(rows):
            with tf.GradientTape() as tape:
                loss = tf.reduce_sum(model(rows) ** 2)
            gradient = tape.gradient(loss, table.trainable_variables)
            assert isinstance(gradient[0], tf.IndexedSlices)
            optimizer.apply(gradient, table.trainable_variables)

        generator = np.random.default_rng(0)
        for _ in range(24):
            step(tf.constant(generator.integers(0, 7, (5, 4))))
            after_step()
        return table.get_weights()[0]

    through = np.ones((8, 3), bool)
    through[[0, 2], :], through[3, 1], through[4, 2] = False, False, False
    start = {}

    def ours(model, optimizer):
        masks = pastnet.Masks(model, optimizer)
        masks.prune("embeddings", channels=[0])
        masks.freeze("embeddings", trainable=through | (np.arange(8) == 0)[:, None])
        start["values"] = model.get_weights()[0]
        return lambda: None

    def stock(model, _):
        table = model.layers[0]
        table.set_weights([start["values"]])
        return lambda: table.set_weights(
            [np.where(through, table.get_weights()[0], start["values"])]
        )

    make = getattr(keras.optimizers, name)
    got = looked_up(make(0.05), ours)
    want = looked_up(make(0.05), stock)
    assert bits(got[~through]) == bits(start["values"][~through])
    assert not got[0].any()
    assert bits(got) == bits(want)


NOT_FINITE = {"SGD": np.nan, "Adam": np.inf, "Lion": -np.inf}


# Where is one way for all of them: what is put at held places depends neither on values nor on optimizers.
@pytest.mark.parametrize(
    ("name", "bad"),
    [
        pytest.param(name, bad, marks=[pytest.mark.prove] * (bad is not own))
        for name, own in NOT_FINITE.items()
        for bad in NOT_FINITE.values()
    ],
)
def test_gradients_that_are_not_finite_at_held_places(name, bad):
    """They reach neither the held weight, nor a norm, nor a slot."""
    optimizer = getattr(keras.optimizers, name)(0.05, global_clipnorm=1.0)
    model = network(optimizer=optimizer)
    masks = masks_on(model)
    held, through = held_bits(model, masks), free(masks)
    for given in gradients(5):
        spoilt = [tf.where(t, g, bad) for t, g in zip(through.values(), given, strict=True)]
        optimizer.apply(spoilt, model.trainable_variables)
    assert held_bits(model, masks) == held
    assert all(np.isfinite(value).all() for value in values(model).values())
    assert all(np.isfinite(slot).all() for slot in map(np.asarray, optimizer.variables))


def test_held_values_that_are_not_finite_stay_and_do_not_spread():
    model = network(optimizer=keras.optimizers.SGD(0.05, momentum=0.9, weight_decay=0.1))
    kernel = values(model)["two/kernel"].copy()
    kernel[0, 0], kernel[1, 0], kernel[2, 0], kernel[3, 1] = np.nan, np.inf, -0.0, np.nan
    model.layers[1].kernel.assign(kernel)
    masks = pastnet.Masks(model)
    masks.freeze("two/kernel", channels=[0])
    masks.prune("two/kernel", kept=~np.isnan(kernel) | (np.arange(3) == 0))
    held = held_bits(model, masks)
    for given in gradients(20):
        model.optimizer.apply(given, model.trainable_variables)
    assert held_bits(model, masks) == held
    got = values(model)["two/kernel"]
    assert bits(got[:, 0]) == bits(kernel[:, 0])
    assert bits(got[3, 1]) == bits(np.float32(0))
    assert np.isfinite(got[:, 1:]).all()


def test_a_variable_that_gets_no_gradient_in_a_step_is_held_as_well():
    """An average that overwrites writes every variable that the optimizer knows."""
    optimizer = keras.optimizers.SGD(0.05, use_ema=True, ema_overwrite_frequency=1)
    model = network(optimizer=optimizer)
    masks = pastnet.Masks(model)
    masks.freeze("one/kernel", channels=[0, 1])
    optimizer.apply(gradients(1)[0], model.trainable_variables)
    model.set_weights([value + 1 for value in model.get_weights()])
    before = values(model)["one/kernel"]
    for given in gradients(5):
        optimizer.apply(given[2:], model.trainable_variables[2:])
    after = values(model)["one/kernel"]
    assert bits(after[:, :2]) == bits(before[:, :2])
    assert (after[:, 2:] != before[:, 2:]).all()


@pytest.mark.parametrize("how", ["apply", "apply_gradients", "known"])
def test_an_own_loop(how):
    optimizer = keras.optimizers.AdamW(0.05, weight_decay=0.1)
    model = network()
    optimizer.build(model.trainable_variables)
    masks = masks_on(model, optimizer)
    held = held_bits(model, masks)
    x, y = map(tf.constant, data())

    @tf.function
    def steps(count):
        for _ in tf.range(count):
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean((model(x, training=True) - y) ** 2)
            given = tape.gradient(loss, model.trainable_variables)
            if how == "apply":
                optimizer.apply(given, model.trainable_variables)
            elif how == "known":
                optimizer.apply(given)
            else:
                optimizer.apply_gradients(zip(given, model.trainable_variables, strict=True))

    before = values(model)
    steps(tf.constant(100))
    assert held_bits(model, masks) == held
    assert all((values(model)[name] != before[name])[t].all() for name, t in free(masks).items())


def test_errors_of_keras_stay_its_own():
    optimizer = keras.optimizers.SGD()
    model = network()
    masks_on(model, optimizer)
    with pytest.raises(ValueError, match="the optimizer must already be built"):
        optimizer.apply(gradients(1)[0])
    optimizer.build(model.trainable_variables)
    with pytest.raises(ValueError, match="Received a list of 2 gradients"):
        optimizer.apply(gradients(1)[0][:2])
    optimizer.apply([])
    with pytest.raises(ValueError, match="No gradients provided for any variable"):
        optimizer.apply([None] * 4, model.trainable_variables)


def test_two_optimizers_in_one():
    if not hasattr(keras.optimizers, "MultiOptimizer"):
        pytest.skip(f"Keras {keras.__version__} has no MultiOptimizer")
    slow = keras.optimizers.SGD(0.05, momentum=0.9, use_ema=True, ema_overwrite_frequency=2)
    table = keras.optimizers.OptimizerMap(keras.optimizers.AdamW(0.05), {".*two/.*": slow})
    model = network(optimizer=keras.optimizers.MultiOptimizer(table))
    masks = masks_on(model)
    held = held_bits(model, masks)
    model.fit(*data(32), batch_size=8, epochs=5, verbose=0)
    assert held_bits(model, masks) == held
    averages = [np.asarray(average) for average in slow._model_variables_moving_average]
    assert bits(averages[0][:, [0, 2]]) == bits(values(model)["two/kernel"][:, [0, 2]])


MIRRORED = """
import keras, tensorflow as tf
from tests import masked

def optimizer():
    if name == "SGD":
        return keras.optimizers.SGD(0.05, momentum=0.9, weight_decay=0.1)
    inner = keras.optimizers.AdamW(0.05, global_clipnorm=0.1, use_ema=True)
    return keras.optimizers.LossScaleOptimizer(inner)

def fit():
    model.fit(*masked.data(8), batch_size=8, epochs=9, verbose=0)

def check():
    assert masked.held_bits(model, masks) == held
    for variable in model.trainable_variables:
        one, other = (replica.numpy() for replica in variable.value.values)
        assert one.tobytes() == other.tobytes()

with strategy.scope():
    model = masked.network(optimizer=optimizer())
masks = masked.masks_on(model)
held, before, through = masked.held_bits(model, masks), masked.values(model), masked.free(masks)
fit()
check()
assert all((masked.values(model)[n] != before[n])[through[n]].any() for n in through)
with strategy.scope():
    model.compile(optimizer(), "mse")
fit()
check()
masks.prune("one/kernel", channels=[2])
held = masked.held_bits(model, masks)
fit()
check()
assert not model.layers[0].kernel.numpy()[:, 2].any()
print("held")
"""


@pytest.mark.parametrize("name", ["AdamW", pytest.param("SGD", marks=pytest.mark.prove)])
def test_mirrored_on_two_devices(two_devices, name):
    """Not: averages that overwrite, accumulation, XLA and executions, where Keras 3.15 fails itself."""
    assert two_devices.run(MIRRORED, name=name).split()[-1] == "held"


def test_what_is_pruned_before_averages_are_written_is_zero_after_them():
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(8), keras.layers.Dense(1)])
    masks = pastnet.Masks(model)  # they don't know the optimizer yet
    model.compile(keras.optimizers.SGD(0.1, use_ema=True), "mse")
    x = np.random.default_rng(0).normal(size=(16, 4)).astype("f")
    prune = keras.callbacks.LambdaCallback(
        on_train_batch_end=lambda batch, logs: batch == 3 and masks.prune_smallest(0.5)
    )
    model.fit(x, x[:, :1], batch_size=4, verbose=0, callbacks=[prune])  # writes averages at its end
    assert masks.sparsity() == masks.zeros() == 0.5


def test_regrown_weights_have_fresh_slots_of_an_optimizer_compiled_later():
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(8), keras.layers.Dense(1)])
    masks = pastnet.Masks(model)
    model.compile("adam", "mse")
    x = np.random.default_rng(0).normal(size=(16, 4)).astype("f")
    model.fit(x, x[:, :1], batch_size=4, verbose=0)
    masks.prune("dense/kernel", channels=[0])
    masks.regrow("dense/kernel")
    shape = tuple(model.layers[0].kernel.shape)
    for slot in model.optimizer.variables:
        if tuple(slot.shape) == shape:
            assert not slot.numpy()[:, 0].any()
            assert slot.numpy()[:, 1].all()
