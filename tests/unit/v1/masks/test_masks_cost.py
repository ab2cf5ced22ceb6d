"""What masks and a Recorder ask of a session and of a graph, where variables are many."""

from __future__ import annotations

import pytest
import tensorflow.compat.v1 as tf

from tb_pastnet import v1
from tb_pastnet.errors import InvalidArgument
from tests.masked_graphs import begun, value_of

pytestmark = pytest.mark.usefixtures("graph")
MANY = 12


class Counted:
    """A session that counts its runs: each other choice of fetches it prepares for long."""

    def __init__(self, session):
        self.session = session
        self.graph = session.graph
        self.runs = 0

    def run(self, *arguments):
        self.runs += 1
        return self.session.run(*arguments)


@pytest.fixture
def kernels():
    first = tf.random_uniform_initializer(1, 2, seed=1)
    return [tf.get_variable(f"net/{at}/w", (6, 4), initializer=first) for at in range(MANY)]


def runs_of(counted, command):
    before = counted.runs
    command()
    return counted.runs - before


def test_the_runs_do_not_grow_with_the_variables(session, kernels, tmp_path):
    masks = v1.Masks()
    recorder = v1.Recorder(tmp_path, every=1, masks=masks)
    begun(session, masks)
    counted = masks.session = Counted(session)
    # All masks, which of them hold something, all values, and one for all that is written.
    for command in (
        lambda: recorder.restart(0),
        lambda: masks.prune_smallest(0.5),
        lambda: masks.prune_smallest(0.7, scope="layer"),
        lambda: recorder.record(1),
        masks.sparsity,
        masks.zeros,
        masks.audit,
    ):
        assert runs_of(counted, command) <= 5 < MANY
    recorder.close()
    assert masks.sparsity() == round(0.7 * 24) / 24


def test_the_ops_of_a_variable_are_few(kernels):
    def added(build):
        before = len(tf.get_default_graph().get_operations())
        build()
        return (len(tf.get_default_graph().get_operations()) - before) / MANY

    assert added(v1.Masks) < 60
    optimizer = v1.Masks().wrap(tf.train.GradientDescentOptimizer(0.1))
    plain = added(
        lambda: tf.train.GradientDescentOptimizer(0.1).minimize(sum(map(tf.norm, kernels)))
    )
    held = added(lambda: optimizer.minimize(sum(map(tf.norm, kernels))))
    assert held - plain < 20


def test_a_command_that_fails_has_written_nothing(session, kernels):
    masks = v1.Masks()
    begun(session, masks)
    before = value_of(session, "net/0/w")

    def prune_and_fail():
        with masks.site.at_once():
            masks.prune("net/0/w", channels=[1])
            masks.freeze("net/0/w", channels=[1])

    with pytest.raises(InvalidArgument, match="Could not freeze 'net/0/w'"):
        prune_and_fail()
    assert masks.kept["net/0/w"].all()
    assert (value_of(session, "net/0/w") == before).all()


def test_a_command_that_fails_has_reset_no_slots(session, kernels):
    masks = v1.Masks()
    optimizer = masks.wrap(tf.train.MomentumOptimizer(0.1, 0.9))
    train = optimizer.minimize(sum(map(tf.norm, kernels)))
    begun(session, masks)
    session.run(train)
    masks.prune("net/0/w", channels=[1])
    slot = optimizer.get_slot(kernels[0], "momentum")
    before = session.run(slot)
    assert before[:, 1].all()

    def regrow_and_fail():
        with masks.site.at_once():
            masks.regrow("net/0/w")
            masks.prune("net/0/w", channels=[9])

    with pytest.raises(InvalidArgument, match="expected numbers from 0 to 3, got 9"):
        regrow_and_fail()
    assert not masks.kept["net/0/w"][:, 1].any()
    assert (session.run(slot) == before).all()


def test_what_is_written_is_read_before_it_is_there(session, kernels):
    masks = v1.Masks()
    begun(session, masks)
    with masks.site.at_once():
        masks.prune("net/0/w", channels=[1])
        assert not masks.kept["net/0/w"][:, 1].any()
        assert masks.sparsity("net/0/w") == masks.zeros("net/0/w") == 0.25
        assert (value_of(session, "net/0/w") != 0).all()
    assert (value_of(session, "net/0/w")[:, 1] == 0).all()
