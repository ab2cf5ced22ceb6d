"""Masks of a graph are saved, restored and initialised as variables are."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from tb_pastnet import v1
from tests.masked_graphs import KERNEL, begun, network, start, trained, value_of

pytestmark = pytest.mark.usefixtures("graph")


def test_a_saver_brings_masks_back(kind, session, tmp_path):
    masks, train = trained()
    saver = tf.train.Saver(tf.global_variables() + masks.variables)
    begun(session, masks)
    masks.prune(KERNEL, channels=[1])
    masks.freeze("net/dense/b", channels=[0])
    path = saver.save(session, str(tmp_path / "model"))
    bias = value_of(session, "net/dense/b")
    with tf.Session() as other, other.as_default():
        saver.restore(other, path)
        other.run(tf.tables_initializer())  # leaves them
        assert masks.sparsity("dense/w") == 0.25
        start(other, train)
        assert (value_of(other, KERNEL)[:, 1] == 0).all()
        assert (value_of(other, "net/dense/b") == bias).tolist() == [True, False, False, False]
        assert masks.audit(3) == []
        (bias_of,) = (one for one in tf.global_variables() if one.op.name == "net/dense/b")
        other.run(tf.assign_add(bias_of, tf.ones(4)))
        assert [(one.variable, one.channel) for one in masks.audit(4)] == [("net/dense/b", 0)]
        masks.regrow("dense/w")
        masks.thaw("dense/b")
        assert masks.sparsity() == 0
        assert masks.trainable["dense/b"].all()


def test_masks_restored_in_the_midst_are_seen_by_refresh(session, tmp_path):
    masks, _ = trained()
    saver = tf.train.Saver(masks.variables)
    begun(session, masks)
    masks.prune(KERNEL, channels=[1])
    path = saver.save(session, str(tmp_path / "masks"))
    masks.regrow(KERNEL)
    saver.restore(session, path)
    masks.refresh()
    assert masks.sparsity(KERNEL) == 0.25


def test_checkpoints_from_before_restore(kind, tmp_path):
    with tf.Graph().as_default(), tf.Session() as session:
        step = tf.train.get_or_create_global_step()
        tf.train.MomentumOptimizer(0.01, 0.9).minimize(network(), step)
        session.run(tf.global_variables_initializer())
        expected = value_of(session, KERNEL)
        path = tf.train.Saver().save(session, str(tmp_path / "old"))
    with tf.Session() as session:
        masks, train = trained()
        tf.train.Saver().restore(session, path)
        session.run(masks.initializer)
        np.testing.assert_array_equal(value_of(session, KERNEL), expected)
        masks.prune(KERNEL, channels=[0])
        start(session, train)
        assert (value_of(session, KERNEL)[:, 0] == 0).all()


@pytest.mark.usefixtures("control_flow")
def test_a_monitored_session_begins_and_restores_them(kind, tmp_path):
    masks, train = trained()
    saver = tf.train.Saver(tf.global_variables() + masks.variables)

    def monitored():
        scaffold = tf.train.Scaffold(saver=saver)
        return tf.train.MonitoredTrainingSession(
            checkpoint_dir=str(tmp_path), scaffold=scaffold, save_summaries_steps=None
        )

    with monitored() as session:
        masks.session = session
        masks.prune(KERNEL, channels=[1])
        session.run(train)
    with monitored() as session:
        masks.session = session
        assert masks.sparsity(KERNEL) == 0.25
        session.run(train)
        assert (masks.state.weights[KERNEL].variable.numpy()[:, 1] == 0).all()


def test_they_are_in_a_collection_of_their_own(session):
    masks, _ = trained()
    assert tf.get_collection(v1.MASK_VARIABLES) == masks.variables
    others = [*tf.global_variables(), *tf.local_variables(), *tf.trainable_variables()]
    assert not {one.op.name for one in masks.variables} & {one.op.name for one in others}


def test_a_saver_finds_them_in_a_network_that_has_grown(session, tmp_path):
    masks, _ = trained()
    begun(session, masks)
    masks.prune(KERNEL, channels=[1])
    path = tf.train.Saver(masks.variables).save(session, str(tmp_path / "masks"))
    with tf.Graph().as_default(), tf.Session() as other:
        with tf.name_scope("another"), tf.variable_scope("before"):
            network("first")
        loss = network()
        with tf.name_scope("train"):
            grown = v1.Masks()
            grown.wrap(tf.train.AdamOptimizer()).minimize(loss)
        begun(other, grown)
        mine = {one.op.name for one in masks.variables}
        found = [one for one in grown.variables if one.op.name in mine]
        tf.train.Saver(found).restore(other, path)
        assert grown.sparsity(KERNEL) == 0.25
