"""Networks that a MirroredStrategy keeps on two devices."""

from __future__ import annotations

import pytest

SETUP = """
import warnings
import keras
import numpy as np
import tensorflow as tf
from keras import layers
from tb_pastnet import PastNetwork, PastVariables
from tb_pastnet.errors import InvalidArgument

keras.utils.set_random_seed(1)

def make():
    return keras.Sequential([keras.Input((3,)), layers.Dense(2), layers.BatchNormalization()])

with strategy.scope():
    model = make()
twin = make()
twin.set_weights(model.get_weights())
x = tf.constant(np.random.default_rng(0).normal(size=(4, 3)), tf.float32)

@tf.function
def replicas(x, training=False):
    return strategy.run(lambda x: (past(x, training=training), model(x)), args=(x,))

def local(value):
    return [one.numpy() for one in strategy.experimental_local_results(value)]

def moved():
    for variable in model.trainable_variables:
        variable.assign(variable.numpy() + 1)

def refuses(call, text):
    try:
        call()
    except InvalidArgument as error:
        assert text in str(error), error
    else:
        raise AssertionError(text)
"""
CASES = {
    "each replica calls the past": """
past = PastNetwork(model)
assert len(past.past.past) == 6 and past.nbytes == 4 * (6 + 2 + 8)
expected = twin(x).numpy()
moved()
for old, new in zip(*map(local, replicas(x))):
    np.testing.assert_array_equal(old, expected)
    np.testing.assert_array_equal(new, model(x))
    assert not np.array_equal(old, new)
np.testing.assert_array_equal(past(x), expected)
past.sync()
for old, new in zip(*map(local, replicas(x))):
    np.testing.assert_array_equal(old, new)
with strategy.scope():  # neither in a replica, nor outside
    moved()
    now = model(x).numpy()
    assert not np.array_equal(past(x), now)
    past.sync()
    np.testing.assert_array_equal(past(x), now)
    past(x, training=True)
np.testing.assert_array_equal(model(x), now)
""",
    "a fit that looks at the past": """
class Model(keras.Model):
    def __init__(self):
        super().__init__()
        self.inner = layers.Dense(2)

    def call(self, x):
        return self.inner(x)

    def train_step(self, data):
        self.yesterday(data[0])
        return super().train_step(data)

found = []
for looks in (False, True):
    keras.utils.set_random_seed(1)
    with strategy.scope():
        one = Model() if looks else keras.Sequential([layers.Dense(2)])
        one.compile(keras.optimizers.SGD(0.1), "mse")
        one(x)
    first = [w.numpy() for w in one.weights]
    if looks:
        one.yesterday = PastNetwork(one)
    one.fit(x, tf.ones((4, 2)), epochs=3, batch_size=4, shuffle=False, verbose=0)
    found.append([w.numpy() for w in one.weights])
    if looks:
        kernel, bias = first
        np.testing.assert_allclose(one.yesterday(x), x @ kernel + bias, rtol=1e-5, atol=1e-6)
for alone, beside in zip(*found):
    np.testing.assert_array_equal(alone, beside)
""",
    "what replicas can't do": """
past = PastNetwork(model)
past(x, training=True)  # a network that isn't traced yet TensorFlow 2.16 refuses itself
refuses(lambda: strategy.run(past.sync), "in a replica: expected to be called once")
refuses(lambda: strategy.run(lambda: past.step().__enter__()), "Sync it outside of strategy.run")
refuses(
    lambda: strategy.run(lambda: past(x, training=True)),
    "in a replica: expected one that writes nothing, got one that writes",
)
""",
    "pasts that are copied as well": """
def scoped():
    with strategy.scope():
        PastNetwork(model)

refuses(scoped, "expected one copy of its variables, got one a replica")
with strategy.scope():
    shadow = PastVariables(make().variables)
""",
    "variables that differ": """
with strategy.scope():
    on_read = tf.Variable(
        1.0,
        synchronization=tf.VariableSynchronization.ON_READ,
        aggregation=tf.VariableAggregation.SUM,
    )
class Module(tf.Module):
    def __init__(self):
        super().__init__()
        self.sum = on_read

    def __call__(self, x):
        return x * self.sum

refuses(lambda: PastNetwork(Module()), "is summed up when it is read")
""",
    "a past of ones own": """
shadow = PastVariables(model.variables)
past = PastNetwork(model, past=shadow)
expected = twin(x).numpy()
moved()
for old, new in zip(*map(local, replicas(x))):
    np.testing.assert_array_equal(old, expected)
""",
}


@pytest.mark.parametrize("case", CASES)
def test_two_devices(two_devices, case):
    program = f'{SETUP}\n{CASES[case]}\nprint("done")\n'
    assert two_devices.run(program).split()[-1] == "done"
