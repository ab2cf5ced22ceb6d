"""Summary ops of channels, as a FileWriter of TF1 writes them."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from tb_pastnet import v1
from tb_pastnet.core.axes import explicit_axis
from tb_pastnet.core.quantize import dequantize
from tb_pastnet.core.statistics import KEPT, TRAINABLE, channel_statistics
from tb_pastnet.errors import InvalidArgument
from tb_pastnet.format.block import decode_block
from tb_pastnet.format.description import Series, decode_series

pytestmark = pytest.mark.usefixtures("graph")
CURRENT = np.arange(12, dtype=np.float32).reshape(3, 4)
PAST = CURRENT - np.array([0, 1, 0, 0.5], np.float32)


def decoded(serialized, step):
    """Tag, metadata and statistics of a summary."""
    (value,) = tf.Summary.FromString(serialized).value
    block = decode_block(value.tensor.tensor_content, tag=value.tag, step=step, lineage=0)
    assert (block.steps.tolist(), block.past_steps.tolist()) == ([step], [step - 1])
    return value.tag, value.metadata, dequantize(block.codes[:, 0])


@pytest.mark.parametrize("partitioner", [None, tf.fixed_size_partitioner(3)])
def test_a_variable_and_its_past(kind, partitioner):
    with tf.variable_scope("net"):
        weight = tf.get_variable("w", (3, 4), partitioner=partitioner)
    past = tf.placeholder(tf.float32, (3, 4))
    step = tf.train.get_or_create_global_step()
    with tf.name_scope("train"):
        made = v1.summary.channels("net/w", weight, past)
    assert tf.get_collection(tf.GraphKeys.SUMMARIES) == [made]
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(tf.assign(step, 7))
        value = session.run(tf.convert_to_tensor(weight))
        tag, metadata, found = decoded(session.run(tf.summary.merge_all(), {past: PAST}), 7)
    assert tag == "train/net/w"
    assert metadata.plugin_data.plugin_name == "pastnet"
    assert decode_series(metadata.plugin_data.content) == Series((3, 4), "-1", 4)
    expected = channel_statistics(value, PAST, explicit_axis(-1, (3, 4), "w"))
    np.testing.assert_allclose(found, expected, rtol=0.023)


def test_masks_axis_and_collections():
    made = v1.summary.channels(
        "w",
        CURRENT,
        PAST,
        kept=np.arange(12).reshape(3, 4) > 3,
        trainable=False,
        channel_axis=0,
        step=tf.constant(3),
        collections=["mine"],
    )
    assert (tf.get_collection("mine"), tf.get_collection(tf.GraphKeys.SUMMARIES)) == ([made], [])
    with tf.Session() as session:
        _, _, found = decoded(session.run(made), 3)
    assert found[KEPT].tolist() == [0, 1, 1]
    assert found[TRAINABLE].tolist() == [0, 0, 0]


def test_it_reads_a_variable_when_it_runs(kind):
    """After an update, where control dependencies say so."""
    weight = tf.get_variable("w", initializer=CURRENT)
    with tf.control_dependencies([weight.assign_add(np.ones((3, 4)))]):
        made = v1.summary.channels("w", weight, CURRENT, step=1)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        np.testing.assert_allclose(decoded(session.run(made), 1)[2][2], np.sqrt(3), rtol=0.023)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"past": PAST[:2]}, r"expected shape \(3, 4\), got \(2, 4\)"),
        ({"current": CURRENT.astype(int)}, "expected a value of floating dtype, got int64"),
        ({"kept": [1, 0]}, r"expected a kept mask of shape \(3, 4\), got \(2,\)"),
        ({"channel_axis": 2}, "Could not use axis 2 of 'w' for its channels"),
        ({"step": None}, "Could not write the channels of 'w': expected a step, got none"),
    ],
)
def test_what_cannot_be_is_refused(arguments, text):
    given = {"current": CURRENT, "past": PAST, "step": 1, **arguments}
    with pytest.raises(InvalidArgument, match=text):
        v1.summary.channels("w", **given)
    assert not tf.get_collection(tf.GraphKeys.SUMMARIES)


def test_a_summary_has_the_name_of_its_variable(kind, session):
    current = tf.get_variable("net/w", (2, 3))
    made = [v1.summary.channels("net/w", current, current, step=1) for _ in range(2)]
    session.run(tf.global_variables_initializer())
    summary = tf.Summary.FromString(session.run(tf.summary.merge(made)))
    assert [value.tag for value in summary.value] == ["net/w", "net/w_1"]
