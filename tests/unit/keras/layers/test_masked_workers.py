"""Layers that own their masks, trained by two workers."""

from __future__ import annotations

PROGRAM = """
import hashlib
import keras
import numpy as np
import tensorflow as tf
from tb_pastnet import MaskedDense
from tb_pastnet.errors import InvalidArgument

keras.utils.set_random_seed(0)
with strategy.scope():
    layer = MaskedDense(3, name="only")
    model = keras.Sequential([keras.Input((4,)), layer])
    optimizer = keras.optimizers.SGD(0.1, momentum=0.9, weight_decay=0.1)
    optimizer.build(model.trainable_variables)
rows = np.random.default_rng(0).normal(size=(8, 4)).astype("f")

def part(context):
    return tf.constant(rows[context.replica_id_in_sync_group :: 2])

batch = strategy.experimental_distribute_values_from_function(part)

def update(x):
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum((model(x) - x[:, :3]) ** 2) / 8
    optimizer.apply(tape.gradient(loss, model.trainable_variables), model.trainable_variables)

step = tf.function(lambda: strategy.run(update, (batch,)))
kernel = layer.masked_weight("kernel")
step()
pruned = np.arange(12).reshape(4, 3) % 2 == 0
layer.prune_kernel(~pruned)
layer.freeze_kernel(np.arange(12).reshape(4, 3) != 1)
before = kernel.numpy()
try:
    layer.prune_kernel(np.arange(12).reshape(4, 3) != 3 + 2 * worker)
except InvalidArgument as error:
    print(error)
for _ in range(5):
    step()
after = kernel.numpy()
held = pruned | (np.arange(12).reshape(4, 3) == 1)
assert after[held].tobytes() == before[held].tobytes()
assert not after[pruned].any()
assert (after[~held] != before[~held]).all()
print(hashlib.sha256(after.tobytes()).hexdigest())
"""


def test_both_hold_the_same_and_stay_the_same(two_workers):
    one, other = two_workers.run(PROGRAM)
    assert one == other
    assert one.startswith("Could not set the masks of 'only/kernel': expected the same in all")
