"""The step of tfmot against its own stock step; runs in the environment of the peer.

Prints JSON: of each network the ratios of interleaved pairs, with a mask update in each step and
without any.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
from typing import Any

os.environ["TF_USE_LEGACY_KERAS"] = "1"

import tensorflow as tf

from benchmarks._models import TASKS, Task
from benchmarks._pairs import Action, interleaved

# By name, as our own environment has neither.
tf_keras: Any = importlib.import_module("tf_keras")
sparsity: Any = importlib.import_module("tensorflow_model_optimization").sparsity.keras

NEVER = 10**6


def step(task: Task, model: Any) -> Action:
    """A training step of an own loop, compiled."""
    optimizer = tf_keras.optimizers.Adam(1e-4)
    loss = tf_keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    x, y = tf.constant(task.x), tf.constant(task.y)
    optimizer.build(model.trainable_variables)

    def train() -> Any:
        with tf.GradientTape() as tape:
            value = loss(y, model(x, training=True))
        variables = model.trainable_variables
        optimizer.apply_gradients(zip(tape.gradient(value, variables), variables, strict=True))
        return value

    compiled: Action = tf.function(train)
    return compiled


def pruned(task: Task, frequency: int) -> tuple[Any, Action]:
    """A network with masks that are made anew every so many steps, and its training step."""
    schedule = sparsity.PolynomialDecay(0.0, 0.8, 0, NEVER, frequency=frequency)
    model = sparsity.prune_low_magnitude(task.model, pruning_schedule=schedule)
    model.compile("adam", "mse")  # its callback asks for that
    count = sparsity.UpdatePruningStep()
    count.set_model(model)
    count.on_train_begin()
    train = step(task, model)

    def whole() -> None:
        count.on_train_batch_begin(0)
        train()

    return model, whole


def main() -> int:
    """Measures.

    Returns:
        The exit code.
    """
    ratios = {}
    for name, make in TASKS.items():
        tasks = [make(tf_keras) for _ in range(3)]
        stock = step(tasks[0], tasks[0].model)
        each, never = (pruned(*case)[1] for case in zip(tasks[1:], (1, NEVER), strict=True))
        times = interleaved(stock, each, never, pairs=9, calls=2)
        ratios[name] = (times[1:] / times[0]).tolist()
    print(json.dumps(ratios))
    return 0


if __name__ == "__main__":
    sys.exit(main())
