"""A training step as users write it, and what is done with a network beside it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import keras
import tensorflow as tf

from benchmarks._models import Task
from benchmarks._pairs import Action


def ready(make: Callable[[Any], Task]) -> Task:
    """A network that is ready to train.

    Args:
        make: makes it, from a Keras.
    """
    task = make(keras)
    task.model.compile(keras.optimizers.Adam(1e-4))
    return task


def step(task: Task) -> Action:
    """A training step of an own loop, compiled: forward, backward, Adam.

    Args:
        task: a network of `ready`.
    """
    model, optimizer = task.model, task.model.optimizer
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    x, y = tf.constant(task.x), tf.constant(task.y)
    optimizer.build(model.trainable_variables)

    def train() -> Any:
        with tf.GradientTape() as tape:
            value = loss(y, model(x, training=True))
        variables = model.trainable_variables
        optimizer.apply(tape.gradient(value, variables), variables)
        return value

    return waited(tf.function(train))


def waited(action: Action) -> Action:
    """An action that is over when it is over on every device, too."""

    def whole() -> None:
        action()
        tf.test.experimental.sync_devices()

    return whole
