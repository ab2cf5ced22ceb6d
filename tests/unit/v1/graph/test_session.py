"""A graph and its session as the place of variables."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from tb_pastnet.core.axes import explicit_axis
from tb_pastnet.core.statistics import MOVED, channel_statistics
from tb_pastnet.errors import InvalidArgument
from tb_pastnet.v1.graph.graph_variables import graph_variables
from tb_pastnet.v1.graph.session import GraphSession
from tests.sources import source_of

VALUE = np.arange(12, dtype=np.float32).reshape(4, 3)


@pytest.fixture(params=[None, tf.fixed_size_partitioner(2)], ids=["whole", "partitioned"])
def variable(request, graph, kind):
    tf.get_variable("w", (4, 3), partitioner=request.param)
    return graph_variables()[0]


def test_a_variable_reads_and_writes_arrays_and_builds_for_tensors(variable):
    site = GraphSession()
    face = site.variable_of(variable, writable=True)
    doubled = face.assign(2 * tf.convert_to_tensor(face))
    tf.get_default_graph().finalize()
    with tf.Session() as session, session.as_default():
        face.assign(VALUE)
        np.testing.assert_array_equal(face.numpy(), VALUE)
        session.run(doubled)
        np.testing.assert_array_equal(face.numpy(), 2 * VALUE)
        face.assign(VALUE + 1)
        np.testing.assert_array_equal(face.numpy(), VALUE + 1)
    assert (face.shape.as_list(), face.dtype, face.name) == ([4, 3], tf.float32, "w")
    assert site.variable_of(variable) is face


@pytest.mark.parametrize("control", ["v1", "v2"])
def test_statistics_are_those_of_the_definition(variable, control, request):
    was = tf.control_flow_v2_enabled()
    (tf.enable_control_flow_v2 if control == "v2" else tf.disable_control_flow_v2)()
    request.addfinalizer(tf.enable_control_flow_v2 if was else tf.disable_control_flow_v2)
    site, axis = GraphSession(), explicit_axis(-1, (4, 3), "w")
    face = site.variable_of(variable, writable=True)
    measured = source_of([face], [axis], 2, site)
    values = [VALUE, VALUE + np.eye(3)[1], VALUE * [1, np.nan, 1e30], VALUE]
    values = [value.astype("f") for value in values]
    with tf.Session() as session, session.as_default():
        face.assign(VALUE)
        measured.copy(0)
        measured.copy(1)
        for past, value in pairwise(values):
            face.assign(value)
            for number, before in ((0, past), (1, VALUE)):
                found = measured.compare(number, replace=number == 0)
                expected = channel_statistics(value, before, axis)
                np.testing.assert_allclose(found[:MOVED], expected[:MOVED], rtol=1e-6)
        np.testing.assert_array_equal(measured.past(0)[0], VALUE)


def test_own_variables_are_in_no_collection(graph):
    made = GraphSession().variable(lambda: tf.ones((2, 3)), "copy")
    assert graph.collections == []
    assert made.name == "pastnet/copy"


@pytest.mark.usefixtures("control_flow")
def test_initialized_leaves_what_has_values(graph):
    site = GraphSession()
    two = [site.own(tf.ones(2), name).variable.parts[0] for name in ("a", "b")]
    begin = site.initialized(two)
    assert graph.get_collection(tf.GraphKeys.TABLE_INITIALIZERS) == [begin]
    set_both = [one.assign([5.0, 6.0]) for one in two]
    with tf.Session() as session:
        session.run(tf.tables_initializer())
        assert session.run(two[1]).tolist() == [1, 1]
        session.run(set_both)
        session.run(begin)
        assert session.run(two[0]).tolist() == [5, 6]


def test_what_is_built_around_stays_outside(graph):
    gate = tf.placeholder(tf.float32)
    with tf.control_dependencies([gate]), tf.Session().as_default():
        assert GraphSession().fetch(lambda: tf.ones(2))().tolist() == [
            1,
            1,
        ]  # without feeding the gate


def test_a_session_is_needed(graph):
    read = GraphSession().fetch(lambda: tf.ones(2))
    text = "Could not run ops of a graph: expected a session for it, got none. Pass session="
    with pytest.raises(InvalidArgument, match=text):
        read()
    with tf.Session(graph=tf.Graph()).as_default(), pytest.raises(InvalidArgument, match=text):
        read()


def test_a_given_session_goes_before_the_default_one(graph):
    site = GraphSession()
    made = site.own(tf.zeros(()), "a")
    add = made.variable.parts[0].assign_add(1.0)
    sessions = [tf.Session(), tf.Session()]
    for session in sessions:
        session.run(made.variable.parts[0].initializer)
    sessions[1].run(add)
    with sessions[0].as_default():
        assert made.numpy() == 0
        with site.using(sessions[1]), site.using(None):
            assert made.numpy() == 1
        assert made.numpy() == 0


def test_a_finalized_graph_is_refused(graph):
    graph.finalize()
    with pytest.raises(InvalidArgument, match="Could not add ops: expected a graph that accepts"):
        GraphSession()


def test_another_graph_than_that_of_the_masks_is_refused(graph):
    site = GraphSession()
    assert site.of(None) is site.of(graph) is site
    with pytest.raises(InvalidArgument, match="expected the masks' graph, got another"):
        site.of(tf.Graph())
