from __future__ import annotations

import inspect

import keras
import numpy as np
import pytest
import tensorflow as tf

from tb_pastnet import MaskedDense, Masks, Snapshot
from tb_pastnet.errors import InvalidArgument

X = np.random.default_rng(0).normal(size=(32, 6)).astype(np.float32)
Y = (X[:, 0] > 0).astype(np.int32)


def network(optimizer="adam"):
    keras.utils.set_random_seed(0)
    model = keras.Sequential(
        [
            keras.Input((6,)),
            keras.layers.Dense(8, activation="relu"),
            keras.layers.BatchNormalization(),
            keras.layers.Dense(2),
        ]
    )
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(keras.optimizers.get(optimizer), loss)
    # Slots that the first step makes would have it traced twice: another optimizer below has such.
    model.optimizer.build(model.trainable_variables)
    return model


def train(model, epochs=2):
    return model.fit(X, Y, batch_size=8, epochs=epochs, verbose=0, shuffle=False)


def values(model):
    return [variable.numpy() for variable in model.variables]


def slots(model):
    return [variable.numpy() for variable in model.optimizer.variables]


def test_surviving_weights_are_those_of_the_snapshot():
    model = network()
    masks = Masks(model)
    train(model)
    snapshot = masks.snapshot()
    at_snapshot = dict(zip(masks.kept, values(model), strict=True))
    train(model)
    masks.prune_smallest(0.5)
    masks.freeze("dense_1/kernel", channels=[1])
    frozen = model.layers[2].kernel.numpy()
    train(model)
    done = masks.rewind(snapshot)
    for name, value in zip(masks.kept, values(model), strict=True):
        kept, trainable = masks.kept[name], masks.trainable[name]
        free = kept & trainable
        assert (value[free] == at_snapshot[name][free]).all(), name
        assert (value[~kept] == 0).all(), name
    held = masks.kept["dense_1/kernel"] & ~masks.trainable["dense_1/kernel"]
    assert held.any()
    assert (model.layers[2].kernel.numpy()[held] == frozen[held]).all()
    total = sum(one.size for one in (*masks.kept.values(),))
    counted = sum(int((masks.kept[n] & masks.trainable[n]).sum()) for n in masks.kept)
    statistics = 2 * 8
    assert done.weights == counted - statistics
    assert done.held == total - counted
    assert done.statistics == 2
    assert done.step == (24, 8)


def test_without_masks_training_repeats_itself_bit_by_bit():
    model = network()
    masks = Masks(model)
    train(model, 1)
    snapshot = masks.snapshot()
    first = train(model).history["loss"]
    end = values(model)
    assert masks.rewind(snapshot).slots == "snapshot"
    assert train(model).history["loss"] == first
    for one, other in zip(values(model), end, strict=True):
        np.testing.assert_array_equal(one, other)


def test_slots_of_pruned_weights_are_zero():
    model = network()
    masks = Masks(model)
    train(model)
    snapshot = masks.snapshot()
    masks.prune("dense/kernel", channels=[2])
    masks.rewind(snapshot)
    found = [one for one in slots(model) if one.shape == (6, 8)]
    assert len(found) == 2
    for slot in found:
        assert (slot[:, 2] == 0).all()
        assert (slot[:, 3] != 0).any()


def test_another_optimizer_starts_with_zero_slots():
    model = network("adam")
    masks = Masks(model)
    train(model)
    snapshot = masks.snapshot()
    model.compile(keras.optimizers.SGD(0.1, momentum=0.9), model.loss)
    train(model)
    assert masks.rewind(snapshot).slots == "initial"
    assert all((one == 0).all() for one in slots(model) if one.ndim)
    assert int(model.optimizer.iterations.numpy()) == snapshot.step


