"""What layers learned from data without training."""

from __future__ import annotations

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import layers

from tb_pastnet import clone_network
from tests.clones import equal


@pytest.mark.parametrize("mode", ["int", "multi_hot", "count", "tf_idf"])
@pytest.mark.parametrize("weights", ["copy", "fresh"])
def test_vocabularies_are_kept(mode, weights):
    words, ids = layers.StringLookup(output_mode=mode), layers.IntegerLookup(output_mode=mode)
    text = layers.TextVectorization(output_mode=mode)
    words.adapt(["a", "b", "line\nbreak"])
    ids.adapt([5, 7, 7])
    text.adapt(["a b", "b c"])
    inputs = [keras.Input((2,), dtype=kind) for kind in ("string", "int64")]
    inputs.append(keras.Input((), dtype="string"))
    outputs = [layer(x) for layer, x in zip((words, ids, text), inputs, strict=True)]
    copy = clone_network(inputs, outputs, weights=weights)
    data = [
        tf.constant([["line\nbreak", "z"]]),
        tf.constant([[7, 9]], "int64"),
        tf.constant(["b z"]),
    ]
    assert equal(copy(data), keras.Model(inputs, outputs)(data))
    found = [one for one in copy.layers if isinstance(one, layers.StringLookup)]
    assert "line\nbreak" in found[0].get_vocabulary()


@pytest.mark.parametrize("weights", ["copy", "fresh"])
def test_what_adapt_learned_is_kept(weights):
    normal, buckets = layers.Normalization(), layers.Discretization(num_bins=3)
    data = np.array([[0.0], [1.0], [2.0], [9.0]], "f")
    normal.adapt(data)
    buckets.adapt(data)
    x = keras.Input((1,))
    copy = clone_network(x, [normal(x), buckets(x)], weights=weights)
    # Mean 3 and variance (9 + 4 + 1 + 36) / 4.
    np.testing.assert_allclose(copy(data)[0], (data - 3) / np.sqrt(12.5), rtol=1e-6)
    assert equal(copy(data)[1], buckets(data))
