"""The networks that benchmarks share, from either Keras: that of TensorFlow, or tf-keras."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

BATCH = 64


class Task(NamedTuple):
    """A network and one batch for it.

    Attributes:
        model: not compiled; it gives logits.
        x: float32 images or vectors, or int32 tokens, (batch, …).
        y: int64 classes, (batch,) or one for each token.
    """

    model: Any
    x: NDArray[Any]
    y: NDArray[np.int64]

    @property
    def words(self) -> str:
        """Its size and its batch, for the reader of a table."""
        shape = " × ".join(str(size) for size in self.x.shape[1:])
        return f"{self.model.count_params():,} weights, batch of {len(self.x)}: {shape}"


def cnn(keras: Any) -> Task:
    """The small CNN: four convolutions and two Dense layers, 2.8 M weights in 12 variables."""
    layers: list[Any] = []
    for filters in (64, 128, 256, 512):
        layers.append(keras.layers.Conv2D(filters, 3, padding="same", activation="relu"))
        layers.append(keras.layers.MaxPooling2D())
    layers.append(keras.layers.Flatten())
    layers.append(keras.layers.Dense(608, activation="relu"))
    return _task(keras, layers, (32, 32, 3))


def small(keras: Any) -> Task:
    """200 small variables: a hundred Dense layers of 64 units, 0.41 M weights together."""
    layers = [keras.layers.Dense(64, activation="relu") for _ in range(99)]
    return _task(keras, layers, (64,))


def tiny(keras: Any) -> Task:
    """Two Dense layers, only to see that a benchmark works."""
    return _task(keras, [keras.layers.Dense(8, activation="relu")], (8,))


def resnet_50(keras: Any) -> Task:
    """ResNet-50 of keras.applications for ten classes, 23.6 M weights in 320 variables.

    The batch is 32 images of 128 × 128: with 224 × 224, as for ImageNet, a step takes three times
    as long, so that all shares would look smaller.
    """
    size = (128, 128, 3)
    body = keras.applications.ResNet50(
        weights=None, include_top=False, pooling="avg", input_shape=size
    )
    model = keras.Model(body.inputs, keras.layers.Dense(10)(body.outputs[0]))
    return Task(model, *_batch(32, size))


WIDTH, HEADS, BLOCKS, TOKENS, VOCABULARY = 512, 8, 6, 64, 19_009


def transformer(keras: Any) -> Task:
    """A language model, 38 M weights in 101 variables: it tells the next one after 64 tokens each.

    Six blocks, normalized before each half: attention of 8 heads with a causal mask (which makes an
    embedding of places dispensable), and two Dense layers of 2,048 and 512. 19,009 tokens are
    embedded in 512 numbers, and told by a Dense layer of its own. The batch is 32 sequences.
    """
    layers = keras.layers
    tokens = keras.Input((TOKENS,), dtype="int32")
    x = layers.Embedding(VOCABULARY, WIDTH)(tokens)
    for _ in range(BLOCKS):
        y = layers.LayerNormalization()(x)
        x = x + layers.MultiHeadAttention(HEADS, WIDTH // HEADS)(y, y, use_causal_mask=True)
        y = layers.Dense(4 * WIDTH, activation="gelu")(layers.LayerNormalization()(x))
        x = x + layers.Dense(WIDTH)(y)
    model = keras.Model(tokens, layers.Dense(VOCABULARY)(layers.LayerNormalization()(x)))
    text = np.random.default_rng(0).integers(0, VOCABULARY, (32, TOKENS + 1))
    return Task(model, text[:, :-1].astype(np.int32), text[:, 1:])


TASKS = {"CNN": cnn, "200 small variables": small}
"""Those whose steps are short."""

ALL_TASKS = {
    "CNN": cnn,
    "ResNet-50": resnet_50,
    "transformer": transformer,
    "200 small variables": small,
}


def _task(keras: Any, layers: list[Any], shape: tuple[int, ...]) -> Task:
    model = keras.Sequential([keras.Input(shape), *layers, keras.layers.Dense(10)])
    return Task(model, *_batch(BATCH, shape))


def _batch(size: int, shape: tuple[int, ...]) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    rng = np.random.default_rng(0)
    return rng.random((size, *shape), np.float32), rng.integers(0, 10, size)
