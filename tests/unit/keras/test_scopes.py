"""Recording where TensorFlow would copy every variable to all devices, or wait for other workers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tb_pastnet.core.statistics import DELTA_NORM
from tb_pastnet.format.function_change import RELATIVE
from tests.recorded import read_one

PROGRAM = """
import keras
import numpy as np
import tensorflow as tf
import tb_pastnet as pastnet

keras.utils.set_random_seed(0)
with strategy.scope():
    layers = [keras.layers.Dense(3, name="one"), keras.layers.BatchNormalization(name="norm")]
    model = keras.Sequential([keras.Input((2,)), *layers])
    total = tf.Variable(
        tf.zeros([2, 2]),
        synchronization=tf.VariableSynchronization.ON_READ,
        aggregation=tf.VariableAggregation.SUM,
        trainable=False,
    )
kernel = model.layers[0].kernel
if globals().get("worker", 0) == 0:
    np.save(f"{logdir}/kernel.npy", kernel.numpy())

def train():
    for step in range(1, 5):
        kernel.assign_add(tf.ones_like(kernel))
        recorder.record(step)
        if step == 2:
            model.layers[0].trainable = False
            recorder.observe()
    recorder.close()

if globals().get("worker", 0) == 0:  # nobody else makes one
    if inside:
        with strategy.scope():
            recorder = pastnet.Recorder(f"{logdir}/model", model, every=1, probe=np.ones((4, 2)))
            train()
    else:
        recorder = pastnet.Recorder(f"{logdir}/model", model, every=1, probe=np.ones((4, 2)))
        train()
    named = {"kernel": kernel, "total": total}
    with strategy.scope(), pastnet.Recorder(f"{logdir}/named", named, every=1) as recorder:
        recorder.record(1)
"""


@pytest.fixture(params=["two_devices", "two_workers"])
def run(request):
    return request.getfixturevalue(request.param).run


@pytest.mark.parametrize("inside", [False, True], ids=["outside", "inside"])
def test_a_recorder_waits_for_nobody_wherever_it_is_made(run, tmp_path: Path, inside):
    run(PROGRAM, inside=inside, logdir=str(tmp_path))
    log = read_one(tmp_path / "model")
    assert log.record_steps() == [1, 2, 3, 4]
    # The kernel is (2, 3), and each weight moves by 1.
    expected = np.full((4, 3), np.sqrt(2))
    np.testing.assert_allclose(log.values("one/kernel")[:, DELTA_NORM], expected, rtol=0.023)
    assert log.last.notes == {}
    # Held from step 2 on by `trainable=False`, against a copy that was made in the scope.
    found = [one for one in log.violations.values() if one.variable == "one/kernel"]
    assert sorted((one.channel, one.first_step) for one in found) == [(0, 3), (1, 3), (2, 3)]
    assert [one.largest for one in found] == pytest.approx([2.0] * 3)
    told = np.concatenate([message.values[RELATIVE, :, 0] for message in log.functions])
    outputs = np.load(tmp_path / "kernel.npy").sum(axis=0) + 2.0 * np.arange(5)[:, np.newaxis]
    moved, before = np.sqrt(3) * 2, np.linalg.norm(outputs[:4], axis=1)
    np.testing.assert_allclose(told, moved / before, rtol=1e-5)


def test_what_differs_between_replicas_is_left_out(run, tmp_path: Path):
    run(PROGRAM, inside=False, logdir=str(tmp_path))
    text = read_one(tmp_path / "named").description
    assert [variable.id for variable in text.variables] == ["kernel"]
    assert text.skipped == (("total", "it has another value in each replica"),)
