"""What a Recorder of a graph writes: numbers of values that were fetched apart."""

from __future__ import annotations

import logging

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from tb_pastnet import v1
from tb_pastnet.core.axes import explicit_axis
from tb_pastnet.core.statistics import KEPT, MOVED, TRAINABLE, channel_statistics
from tb_pastnet.errors import InvalidArgument, UnknownName
from tests.masked_graphs import KERNEL, network, value_of
from tests.recorded import read_lineages, read_one

pytestmark = pytest.mark.usefixtures("graph")
NAMES = (KERNEL, "net/dense/b", "net/out/w")


def trained(**settings):
    """The train op of a network."""
    return tf.train.MomentumOptimizer(0.01, 0.9).minimize(network(**settings))


def values_of(session):
    return {name: value_of(session, name) for name in NAMES}


def run(session, train, recorder, steps, start=0):
    """Trains and records; the values after each step, that of the beginning first."""
    values = [values_of(session)]
    for step in range(start + 1, start + steps + 1):
        session.run(train)
        recorder.record(step)
        values.append(values_of(session))
    return values


@pytest.mark.parametrize("parts", [1, 2])
def test_the_numbers_are_those_of_the_values(kind, control_flow, session, tmp_path, parts):
    partitioner = tf.fixed_size_partitioner(2) if parts == 2 else None
    train = trained(partitioner=partitioner)
    recorder = v1.Recorder(tmp_path, every=3, learning_rate=0.01)
    session.run(tf.global_variables_initializer())
    session.graph.finalize()
    recorder.restart(0)
    values = run(session, train, recorder, 12)
    recorder.close()
    log = read_one(tmp_path)
    assert [one.id for one in log.description.variables] == list(NAMES)
    assert [one.type for one in log.description.layers] == ["Dense", "Dense"]
    assert log.last.learning_rates.tolist() == pytest.approx([0.01] * 5)
    for name in NAMES:
        assert log.record_steps() == [1, 3, 6, 9, 12]
        axis = explicit_axis(-1, values[0][name].shape, name)
        found = log.values(name)
        for at, step in enumerate((1, 3, 6, 9, 12)):
            expected = channel_statistics(values[step][name], values[step - 1][name], axis)
            np.testing.assert_allclose(found[at][:MOVED], expected[:MOVED], rtol=0.023)


def test_training_is_the_same_bit_for_bit(kind, tmp_path):
    def losses(*, recorded):
        with tf.Graph().as_default(), tf.Session() as session:
            tf.set_random_seed(1)
            loss = network() * tf.random_uniform(())
            train = tf.train.AdamOptimizer(0.01).minimize(loss)
            recorder = v1.Recorder(tmp_path, every=1) if recorded else None
            session.run(tf.global_variables_initializer())
            found = []
            for step in range(30):
                found.append(session.run([loss, train])[0])
                if recorder is not None:
                    recorder.record(step)
            if recorder is not None:
                recorder.close()
            return [*found, value_of(session, KERNEL).tobytes()]

    assert losses(recorded=True) == losses(recorded=False)


def test_no_collection_and_no_checkpoint_knows_of_it(session, tmp_path):
    train = trained()
    before = {key: list(session.graph.get_collection(key)) for key in session.graph.collections}
    v1.Recorder(tmp_path).close()
    assert train.graph is session.graph
    assert {key: session.graph.get_collection(key) for key in session.graph.collections} == before


def test_without_restart_the_first_step_is_what_is_compared_with(session, tmp_path):
    train = trained()
    recorder = v1.Recorder(tmp_path, every=1)
    session.run(tf.global_variables_initializer())
    run(session, train, recorder, 3, start=4)
    recorder.close()
    log = read_one(tmp_path)
    assert log.record_steps() == [6, 7]
    assert log.record_past_steps() == [5, 6]


@pytest.mark.parametrize("past", ["previous", "initial", 3])
def test_another_session_begins_anew(tmp_path, past, caplog):
    train = trained()
    recorder = v1.Recorder(tmp_path, every=1, past=past)
    for begin in (0, 2):
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            recorder.restart(begin)
            run(session, train, recorder, 3, start=begin)
    recorder.close()
    lineages = read_lineages(tmp_path)
    assert [one.record_steps() for one in lineages] == [[1, 2, 3], [3, 4, 5]]
    assert [one.record_past_steps()[0] for one in lineages] == [0, 2]
    assert not caplog.records


