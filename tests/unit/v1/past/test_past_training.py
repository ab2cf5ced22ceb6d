"""The past of a network while it is trained: order, initial values and checkpoints."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from tb_pastnet.keras.graphs.nodes import needed
from tb_pastnet.v1 import PAST_VARIABLES, SyncHook, past_network

WIDTH = 32


class Counting:
    """A network whose weights and statistic are the number of its steps; so is each output.

    Args:
        flow: "branch" where the statistic only moves if `training` is fed as true, "loop" where it
            moves by halves.
    """

    def __init__(self, flow="plain"):
        self.x = tf.placeholder_with_default(np.full((1, WIDTH), 0.5 / WIDTH, "f"), (1, WIDTH))
        self.training = tf.placeholder_with_default(True, ())
        with tf.variable_scope("net", initializer=tf.zeros_initializer()):
            self.weight = tf.get_variable("weight", (WIDTH, 1))
            self.mean = tf.get_variable("mean", (), trainable=False)
        self.output = tf.matmul(self.x, self.weight)[0, 0] + self.mean / 2
        tf.add_to_collection(tf.GraphKeys.UPDATE_OPS, self.moved(flow))

    def moved(self, flow):
        def move(step):
            with tf.control_dependencies([self.mean.assign_add(step)]):
                return tf.constant(step)

        if flow == "branch":
            return tf.cond(self.training, lambda: move(1.0), lambda: 0.0)
        if flow == "loop":
            return tf.while_loop(lambda sum_: sum_ < 1.0, lambda sum_: sum_ + move(0.5), (0.0,))
        return move(1.0)

    def train(self):
        # As batch normalization asks for it: the statistics move with the update.
        with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
            descent = tf.train.GradientDescentOptimizer(1.0)
            step = tf.train.get_or_create_global_step()
            return descent.minimize(-tf.reduce_sum(self.weight), step)


def wrong(session, network, past, train, steps=200):
    """How many steps give or leave another value than they should."""
    count = 0
    for now in range(steps):
        answer, _ = session.run([past.outputs, train])
        current, before = session.run([[network.weight, network.mean], past.variables])
        count += not (
            answer == max(now - 1, 0)
            and all((value == now + 1).all() for value in current)
            and all((value == now).all() for value in before)
        )
    return count


@pytest.mark.parametrize("flow", ["plain", "branch", "loop"])
def test_past_sync_and_train_in_one_run(graph, world, flow):
    network = Counting(flow)
    past = past_network(network.x, network.output)
    with past.step():
        train = network.train()
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(tf.local_variables_initializer())
        assert wrong(session, network, past, train) == 0


def test_in_a_monitored_session(graph, world):
    network = Counting("branch")
    past = past_network(network.x, network.output)
    with past.step():
        train = network.train()
    with tf.train.MonitoredTrainingSession() as session:
        assert wrong(session, network, past, train) == 0


def test_the_updates_of_another_network_do_not_wait(graph, kind):
    network = Counting()
    other = tf.get_variable("other/mean", initializer=0.0)
    update = other.assign_add(1.0)
    tf.add_to_collection(tf.GraphKeys.UPDATE_OPS, update)
    past = past_network(network.x, network.output)
    with past.step() as sync:
        pass
    assert sync not in update.op.control_inputs
    assert sync.name not in needed([update])


def test_outputs_that_are_variables(graph, kind):
    # The answer is a reference variable itself, or what it shares its storage with.
    weight = tf.get_variable("net/w", (1000,), initializer=tf.zeros_initializer())
    x = tf.placeholder_with_default(1.0, ())
    past = past_network(x, [weight.read_value(), tf.reshape(weight, (10, 100)), x * weight])
    with past.step():
        train = weight.assign_add(tf.ones(1000)).op
    with tf.train.MonitoredTrainingSession() as session:
        for now in range(200):
            answers, _ = session.run([past.outputs, train])
            assert [set(answer.ravel()) for answer in answers] == [{max(now - 1, 0)}] * 3


def test_adam_and_the_past_in_the_loss(graph, kind):
    # Each step's answer is to the last bit what the network gave in the step before.
    x = tf.constant(np.random.default_rng(0).normal(size=(8, 3)).astype("f"))
    with tf.variable_scope("net", initializer=tf.glorot_uniform_initializer(1)):
        hidden = tf.tanh(tf.matmul(x, tf.get_variable("w0", (3, 4))))
        output = tf.matmul(hidden, tf.get_variable("w1", (4, 1)))
    past = past_network(x, output)
    loss = tf.reduce_mean((output - 1.0) ** 2 + 0.1 * (output - past.outputs) ** 2)
    with past.step():
        train = tf.train.AdamOptimizer(0.05).minimize(loss)
    given = []
    with tf.train.MonitoredTrainingSession() as session:
        before = session.run(output)
        for _ in range(50):
            now, answer, _ = session.run([output, past.outputs, train])
            np.testing.assert_array_equal(answer, before)
            before = now
            given.append(float(((now - 1) ** 2).mean()))
    assert given[-1] < 0.5 * given[0]


def test_a_soft_step(graph, kind):
    network = Counting()
    past = past_network(network.x, network.output)
    with past.step(tau=0.25):
        train = network.train()
    slow = 0.0
    with tf.train.MonitoredTrainingSession() as session:
        for now in range(10):
            session.run(train)
            weight, mean = session.run(past.variables)
            slow = 0.25 * now + 0.75 * slow
            np.testing.assert_allclose(weight, slow, rtol=1e-6)
            assert mean == now  # statistics are copied


def test_a_hook_that_syncs(graph, kind):
    network = Counting()
    past = past_network(network.x, network.output)
    train, found = network.train(), []
    with tf.train.MonitoredTrainingSession(hooks=[SyncHook(past, every=3)]) as session:
        for _ in range(7):
            session.run(train)
            found.append(float(session.run(past.outputs)))
    assert found == [0, 0, 3, 3, 3, 6, 6]


def test_a_sync_in_a_branch(graph, world):
    network = Counting()
    past = past_network(network.x, network.output)
    train = network.train()
    with tf.control_dependencies([train]):
        now = tf.train.get_global_step().read_value()
        sync = tf.cond(tf.equal(now % 3, 0), lambda: tf.group(past.sync()), tf.no_op)
    found = []
    with tf.train.MonitoredTrainingSession() as session:
        for _ in range(7):
            session.run(sync)
            found.append(float(session.run(past.outputs)))
    assert found == [0, 0, 3, 3, 3, 6, 6]


def drawn(initial=None):
    """A weight of a random initial value, and the shadow of it."""
    x = tf.placeholder(tf.float32, ())
    initial = tf.random_normal_initializer()((50,)) if initial is None else initial
    weight = tf.get_variable("net/w", initializer=initial)
    return weight, past_network(x, x * weight).variables[0]


def test_initial_values_after_the_networks_own(graph, kind):
    weight, past = drawn()
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(tf.local_variables_initializer())
        np.testing.assert_array_equal(*session.run([weight, past]))


def test_initial_values_in_one_run_with_the_networks_own(graph, world):
    weight, past = drawn()
    both = tf.group(tf.global_variables_initializer(), tf.local_variables_initializer())
    for _ in range(20):
        with tf.Session() as session:
            session.run(both)
            np.testing.assert_array_equal(*session.run([weight, past]))


def test_initial_values_that_were_fed(graph, kind):
    fed = tf.placeholder(tf.float32, (50,))
    _, past = drawn(fed)
    value = np.arange(50, dtype="f")
    with tf.Session() as session:
        session.run(tf.global_variables_initializer(), {fed: value})
        session.run(tf.local_variables_initializer())
        np.testing.assert_array_equal(session.run(past), value)


def test_initial_values_from_a_file_that_is_gone(kind, tmp_path):
    path = str(tmp_path / "model")
    with tf.Graph().as_default(), tf.Session() as session:
        tf.get_variable("net/w", initializer=tf.fill([50], 3.0))
        session.run(tf.global_variables_initializer())
        tf.train.Saver().save(session, path)
    with tf.Graph().as_default(), tf.Session() as session:
        weight = tf.get_variable("net/w", (50,))
        tf.train.init_from_checkpoint(path, {"net/": "net/"})
        past = past_network((), 2.0 * weight)
        session.run(tf.global_variables_initializer())
        for file in tmp_path.glob("model*"):
            file.unlink()
        session.run(past.initializer)
        assert set(session.run(past.outputs)) == {6.0}


def test_a_checkpoint_of_before_restores(kind, tmp_path):
    with tf.Graph().as_default(), tf.Session() as session:
        weight = tf.get_variable("net/w", initializer=tf.random_normal_initializer()((50,)))
        session.run(tf.global_variables_initializer())
        expected = session.run(weight)
        path = tf.train.Saver().save(session, str(tmp_path / "model"))
    with tf.Graph().as_default(), tf.Session() as session:
        weight, past = drawn()
        tf.train.Saver().restore(session, path)
        session.run(tf.local_variables_initializer())
        for value in session.run([weight, past]):
            np.testing.assert_array_equal(value, expected)


def test_a_session_that_is_restored_begins_with_the_current_values(kind, tmp_path):
    for steps in (3, 5):
        with tf.Graph().as_default():
            network = Counting()
            past = past_network(network.x, network.output)
            with past.step():
                train = network.train()
            with tf.train.MonitoredTrainingSession(checkpoint_dir=str(tmp_path)) as session:
                assert session.run(past.outputs) == (0 if steps == 3 else 3)
                for _ in range(steps):
                    session.run(train)
    assert sorted(name for name, _ in tf.train.list_variables(str(tmp_path))) == [
        "global_step",
        "net/mean",
        "net/weight",
    ]


@pytest.mark.parametrize(
    "partitioner", [None, tf.fixed_size_partitioner(2)], ids=["whole", "parts"]
)
def test_the_past_is_saved_where_it_is_asked_for(kind, partitioner, tmp_path):
    values = {}
    for attempt in ("saved", "restored"):
        with tf.Graph().as_default(), tf.Session() as session:
            x = tf.placeholder(tf.float32, ())
            weight = tf.get_variable("net/w", (5,), partitioner=partitioner)
            past = past_network(x, x * weight)
            saver = tf.train.Saver(tf.global_variables() + tf.get_collection(PAST_VARIABLES))
            if attempt == "saved":
                session.run(tf.global_variables_initializer())
                session.run(past.initializer)
                for part in tf.global_variables():
                    part.load(np.zeros(part.shape.as_list()), session)
                saver.save(session, str(tmp_path / "model"))
            else:
                saver.restore(session, str(tmp_path / "model"))
            values[attempt] = session.run([past.outputs, tf.convert_to_tensor(weight)], {x: 1.0})
    np.testing.assert_array_equal(values["saved"], values["restored"])
    assert values["saved"][0].all()
    assert not values["saved"][1].any()
    names = [name for name, _ in tf.train.list_variables(str(tmp_path))]
    assert sorted(names) == ["net/w", "past/net/w"]
