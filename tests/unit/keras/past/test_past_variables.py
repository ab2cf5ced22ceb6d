from __future__ import annotations

import copy
import pickle

import keras
import numpy as np
import pytest
import tensorflow as tf

from tb_pastnet import PastVariables
from tb_pastnet.errors import InvalidArgument


@pytest.fixture
def model():
    return keras.Sequential(
        [keras.Input((4,)), keras.layers.Dense(3), keras.layers.BatchNormalization()]
    )


def move(model):
    for variable in model.weights:
        variable.assign_add(tf.ones(variable.shape))


@pytest.mark.parametrize("compiled", [False, None, True], ids=["eager", "graph", "XLA"])
def test_delta_and_sync(model, compiled):
    shadow = PastVariables(model.weights)
    wrap = (lambda f: f) if compiled is False else tf.function(jit_compile=compiled)
    delta, sync = wrap(shadow.delta), wrap(shadow.sync)
    move(model)
    assert all(np.allclose(d, 1) for d in delta())
    sync()
    assert all((d.numpy() == 0).all() for d in delta())
    move(model)
    move(model)
    assert all(np.allclose(d, 2) for d in delta())


def test_copies_are_not_aliases(model):
    before = [w.numpy().copy() for w in model.weights]
    shadow = PastVariables(model.weights)
    move(model)
    shadow.sync()
    after = [w.numpy().copy() for w in model.weights]
    model.layers[0].kernel.assign_add(tf.ones((4, 3)))
    shadow.past[1].assign_add(tf.ones(3))
    assert (shadow.past[0].numpy() == after[0]).all()
    assert (model.weights[1].numpy() == after[1]).all()
    assert not (before[0] == after[0]).any()


@pytest.mark.parametrize("statistics", [False, True])
def test_a_soft_sync_copies_statistics_unless_it_is_asked_not_to(model, statistics):
    shadow = PastVariables(model.weights)
    past = [p.numpy() for p in shadow.past]
    move(model)
    shadow.sync(tau=0.25, statistics=statistics)
    for variable, old, new in zip(model.weights, past, shadow.past, strict=True):
        share = 1.0 if "moving" in variable.name and not statistics else 0.25
        np.testing.assert_allclose(new, old + share, rtol=1e-6)


def test_what_was_frozen_follows_softly_once_it_trains():
    layer = keras.layers.Dense(2)
    layer.build((None, 3))
    layer.trainable = False
    shadow = PastVariables(layer.variables)
    before = layer.kernel.numpy()
    layer.kernel.assign_add(tf.ones((3, 2)))
    layer.trainable = True
    shadow.sync(tau=0.25)
    np.testing.assert_allclose(shadow.past[0], before + 0.25, rtol=1e-6)


def test_tau_is_as_exact_as_the_variable():
    current = tf.Variable(1.0, dtype=tf.float64)
    shadow = PastVariables([current])
    current.assign(2.0)
    shadow.sync(tau=0.005)
    assert shadow.past[0].numpy() == 0.005 * 2.0 + 0.995 * 1.0


def test_tau_may_be_a_tensor_inside_a_function():
    weight, count = tf.Variable([2.0, 4.0]), tf.Variable(7)
    shadow = PastVariables([weight, count])

    @tf.function
    def step(tau):
        weight.assign([4.0, 8.0])
        count.assign(8)
        shadow.sync(tau)

    step(tf.constant(0.5))
    assert shadow.past[0].numpy().tolist() == [3, 6]
    assert shadow.past[1].numpy() == 8


def test_names_and_gradients(model):
    shadow = PastVariables({"a/b": model.weights[0]})
    assert shadow.past[0].name == "past/a/b:0"
    assert not shadow.past[0].trainable
    assert PastVariables(model.weights[:1]).past[0].name.startswith("past/")
    assert len(model.weights) == 6


def test_a_half_keeps_its_dtype():
    weight = tf.Variable([1.0], dtype=tf.bfloat16)
    shadow = PastVariables([weight])
    shadow.sync(0.5)
    assert shadow.past[0].dtype == tf.bfloat16
    assert shadow.delta()[0].dtype == tf.bfloat16


@pytest.mark.parametrize("compiled", [False, None, True], ids=["eager", "graph", "XLA"])
def test_a_step_keeps_the_values_from_before_it(model, compiled):
    shadow = PastVariables(model.weights)
    wrap = (lambda f: f) if compiled is False else tf.function(jit_compile=compiled)

    def step():
        with shadow.step():
            inside = shadow.values()
            move(model)
        return inside

    run = wrap(step)
    for _ in range(3):
        before = [weight.numpy() for weight in model.weights]
        inside = run()
        for value, past, expected in zip(inside, wrap(shadow.values)(), before, strict=True):
            np.testing.assert_array_equal(past, expected)
            np.testing.assert_array_equal(value, expected)
        assert all(np.allclose(delta, 1) for delta in wrap(shadow.delta)())


