from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf
from tensorboard.backend.event_processing.event_file_loader import RawEventFileLoader
from tensorboard.compat.proto import event_pb2, summary_pb2

import tb_pastnet as pastnet
from tb_pastnet.core.axes import explicit_axis
from tb_pastnet.core.quantize import dequantize
from tb_pastnet.core.statistics import KEPT, TRAINABLE, channel_statistics
from tb_pastnet.errors import InvalidArgument
from tb_pastnet.format.block import decode_block
from tb_pastnet.format.description import Series, decode_series

CURRENT = np.arange(12, dtype=np.float32).reshape(3, 4)
PAST = CURRENT - np.array([0, 1, 0, 0.5], np.float32)


class Log:
    def __init__(self, directory):
        self.directory = directory
        self.writer = tf.summary.create_file_writer(str(directory))

    def events(self):
        self.writer.flush()
        (file,) = self.directory.iterdir()
        events = map(event_pb2.Event.FromString, RawEventFileLoader(str(file)).Load())
        return [event for event in events if event.summary.value]

    def values(self):
        found = {}
        for event in self.events():
            value = event.summary.value[0]
            block = decode_block(
                value.tensor.tensor_content, tag=value.tag, step=event.step, lineage=0
            )
            assert block.past_steps.tolist() == [event.step - 1]
            found[value.tag, event.step] = dequantize(block.codes[:, 0])
        return found


@pytest.fixture
def log(tmp_path):
    log = Log(tmp_path)
    yield log
    log.writer.close()


def test_eager(log):
    with log.writer.as_default():
        written = pastnet.summary.channels("dense0/kernel", CURRENT, PAST, step=7)
    assert bool(written)
    expected = channel_statistics(CURRENT, PAST, explicit_axis(-1, (3, 4), "w"))
    (found,) = log.values().values()
    np.testing.assert_allclose(found, expected, rtol=0.022)
    assert (found[2] == 0).tolist() == [True, False, True, False]
    (event,) = log.events()
    metadata = event.summary.value[0].metadata
    assert metadata.data_class == summary_pb2.DATA_CLASS_TENSOR
    assert metadata.plugin_data.plugin_name == "pastnet"
    assert decode_series(metadata.plugin_data.content) == Series((3, 4), "-1", 4)


def test_in_a_function_under_a_scope_and_a_condition(log):
    weight = tf.Variable(CURRENT)
    shadow = pastnet.PastVariables([weight])

    @tf.function
    def step(number):
        weight.assign_add(tf.ones((3, 4)))
        with tf.name_scope("net"), tf.summary.record_if(number % 2 == 0):
            written = pastnet.summary.channels("w", weight, shadow.past[0], step=number)
        shadow.sync()
        return written

    with log.writer.as_default():
        written = [bool(step(tf.constant(n, tf.int64))) for n in range(5)]
    assert written == [True, False, True, False, True]
    assert list(log.values()) == [("net/w", 0), ("net/w", 2), ("net/w", 4)]
    for values in log.values().values():
        np.testing.assert_allclose(values[2], np.sqrt(3), rtol=0.022)


def test_without_a_writer_nothing_is_computed(monkeypatch):
    monkeypatch.setattr(tf, "numpy_function", None)
    assert not bool(pastnet.summary.channels("w", CURRENT, PAST, step=1))


def test_the_default_step(log):
    with log.writer.as_default():
        with pytest.raises(ValueError, match="No step set"):
            pastnet.summary.channels("w", CURRENT, PAST)
        tf.summary.experimental.set_step(4)
        try:
            pastnet.summary.channels("w", CURRENT, PAST)
        finally:
            tf.summary.experimental.set_step(None)
    assert list(log.values()) == [("w", 4)]


def test_masks_and_axis(log):
    kept = np.ones((3, 4))
    kept[0] = 0
    with log.writer.as_default():
        pastnet.summary.channels(
            "w", CURRENT, PAST, kept=kept, trainable=False, channel_axis=0, step=1
        )
        pastnet.summary.channels("all", CURRENT, PAST, kept=tf.constant(1.0), step=1)
    values = log.values()
    assert values["w", 1][KEPT].tolist() == [0, 1, 1]
    assert values["w", 1][TRAINABLE].tolist() == [0, 0, 0]
    assert values["all", 1][KEPT].tolist() == [1] * 4


@pytest.mark.parametrize("dtype", [tf.float16, tf.bfloat16, tf.float64])
def test_other_dtypes(log, dtype):
    with log.writer.as_default():
        pastnet.summary.channels("w", tf.cast(CURRENT, dtype), tf.cast(PAST, dtype), step=1)
    (found,) = log.values().values()
    np.testing.assert_allclose(found[2], np.sqrt(3) * np.array([0, 1, 0, 0.5]), rtol=0.022)


def test_xla_refuses(log):
    @tf.function(jit_compile=True)
    def step():
        return pastnet.summary.channels("w", CURRENT, PAST, step=1)

    with log.writer.as_default(), pytest.raises(tf.errors.InvalidArgumentError, match="PyFunc"):
        step()


def test_wrong_use_is_refused():
    with pytest.raises(
        InvalidArgument,
        match=r"Could not compare 'w' with its past copy: expected shape \(3, 4\), got \(3, 5\). Make",
    ):
        pastnet.summary.channels("w", CURRENT, np.ones((3, 5), "f"), step=1)
    with pytest.raises(InvalidArgument, match=r"expected a value of floating dtype, got int32"):
        pastnet.summary.channels("w", [1], [1], step=1)
    with pytest.raises(InvalidArgument, match=r"Could not use axis 2 of 'w' for its channels"):
        pastnet.summary.channels("w", CURRENT, PAST, channel_axis=2, step=1)
    with pytest.raises(InvalidArgument, match="a tensor or an array as past value, got None. Pass"):
        pastnet.summary.channels("w", CURRENT, None, step=1)
    with pytest.raises(InvalidArgument, match="or an array as current value, got "):
        pastnet.summary.channels("w", [[1.0], [1.0, 2.0]], PAST, step=1)
    for wrong in (0.5, np.where(CURRENT > 0, 1, 0.5), np.nan, "1"):
        with pytest.raises(InvalidArgument, match="expected a kept mask of 0 and 1, got "):
            pastnet.summary.channels("w", CURRENT, PAST, kept=wrong, step=1)
    for mask in ("kept", "trainable"):
        with pytest.raises(
            InvalidArgument, match=rf"expected a {mask} mask of shape \(3, 4\), got \(4,\)"
        ):
            pastnet.summary.channels("w", CURRENT, PAST, step=1, **{mask: np.ones(4)})
