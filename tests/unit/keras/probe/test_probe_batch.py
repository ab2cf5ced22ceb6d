from __future__ import annotations

import re
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import tensorflow as tf

from tb_pastnet.errors import InvalidArgument
from tb_pastnet.format.function_change import Input
from tb_pastnet.keras.probe.probe import probe_batch

X = np.ones((4, 3), np.float32)


@pytest.mark.parametrize(
    ("batch", "inputs"),
    [
        (X, [Input("", (4, 3), "float32")]),
        (tf.constant(X), [Input("", (4, 3), "float32")]),
        (tf.Variable(X), [Input("", (4, 3), "float32")]),
        (np.arange(4), [Input("", (4,), "int64")]),
        (np.array([b"a", b"b"]), [Input("", (2,), "string")]),
        ([X, X[:, 0]], [Input("0", (4, 3), "float32"), Input("1", (4,), "float32")]),
        ((X, X), [Input("0", (4, 3), "float32"), Input("1", (4, 3), "float32")]),
        ((X, 0.5, None), [Input("0", (4, 3), "float32")]),
        ({"b": X, "a": [X]}, [Input("a/0", (4, 3), "float32"), Input("b", (4, 3), "float32")]),
    ],
)
def test_what_a_batch_is(batch, inputs):
    found = probe_batch(batch)
    assert [replace(one, digest="") for one in found.inputs] == inputs
    assert found.samples == inputs[0].shape[0]


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int64", "bool", "string"])
def test_a_digest_tells_batches_apart(dtype):
    numbers = X.copy()
    numbers[0, 0] = 0
    make = tf.strings.as_string if dtype == "string" else partial(tf.cast, dtype=dtype)
    values, other = make(X), make(numbers)
    digests = [probe_batch(one).inputs[0].digest for one in (values, tf.identity(values), other)]
    assert digests[0] == digests[1] != digests[2]
    assert len(digests[0]) == 16
    if dtype != "string":
        assert probe_batch(values.numpy()).inputs[0].digest == digests[0]


def test_a_tuple_is_the_arguments_and_anything_else_is_one():
    assert len(probe_batch((X, 0.5)).arguments) == 2
    assert len(probe_batch([X, X]).arguments) == 1


@pytest.mark.parametrize("make", [np.array, tf.Variable], ids=["array", "variable"])
def test_it_is_a_copy(make):
    batch = make(X)
    (tensor,) = probe_batch(batch).arguments
    batch.assign(2 * X) if isinstance(batch, tf.Variable) else batch.fill(2)
    assert (tensor.numpy() == 1).all()


@pytest.mark.parametrize(
    ("batch", "text"),
    [
        (3.0, "expected at least one array or tensor, got a float without one"),
        ([], "expected at least one array or tensor, got a list without one"),
        ([[1.0, 2.0]], "expected at least one array or tensor, got a list without one"),
        (tf.data.Dataset.range(3), "expected at least one array or tensor, got a "),
        (X[:0], "expected samples along the first axis, got shape (0, 3)"),
        (X[:, :0], "expected samples along the first axis, got shape (4, 0)"),
        (np.float32(3), "expected samples along the first axis, got shape ()"),
        ({"a": X, "b": X[1:]}, "expected 4 samples in each input, got shape (3, 3) in 'b'"),
        (np.array([None, X], object), "expected arrays of numbers or strings, got one of objects"),
    ],
)
def test_what_is_no_batch_is_refused(batch, text):
    with pytest.raises(InvalidArgument, match=re.escape(f"Could not use the probe: {text}")):
        probe_batch(batch)