def test_the_learning_rate_alone():
    rate = keras.optimizers.schedules.PiecewiseConstantDecay([4], [0.1, 0.001])
    model = network(keras.optimizers.SGD(rate))
    masks = Masks(model)
    snapshot = masks.snapshot()
    train(model)
    before = values(model)
    assert float(model.optimizer.learning_rate) == pytest.approx(0.001)
    done = masks.rewind(snapshot, "learning_rate")
    assert float(model.optimizer.learning_rate) == pytest.approx(0.1)
    assert (done.weights, done.slots, done.step) == (0, "kept", (8, 0))
    for one, other in zip(values(model), before, strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_learning_rate_that_a_callback_lowered_goes_back():
    model = network(keras.optimizers.SGD(0.5))
    masks = Masks(model)
    train(model, 1)
    snapshot = masks.snapshot()
    model.optimizer.learning_rate = 0.01
    masks.rewind(snapshot, "learning_rate")
    assert float(model.optimizer.learning_rate) == 0.5


def test_a_snapshot_goes_through_a_file(tmp_path):
    model = network()
    masks = Masks(model)
    train(model)
    snapshot = masks.snapshot()
    snapshot.save(tmp_path / "a.npz")
    back = Snapshot.load(tmp_path / "a.npz")
    assert (back.step, back.origin) == (snapshot.step, masks.state.origin)
    assert list(back.weights) == list(snapshot.weights)
    for name, value in snapshot.weights.items():
        np.testing.assert_array_equal(back.weights[name], value)
    ((kind, loaded),), ((_, taken),) = back.optimizers, snapshot.optimizers
    assert kind == "Adam"
    for one, other in zip(loaded, taken, strict=True):
        np.testing.assert_array_equal(one, other)
        assert one.dtype == other.dtype


def test_a_new_process_goes_on_from_a_file(tmp_path):
    model = network()
    model.compile(keras.optimizers.Adam(0.01), model.loss)
    train(model, 1)
    Masks(model).snapshot().save(tmp_path / "a.npz")
    first = train(model).history["loss"]
    other = network()
    other.compile(keras.optimizers.Adam(0.5), other.loss)
    assert Masks(other).rewind(Snapshot.load(tmp_path / "a.npz")).slots == "snapshot"
    assert train(other).history["loss"] == first


def test_a_class_without_a_configuration_is_refused_before_anything_changes():
    class Own(keras.optimizers.Ftrl):
        def __init__(self, rate, *, needed):
            super().__init__(rate)

    model = network()
    model.compile(Own(0.1, needed=1), model.loss)
    masks = Masks(model)
    snapshot = masks.snapshot()
    train(model, 1)
    before = values(model)
    with pytest.raises(InvalidArgument, match="the slots of Own: expected a class with get_config"):
        masks.rewind(snapshot)
    for one, other in zip(values(model), before, strict=True):
        np.testing.assert_array_equal(one, other)
    assert float(model.optimizer.learning_rate) == pytest.approx(0.1)


def test_a_schedule_without_a_configuration_starts_anew():
    class Halved(keras.optimizers.schedules.LearningRateSchedule):
        def __call__(self, step):
            return 0.1 / (1.0 + tf.cast(step, tf.float32))

    model = network()
    model.compile(keras.optimizers.Adagrad(Halved()), model.loss)
    masks = Masks(model)
    snapshot = masks.snapshot()
    first = train(model).history["loss"]
    assert masks.rewind(snapshot).slots == "initial"
    assert train(model).history["loss"] == first


def test_a_snapshot_is_a_copy():
    model = network()
    masks = Masks(model)
    snapshot = masks.snapshot()
    before = snapshot.weights["dense/kernel"].copy()
    train(model)
    np.testing.assert_array_equal(snapshot.weights["dense/kernel"], before)


def test_what_cannot_be_rewound(tmp_path):
    model = network()
    masks = Masks(model)
    snapshot = masks.snapshot()
    with pytest.raises(
        InvalidArgument, match=r"expected what= 'weights' or 'learning_rate', got 'lr'"
    ):
        masks.rewind(snapshot, "lr")
    with pytest.raises(InvalidArgument, match=r"expected a Snapshot, got dict\. Take one with"):
        masks.rewind({})
    other = keras.Sequential([keras.Input((6,)), keras.layers.Dense(9)])
    other.compile("sgd", "mse")
    with pytest.raises(
        InvalidArgument, match=r"Could not rewind 'dense/kernel': expected shape \(6, 8\) as in"
    ):
        masks.rewind(Masks(other).snapshot())
    (tmp_path / "text").write_text("no snapshot")
    with pytest.raises(InvalidArgument, match=r"expected a file written by Snapshot\.save"):
        Snapshot.load(tmp_path / "text")


def test_slots_of_one_optimizer_are_not_those_of_another():
    model = network(keras.optimizers.SGD(0.1, momentum=0.9))
    masks = Masks(model)
    train(model)
    snapshot = masks.snapshot()
    model.compile(keras.optimizers.RMSprop(0.01), model.loss)  # its slots have the same shapes
    train(model)
    done = masks.rewind(snapshot)
    assert done.slots == "initial"
    assert not any(value.any() for value in slots(model)[2:])
    assert np.isfinite(train(model).history["loss"]).all()


def test_a_layer_that_came_later_is_in_the_next_snapshot():
    model = network()
    masks = Masks(model)
    model.add(keras.layers.Dense(2, name="late"))
    snapshot = masks.snapshot()
    kernel = model.layers[-1].kernel
    before = kernel.numpy()
    kernel.assign(before + 1)
    masks.rewind(snapshot)
    np.testing.assert_array_equal(kernel.numpy(), before)


OPTIMIZERS = [
    each
    for each in vars(keras.optimizers).values()
    if isinstance(each, type) and "learning_rate" in inspect.signature(each).parameters
    if each is not keras.optimizers.Optimizer
]


@pytest.mark.parametrize("optimizer", OPTIMIZERS, ids=lambda each: each.__name__)
def test_slots_that_a_snapshot_does_not_have_get_their_initial_values(optimizer):
    weight = keras.Variable(np.ones((3, 2), np.float32), name="kernel")
    own, fresh = (optimizer(0.05, use_ema=True) for _ in range(2))
    fresh.build([weight])
    masks = Masks({"kernel": weight}, optimizer=own)
    snapshot = masks.snapshot()
    own.apply([tf.ones((3, 2))], [weight])
    own.learning_rate = 0.001
    assert masks.rewind(snapshot).slots == "initial"
    for one, other in zip(own.variables, fresh.variables, strict=True):
        np.testing.assert_array_equal(one.numpy(), other.numpy())


@pytest.mark.parametrize("optimizer", ["sgd", "ftrl"])
def test_a_snapshot_from_before_the_first_step_repeats_the_training(optimizer):
    model = network("sgd")
    model.compile(optimizer, model.loss)
    masks = Masks(model)
    snapshot = masks.snapshot()
    first = train(model).history["loss"]
    # A plain SGD has no slots.
    assert masks.rewind(snapshot).slots == ("initial" if optimizer == "ftrl" else "snapshot")
    assert train(model).history["loss"] == first


def test_the_parts_of_a_multi_optimizer_go_back():
    if not hasattr(keras.optimizers, "MultiOptimizer"):
        pytest.skip(f"Keras {keras.__version__} has no MultiOptimizer")
    slow = keras.optimizers.SGD(0.05, momentum=0.9)
    table = keras.optimizers.OptimizerMap(keras.optimizers.Ftrl(0.05), {".*dense_1/.*": slow})
    model = network("sgd")
    model.compile(keras.optimizers.MultiOptimizer(table), model.loss)
    masks = Masks(model)
    for slots in ("initial", "snapshot"):
        snapshot = masks.snapshot()
        first = train(model).history["loss"]
        slow.learning_rate = 0.001
        assert masks.rewind(snapshot).slots == slots
        assert train(model).history["loss"] == first


class Pair(keras.Model):
    """Trains two layers with an optimizer each."""

    def __init__(self):
        super().__init__()
        keras.utils.set_random_seed(0)
        self.layer_a, self.layer_b = keras.layers.Dense(4), keras.layers.Dense(2)
        self.adam, self.ftrl = keras.optimizers.Adam(0.1), keras.optimizers.Ftrl(0.1)

    def call(self, inputs):
        return self.layer_b(self.layer_a(inputs))

    def train_step(self, data):
        with tf.GradientTape(persistent=True) as tape:
            loss = tf.reduce_mean(self(data[0]) ** 2)
        for layer, optimizer in ((self.layer_a, self.adam), (self.layer_b, self.ftrl)):
            variables = layer.trainable_variables
            optimizer.apply(tape.gradient(loss, variables), variables)
        return {"loss": loss}


@pytest.mark.parametrize("built", [True, False])
def test_all_optimizers_of_a_model_go_back(built):
    model = Pair()
    model.compile()
    model(X)
    masks = Masks(model)
    if built:
        train(model, 1)
    snapshot = masks.snapshot()
    assert snapshot.step == 4 * built
    first = train(model).history["loss"]
    done = masks.rewind(snapshot)
    assert done.step == (8 + 4 * built, 4 * built)
    assert done.slots == ("snapshot" if built else "initial")
    assert train(model).history["loss"] == first


def test_the_given_optimizer_goes_back_and_not_the_compiled_one():
    model = network("sgd")
    own = keras.optimizers.Adam(0.01)
    masks = Masks(model, optimizer=own)
    own.apply([tf.ones_like(each) for each in model.trainable_variables], model.trainable_variables)
    snapshot = masks.snapshot()
    before = [variable.numpy() for variable in own.variables]
    own.apply([tf.ones_like(each) for each in model.trainable_variables], model.trainable_variables)
    assert masks.rewind(snapshot).step == (2, 1)
    for variable, value in zip(own.variables, before, strict=True):
        np.testing.assert_array_equal(variable.numpy(), value)


def test_without_an_optimizer_no_slots_are_set():
    layer = keras.layers.Dense(2)
    layer.build((None, 3))
    masks = Masks(layer)
    snapshot = masks.snapshot()
    assert masks.rewind(snapshot) == (8, 0, 0, "kept", (0, 0))


def test_layers_that_own_their_masks_go_back():
    model = keras.Sequential([keras.Input((6,)), MaskedDense(4, name="own")])
    model.compile("adam", "mse")
    masks = Masks(model)
    kernel = model.layers[0].masked_weight("kernel")
    before = kernel.numpy()
    snapshot = masks.snapshot()
    kernel.freeze(np.arange(24).reshape(6, 4) % 2)
    model.fit(X, np.ones((32, 4)), verbose=0)
    assert (kernel.numpy() != before).any()
    masks.rewind(snapshot)
    np.testing.assert_array_equal(kernel.numpy(), before)


def test_matrices_of_lora_go_back():
    model = network()
    model.layers[0].enable_lora(2)
    model.compile("adam", model.loss)
    masks = Masks(model)
    snapshot = masks.snapshot()
    train(model)
    masks.rewind(snapshot)
    for weight, value in zip(masks.state.weights.values(), snapshot.weights.values(), strict=True):
        np.testing.assert_array_equal(weight.read(), value)


def test_bfloat16_goes_through_a_file(tmp_path):
    layer = keras.layers.Dense(2, dtype="bfloat16")
    layer.build((None, 3))
    masks = Masks(layer)
    kernel = layer.kernel.numpy()
    masks.snapshot().save(tmp_path / "a.npz")
    layer.kernel.assign(tf.zeros_like(layer.kernel))
    masks.rewind(Snapshot.load(tmp_path / "a.npz"))
    np.testing.assert_array_equal(layer.kernel.numpy(), kernel)
