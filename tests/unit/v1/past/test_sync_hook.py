"""A hook that syncs every few steps of a MonitoredTrainingSession."""

from __future__ import annotations

import pytest
import tensorflow.compat.v1 as tf

from tb_pastnet.errors import InvalidArgument
from tb_pastnet.v1 import SyncHook, sync_op


class Counting:
    """A weight that is the number of its steps, and its past."""

    def __init__(self, every):
        step = tf.train.get_or_create_global_step()
        weight = tf.get_variable("net/w", initializer=0.0)
        self.past = tf.get_variable("past/w", initializer=-1.0)
        self.train = tf.group(weight.assign_add(1.0), step.assign_add(1))
        self.hook = SyncHook(sync_op("net", "past"), every=every)

    def run(self, steps, **settings):
        found = []
        with tf.train.MonitoredTrainingSession(hooks=[self.hook], **settings) as session:
            for _ in range(steps):
                session.run(self.train)
                found.append(float(session.run(self.past)))
        return found


@pytest.mark.parametrize(
    ("every", "expected"), [(1, [1, 2, 3, 4, 5, 6, 7]), (3, [-1, -1, 3, 3, 3, 6, 6])]
)
def test_a_sync_every_few_steps(graph, kind, every, expected):
    assert Counting(every).run(7) == expected


def test_a_session_that_is_restored_keeps_to_the_steps(kind, tmp_path):
    found = []
    for steps in (4, 4):
        with tf.Graph().as_default():
            found.append(Counting(3).run(steps, checkpoint_dir=str(tmp_path)))
    assert found == [[-1, -1, 3, 3], [3, 6, 6, 6]]


def test_runs_that_train_nothing_do_not_count(graph):
    counting = Counting(2)
    with tf.train.MonitoredTrainingSession(hooks=[counting.hook]) as session:
        for _ in range(5):
            session.run(counting.past)
        session.run(counting.train)
        assert session.run(counting.past) == -1.0


def test_several_steps_in_one_run_are_one_sync(graph):
    step = tf.train.get_or_create_global_step()
    weight = tf.get_variable("net/w", initializer=0.0)
    past = tf.get_variable("past/w", initializer=-1.0)
    train = tf.group(weight.assign_add(4.0), step.assign_add(4))
    with tf.train.MonitoredTrainingSession(hooks=[SyncHook(sync_op("net", "past"), 3)]) as session:
        session.run(train)
        assert session.run(past) == 4.0


def test_what_is_no_sync_is_refused():
    with pytest.raises(
        InvalidArgument,
        match=r"^Could not make a SyncHook: expected the operation of sync_op or a PastGraph, got str\. Build it with pastnet\.v1\.sync_op\.$",
    ):
        SyncHook("net")


@pytest.mark.parametrize("every", [0, -1, 1.5, True, None])
def test_every_has_to_be_a_number_of_steps(graph, every):
    with pytest.raises(InvalidArgument) as caught:
        SyncHook(tf.no_op(), every)
    assert str(caught.value) == (
        f"Could not make a SyncHook: expected every= a whole number of at least 1, got {every!r}. "
        f"Use every=1 to sync after each step."
    )


def test_a_graph_without_a_global_step_is_refused(graph):
    hook = SyncHook(tf.no_op())
    with pytest.raises(
        InvalidArgument,
        match=r"^Could not sync every few steps: expected a graph with a global step, got none\. Call tf\.train\.get_or_create_global_step\(\) and pass it to the optimizer's minimize\.$",
    ):
        tf.train.MonitoredTrainingSession(hooks=[hook])
