"""Recording a MonitoredTrainingSession, by its global step."""

from __future__ import annotations

import logging
from contextlib import suppress

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from tb_pastnet import v1
from tb_pastnet.core.axes import explicit_axis
from tb_pastnet.core.statistics import MOVED, channel_statistics
from tb_pastnet.errors import InvalidArgument
from tests.masked_graphs import KERNEL, network
from tests.recorded import read_lineages, read_one

pytestmark = pytest.mark.usefixtures("graph")


def trained(masks=None):
    optimizer = tf.train.MomentumOptimizer(0.01, 0.9)
    if masks is not None:
        optimizer = masks.wrap(optimizer)
    return optimizer.minimize(network(), tf.train.get_or_create_global_step())


def kernel_of(session):
    return session.run_step_fn(lambda step_context: step_context.session.run(f"{KERNEL}/read:0"))


@pytest.fixture(autouse=True)
def _references():
    was = tf.resource_variables_enabled()
    tf.disable_resource_variables()
    yield
    if was:
        tf.enable_resource_variables()


def test_each_update_is_seen_and_nothing_else(tmp_path):
    train = trained()
    hook = v1.RecorderHook(tmp_path, every=2)
    values = []
    with tf.train.MonitoredTrainingSession(hooks=[hook]) as session:
        values.append(kernel_of(session))
        for _ in range(6):
            session.run(train)
            values.append(kernel_of(session))
            session.run(f"{KERNEL}/read:0")  # an evaluation is no step
    log = read_one(tmp_path)
    assert (log.record_steps(), log.record_past_steps()) == ([1, 2, 4, 6], [0, 1, 3, 5])
    assert log.last.closed
    axis = explicit_axis(-1, (6, 4), KERNEL)
    for at, step in enumerate((1, 2, 4, 6)):
        expected = channel_statistics(values[step], values[step - 1], axis)
        found = log.values(KERNEL)[at]
        np.testing.assert_allclose(found[:MOVED], expected[:MOVED], rtol=0.023)


def test_a_restored_session_goes_on_in_a_new_lineage(tmp_path):
    for _ in range(2):  # as in two processes
        with tf.Graph().as_default():
            train, hook = trained(), v1.RecorderHook(tmp_path / "log", every=1)
            with tf.train.MonitoredTrainingSession(
                checkpoint_dir=str(tmp_path / "saved"), hooks=[hook], save_summaries_steps=None
            ) as session:
                for _ in range(3):
                    session.run(train)
    first, second = read_lineages(tmp_path / "log")
    assert (first.record_steps(), second.record_steps()) == ([1, 2, 3], [4, 5, 6])
    assert second.record_past_steps() == [3, 4, 5]
    assert first.description.origin == second.description.origin


def test_a_session_that_failed_is_gone_on_with(tmp_path):
    train = trained()
    hook = v1.RecorderHook(tmp_path / "log", every=1)
    failing = FailOnce(3)
    with tf.train.MonitoredTrainingSession(
        checkpoint_dir=str(tmp_path / "saved"),
        hooks=[failing, hook],
        save_checkpoint_steps=2,
        save_summaries_steps=None,
        log_step_count_steps=None,
    ) as session:
        for _ in range(6):
            session.run(train)
    assert failing.failed
    first, second = read_lineages(tmp_path / "log")
    # The third update is lost with its session, which was saved after the second.
    assert (first.record_steps(), second.record_steps()) == ([1, 2], [3, 4, 5, 6])
    assert second.record_past_steps() == [2, 3, 4, 5]


class FailOnce(tf.train.SessionRunHook):
    """Loses the session after a number of runs."""

    def __init__(self, runs):
        self.left = runs
        self.failed = False

    def after_run(self, run_context, run_values):
        self.left -= 1
        if self.left == 0:
            self.failed = True
            raise tf.errors.AbortedError(None, None, "lost")


def test_losses_are_the_same_bit_for_bit(tmp_path):
    def losses(hooks):
        with tf.Graph().as_default():
            tf.set_random_seed(1)
            loss = network() * tf.random_uniform(())
            step = tf.train.get_or_create_global_step()
            train = tf.train.AdamOptimizer(0.01).minimize(loss, step)
            with tf.train.MonitoredTrainingSession(hooks=hooks) as session:
                return [session.run([loss, train])[0] for _ in range(20)]

    assert losses([]) == losses([v1.RecorderHook(tmp_path, every=1)])


def test_masks_in_a_monitored_session(tmp_path):
    loss = network()
    masks = v1.Masks()
    optimizer = masks.wrap(tf.train.AdamOptimizer(0.01))
    train = optimizer.minimize(loss, tf.train.get_or_create_global_step())
    hook = v1.RecorderHook(tmp_path, every=1, masks=masks)
    with tf.train.MonitoredTrainingSession(hooks=[hook]) as session:
        session.run(train)
        masks.session = session
        masks.prune(KERNEL, channels=[1])
        session.run(train)
        masks.freeze(KERNEL, channels=[2])  # in force from a step that isn't made
    log = read_one(tmp_path)
    assert log.record_steps() == [1, 2]
    changes = [(one.step, one.mask) for _, one in sorted(log.changes.items())]
    assert changes == [(2, "kept"), (3, "trainable")]
    assert not log.violations


def test_a_step_that_cannot_be_read_is_noted(tmp_path, caplog):
    trained()
    hook = v1.RecorderHook(tmp_path)
    hook.begin()
    with tf.Session() as session, caplog.at_level(logging.WARNING, "tb_pastnet"):
        hook.after_create_session(session, None)
        hook.after_create_session(session, None)
        hook.end(session)
    (record,) = caplog.records
    assert "Could not read the global step" in record.getMessage()


def test_a_session_that_raises_has_not_ended_normally(tmp_path):
    train = trained()
    hook = v1.RecorderHook(tmp_path, every=1)
    with suppress(MemoryError), tf.train.MonitoredTrainingSession(hooks=[hook]) as session:
        session.run(train)
        raise MemoryError
    hook.recorder.close()
    assert not read_one(tmp_path).last.closed


def test_before_it_begins_it_does_nothing(tmp_path, caplog):
    trained()
    hook = v1.RecorderHook(tmp_path)
    with tf.Session() as session, caplog.at_level(logging.WARNING, "tb_pastnet"):
        hook.after_create_session(session, None)
        hook.end(session)
    assert not caplog.records


def test_without_a_global_step_it_is_refused(tmp_path):
    network()
    text = "Could not record a session: expected a global step in its graph, got none"
    with pytest.raises(InvalidArgument, match=text):
        v1.RecorderHook(tmp_path).begin()


def test_what_is_known_at_once_is_refused_at_once(tmp_path):
    with pytest.raises(InvalidArgument, match="expected every= a whole number of at least 1"):
        v1.RecorderHook(tmp_path, every=0)
