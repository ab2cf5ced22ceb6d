"""What else a strategy may do: replicas that differ, summaries from each, other strategies."""

from __future__ import annotations

import json

import numpy as np
import pytest
import tensorflow as tf

import tb_pastnet as pastnet
from tb_pastnet.core.statistics import DELTA_NORM, NORM
from tests.devices import free_ports
from tests.interpreter import Interpreter
from tests.recorded import read_one

STATISTICS = """
import keras
import numpy as np
import tensorflow as tf
import tb_pastnet as pastnet

with strategy.scope():
    norm = keras.layers.BatchNormalization(momentum=0.5, synchronized=synchronized, name="norm")
    model = keras.Sequential([keras.Input((2,)), norm])
rows = np.array([[0, 2], [4, 6], [8, 10], [12, 14]], "f")

def part(context):
    share = slice(context.replica_id_in_sync_group, None, context.num_replicas_in_sync)
    return tf.constant(rows[share])

batch = strategy.experimental_distribute_values_from_function(part)
train = tf.function(lambda: strategy.run(lambda x: model(x, training=True), (batch,)))
with pastnet.Recorder(logdir, model, every=1, initial_step=0) as recorder:
    train()
    recorder.record(1)
print([one.numpy().tolist() for one in strategy.experimental_local_results(norm.moving_mean.value)])
"""


@pytest.mark.parametrize("synchronized", [False, True])
def test_statistics_are_those_of_the_first_replica(two_devices, tmp_path, synchronized):
    said = two_devices.run(STATISTICS, logdir=str(tmp_path), synchronized=synchronized)
    # Half of the mean of all rows, or of those that a replica sees: 0 and 2, 1 and 3.
    everywhere, apart = [[3.0, 4.0]] * 2, [[2.0, 3.0], [4.0, 5.0]]
    means = json.loads(said)
    first = means[0]
    # Keras 3.7 still averages what the replicas have.
    assert means == everywhere if synchronized else means in (everywhere, apart)
    moved = read_one(tmp_path).values("norm/moving_mean")[0]
    np.testing.assert_allclose(moved[[NORM, DELTA_NORM]], [first, first], rtol=0.023)


SUMMARIES = """
import tensorflow as tf
import tb_pastnet as pastnet

writer = tf.summary.create_file_writer(logdir)

def replica():
    with writer.as_default():
        pastnet.summary.channels("a/kernel", tf.ones([2, 2]), tf.zeros([2, 2]), step=1)
        tf.summary.scalar("loss", 0.5, step=1)

strategy.run(replica)
tf.function(lambda: strategy.run(replica))()
writer.close()
"""


def test_of_replicas_that_summarise_one_writes(two_devices, tmp_path):
    two_devices.run(SUMMARIES, logdir=str(tmp_path))
    (path,) = map(str, tmp_path.iterdir())
    tags = [
        value.tag
        for event in tf.compat.v1.train.summary_iterator(path)
        for value in event.summary.value
    ]
    assert sorted(set(tags)) == ["a/kernel", "loss"]
    assert len(tags) == 4


def test_one_device(tmp_path):
    strategy = tf.distribute.OneDeviceStrategy("CPU:0")
    with strategy.scope():
        weight = tf.Variable([[3.0, 0.0]])
        recorder = pastnet.Recorder(tmp_path, {"a/kernel": weight}, every=1, initial_step=0)
    with recorder:
        strategy.run(lambda: weight.assign_add([[1.0, 0.0]]))
        recorder.record(1)
    log = read_one(tmp_path)
    np.testing.assert_allclose(log.values("a/kernel")[0, NORM], [4, 0], rtol=0.023)
    np.testing.assert_allclose(log.values("a/kernel")[0, DELTA_NORM], [1, 0], rtol=0.023)


PARAMETERS = """
import tensorflow as tf
import tb_pastnet as pastnet

jobs = {"ps": 1, "worker": 2}
spec = tf.train.ClusterSpec(
    {job: [f"127.0.0.1:{ports.pop()}" for _ in range(number)] for job, number in jobs.items()}
)
# TensorFlow's own advice for servers that share few cores.
config = tf.compat.v1.ConfigProto(inter_op_parallelism_threads=4)
servers = [
    tf.distribute.Server(spec, job_name=job, task_index=index, protocol="grpc", config=config)
    for job, number in jobs.items()
    for index in range(number)
]
resolver = tf.distribute.cluster_resolver.SimpleClusterResolver(spec, rpc_layer="grpc")
strategy = tf.distribute.ParameterServerStrategy(resolver)
with strategy.scope():
    weight = tf.Variable(tf.zeros([1, 2]))
coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
update = tf.function(lambda: weight.assign_add([[0.5, 0.0]]).read_value())
past = pastnet.PastVariables([weight])
with pastnet.Recorder(logdir, {"a/kernel": weight}, every=1, initial_step=0) as recorder:
    for step in (1, 2):
        for _ in range(4):
            coordinator.schedule(update)
        coordinator.join()
        recorder.record(step)
print(past.delta()[0].numpy().tolist())
"""


def test_the_coordinator_of_parameter_servers(tmp_path):
    python = Interpreter()
    said = python.run(PARAMETERS, logdir=str(tmp_path), ports=free_ports(3))
    python.kill()  # such servers can't be ended
    assert said == "[[4.0, 0.0]]\n"
    values = read_one(tmp_path).values("a/kernel")
    np.testing.assert_allclose(values[:, NORM], [[2, 0], [4, 0]], rtol=0.023)
    np.testing.assert_allclose(values[:, DELTA_NORM], [[2, 0], [2, 0]], rtol=0.023)