def test_gradients_go_to_the_current_variables_alone():
    weight = tf.Variable([1.0, 2.0])
    shadow = PastVariables([weight])
    weight.assign([4.0, 4.0])
    with tf.GradientTape(persistent=True) as tape:
        near = tf.reduce_sum(shadow.delta()[0] ** 2)
        past = tf.reduce_sum(shadow.values()[0] ** 2)
    assert tape.gradient(near, weight).numpy().tolist() == [6, 4]
    assert tape.gradient(past, [weight, *shadow.past]) == [None, None]


def test_what_it_takes_and_of_which_variables():
    weights = {
        "a": tf.Variable(tf.zeros((3, 5))),
        "b": tf.Variable(tf.zeros(7, tf.float16)),
        "c": tf.Variable([True, False]),
    }
    shadow = PastVariables(weights)
    assert shadow.nbytes == 4 * 15 + 2 * 7 + 2
    assert shadow.handles == {id(weight.handle) for weight in weights.values()}
    with shadow.standing_in() as handles:
        expected = [id(past.handle) for past in shadow.past]
        assert [id(handle) for handle in handles.values()] == expected
        assert handles.keys() == shadow.handles
    assert [past.name for past in shadow.past] == ["past/a:0", "past/b:0", "past/c:0"]


def test_the_delta_of_bools_is_where_they_differ():
    mask = tf.Variable([True, False, True])
    shadow = PastVariables([mask])
    mask.assign([True, True, False])
    assert shadow.delta()[0].numpy().tolist() == [False, True, True]


def test_it_is_a_module_of_its_copies_alone(model):
    shadow = PastVariables(model.weights)
    assert [id(one) for one in shadow.variables] == [id(one) for one in shadow.past]
    assert shadow.trainable_variables == ()
    weights, variables = len(model.weights), len(model.variables)
    model.shadow = shadow
    assert (len(model.weights), len(model.variables)) == (weights, variables)
    assert len(model.get_weights()) == weights


def test_a_checkpoint_holds_the_copies_alone(model, tmp_path):
    shadow = PastVariables(model.weights)
    past = [value.numpy() for value in shadow.values()]
    move(model)
    path = tf.train.Checkpoint(past=shadow).write(str(tmp_path / "past"))
    names = [name for name, _ in tf.train.list_variables(path) if "CHECKPOINTABLE" not in name]
    assert sorted(names) == [f"past/past/{n}/.ATTRIBUTES/VARIABLE_VALUE" for n in range(6)]
    # As in a new process: another model, made anew.
    other = keras.models.clone_model(model)
    current = other.get_weights()
    fresh = PastVariables(other.weights)
    tf.train.Checkpoint(past=fresh).read(path).assert_consumed()
    for found, expected in zip(fresh.values(), past, strict=True):
        np.testing.assert_array_equal(found, expected)
    for found, expected in zip(other.get_weights(), current, strict=True):
        np.testing.assert_array_equal(found, expected)


def test_wrong_use_is_refused():
    with pytest.raises(InvalidArgument, match=r"expected at least one variable, got none"):
        PastVariables([])
    with pytest.raises(
        InvalidArgument, match=r"Could not make a past variable of 0: expected a keras"
    ):
        PastVariables([np.ones(3)])
    shadow = PastVariables([tf.Variable(1.0)])
    for tau in (-0.1, 1.5, 2, np.float32(5), np.int64(3), None, "1", True, tf.ones(2)):
        with pytest.raises(
            InvalidArgument, match=r"expected tau from 0 to 1, or a scalar tensor, got"
        ):
            shadow.sync(tau)


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda value: pickle.loads(pickle.dumps(value))])
def test_a_copy_along_with_its_variables(copied):
    weight = tf.Variable([1.0, 2.0])
    shadow = PastVariables([weight])
    agent = copied({"weight": weight, "past": shadow})
    agent["weight"].assign([5.0, 5.0])
    agent["past"].sync()
    assert agent["past"].past[0].numpy().tolist() == [5, 5]
    assert shadow.past[0].numpy().tolist() == [1, 2]


@pytest.mark.parametrize("copied", [copy.deepcopy, pickle.dumps])
def test_a_copied_model_would_not_be_followed(model, copied):
    text = "expected those of tf.Variables, got the past of '.*kernel', a Keras variable. Make Past"
    with pytest.raises(InvalidArgument, match=text):
        copied({"model": model, "past": PastVariables(model.variables)})