def test_masks_are_recorded_and_their_leaks_told(kind, session, tmp_path):
    loss = network()
    masks = v1.Masks()
    train = masks.wrap(tf.train.AdamOptimizer(0.01)).minimize(loss)
    leak = masks.hold(tf.no_op, [])
    weights = {one.op.name: one for one in tf.trainable_variables()}
    moved = np.zeros((6, 4), np.float32)
    moved[1:3, 2] = 0.5, -0.75
    with tf.control_dependencies([leak]):
        leak = weights[KERNEL].assign_add(moved)
    recorder = v1.Recorder(tmp_path, every=1, masks=masks)
    session.run([tf.global_variables_initializer(), masks.initializer])
    recorder.restart(0)
    kept = np.ones((6, 4), bool)
    kept[:3, 1] = False
    for step in range(1, 7):
        if step == 3:
            masks.prune(KERNEL, kept)
            masks.freeze(KERNEL, channels=[2])
        session.run(train)
        if step == 5:
            session.run(leak)
        recorder.record(step)
    recorder.close()
    log = read_one(tmp_path)
    assert log.description.audited
    changes = [
        (one.step, one.mask, log.masks[number].flags.reshape(6, 4))
        for number, one in sorted(log.changes.items())
    ]
    assert [(step, mask) for step, mask, _ in changes] == [(3, "kept"), (3, "trainable")]
    np.testing.assert_array_equal(changes[0][2], kept)
    np.testing.assert_array_equal(changes[1][2], [[True, True, False, True]] * 6)
    found = log.values(KERNEL)
    np.testing.assert_allclose(found[:, KEPT], [[1] * 4] * 2 + [[1, 0.5, 1, 1]] * 4, rtol=0.022)
    np.testing.assert_allclose(found[2:, TRAINABLE], [[1, 0.5, 0, 1]] * 4, rtol=0.022)
    (violation,) = log.violations.values()
    assert (violation.variable, violation.channel, violation.first_step) == (KERNEL, 2, 5)
    assert (violation.elements, violation.held, violation.largest) == (2, 6, 0.75)
    assert violation.cause == "unmasked_update"
    assert masks.audit(7)[0].channel == 2


@pytest.mark.parametrize(
    "rate",
    [0.5, lambda: 0.5, lambda: tf.constant(0.5), lambda: tf.get_variable("rate", initializer=0.5)],
    ids=["number", "function", "tensor", "variable"],
)
def test_learning_rates(session, tmp_path, rate, request):
    train = trained()
    made = rate() if request.node.callspec.id in ("tensor", "variable") else rate
    recorder = v1.Recorder(tmp_path, every=1, learning_rate=made)
    session.run(tf.global_variables_initializer())
    recorder.restart(0)
    run(session, train, recorder, 2)
    recorder.close()
    assert read_one(tmp_path).last.learning_rates.tolist() == [0.5, 0.5]


def test_what_fails_later_is_logged_once_and_never_raises(session, tmp_path, caplog):
    train = trained()
    recorder = v1.Recorder(tmp_path, every=1)
    with caplog.at_level(logging.WARNING, "tb_pastnet"):
        for step in range(3):
            recorder.record(step)  # the variables have no values yet
        session.run(tf.global_variables_initializer())
        run(session, train, recorder, 3, start=3)
        recorder.record(7, tf.Session(graph=tf.Graph()))
    recorder.close()
    texts = [record.getMessage() for record in caplog.records]
    assert len(texts) == 2
    assert "Could not begin a new lineage" in texts[0]
    assert "expected a session for it, got none" in texts[1]
    assert read_one(tmp_path).record_steps() == [5, 6]


@pytest.mark.parametrize(
    ("settings", "kind_of", "text"),
    [
        ({"variables": "nett"}, InvalidArgument, "Could not choose the variables of scope 'nett'"),
        ({"variables": ["*/kernel"]}, UnknownName, r"by '\*/kernel': expected a pattern that fits"),
        ({"variables": []}, InvalidArgument, "Could not record a graph: expected at least one"),
        ({"variables": ["none"]}, UnknownName, "'none'"),
        ({"learning_rate": "0.1"}, InvalidArgument, "Could not record the learning rate: expecte"),
    ],
)
def test_what_cannot_be_is_refused(tmp_path, settings, kind_of, text):
    network()
    with pytest.raises(kind_of, match=text):
        v1.Recorder(**{"logdir": tmp_path, **settings})


def test_an_optimizer_as_a_learning_rate_is_refused(tmp_path):
    network()
    text = (
        "got <tensorflow.*The rate can't be read from an optimizer: pass the one that you gave it"
    )
    with pytest.raises(InvalidArgument, match=text):
        v1.Recorder(tmp_path, learning_rate=tf.train.AdamOptimizer())


def batches():
    return tf.data.make_one_shot_iterator(tf.data.Dataset.range(99)).get_next()


def statistics():
    return tf.get_variable("mean", initializer=0.0).assign_add(1.0)


@pytest.mark.parametrize("update", [batches, statistics])
def test_a_rate_that_would_run_an_update_is_refused(kind, tmp_path, update):
    network()
    step = tf.train.get_or_create_global_step()
    with tf.control_dependencies([update()]):
        rate = tf.train.exponential_decay(0.1, step, 10, 0.5)
    with pytest.raises(InvalidArgument, match="expected a tensor that only reads, got one that "):
        v1.Recorder(tmp_path, learning_rate=rate)
    assert not list(tmp_path.iterdir())


def test_a_finalized_graph_is_refused(graph, tmp_path):
    network()
    graph.finalize()
    with pytest.raises(InvalidArgument, match="Could not add ops: expected a graph that accepts"):
        v1.Recorder(tmp_path)
    assert not list(tmp_path.iterdir())
