"""Masks of a network that two workers train."""

from __future__ import annotations

import pytest

SETUP = """
import hashlib
import keras
import numpy as np
import tensorflow as tf
import tb_pastnet as pastnet
from tb_pastnet.errors import InvalidArgument
from tests import masked

x, y = masked.data(8)

def part(context):
    share = slice(context.replica_id_in_sync_group, None, context.num_replicas_in_sync)
    return tf.constant(x[share]), tf.constant(y[share])

def step_with(model, optimizer):
    def update(x, y):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum((model(x, training=True) - y) ** 2) / 8
        optimizer.apply(tape.gradient(loss, model.trainable_variables), model.trainable_variables)

    return tf.function(lambda: strategy.run(update, batch))

batch = strategy.experimental_distribute_values_from_function(part)
with strategy.scope():
    model = masked.network()
    optimizer = eval(optimizer)
    optimizer.build(model.trainable_variables)
masks = pastnet.Masks(model, optimizer)
masked.hold_some(masks)

def check(steps=5):
    held, before, through = masked.held_bits(model, masks), masked.values(model), masked.free(masks)
    step = step_with(model, optimizer)
    for _ in range(steps):
        step()
    now = masked.values(model)
    assert masked.held_bits(model, masks) == held
    assert all((now[name] != before[name])[through[name]].any() for name in through)
    assert masks.audit() == []

def everything():
    arrays = [*model.get_weights(), *masks.kept.values(), *masks.trainable.values()]
    arrays += [np.asarray(variable) for variable in optimizer.variables]
    return hashlib.sha256(b"".join(masked.bits(array) for array in arrays)).hexdigest()
"""
COMMANDS = """
check()
snapshot = masks.snapshot()
masks.regrow("one/kernel", channels=[0])
masks.thaw("two/kernel")
masks.prune_smallest(0.5)
masks.prune_blocks("two/kernel", 2, 5)
masks.prune_below("one/bias", 1e-3)
masks.freeze("two/bias", channels=[0])
assert masks.sparsity() >= 0.5
assert masks.kept["two/kernel"].sum(axis=0).max() <= 2
check()
masks.rewind(snapshot)
assert np.asarray(optimizer.iterations) == 5
check(2)
print(everything())
"""


@pytest.mark.parametrize(
    "optimizer",
    [
        "keras.optimizers.AdamW(0.05, global_clipnorm=0.1, use_ema=True)",
        pytest.param(
            "keras.optimizers.SGD(0.05, momentum=0.9, weight_decay=0.1)", marks=pytest.mark.prove
        ),
    ],
)
def test_all_commands_hold_and_both_workers_stay_the_same(two_workers, optimizer):
    one, other = two_workers.run(SETUP + COMMANDS, optimizer=optimizer)
    assert one == other != ""


DRAWN = """
before = everything()
try:
    masks.prune("two/kernel", kept=np.random.default_rng(worker).random((5, 3)) > 0.5)
except InvalidArgument as error:
    print(error)
assert everything() == before
check()
print(everything())
"""


def test_masks_that_each_worker_draws_for_itself_are_refused(two_workers):
    one, other = two_workers.run(SETUP + DRAWN, optimizer="keras.optimizers.SGD(0.05)")
    assert one == other
    assert one.startswith(
        "Could not set the masks of 'two/kernel': expected the same in all workers, got 2 different"
    )
