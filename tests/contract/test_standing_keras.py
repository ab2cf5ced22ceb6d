"""Why variables of Keras are idle, as far as their optimizers show it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

import tb_pastnet as pastnet

STEPS = 44
X = np.random.default_rng(0).normal(size=(16, 4)).astype("f4")
Loss = Callable[[Any, Any], Any]


class Net(keras.Model):  # type: ignore[misc]
    """Two layers, and one aside whose outputs the loss may use."""

    def __init__(self) -> None:
        super().__init__()
        keras.utils.set_random_seed(1)
        self.a = keras.layers.Dense(8, "tanh", name="a")
        self.b, self.aside = (
            keras.layers.Dense(width, name=name) for name, width in (("b", 3), ("aside", 2))
        )

    def call(self, x: Any) -> Any:
        hidden = self.a(x)
        return self.b(hidden), self.aside(hidden)


def without(outputs: Any, number: Any) -> Any:
    """A loss that has a factor of 0 for the layer aside."""
    return tf.reduce_mean((outputs[0] - 1.0) ** 2) + 0.0 * tf.reduce_sum(outputs[1])


def all_of_it(outputs: Any, number: Any) -> Any:
    return tf.reduce_mean((outputs[0] - 1.0) ** 2) + tf.reduce_mean((outputs[1] + 1.0) ** 2)


def infinite(outputs: Any, number: Any) -> Any:
    return all_of_it(outputs, number) * float("inf")


def in_phases(outputs: Any, number: Any) -> Any:
    first = tf.cast((number // 8) % 2, tf.float32)
    own, other = (tf.reduce_mean((each - 1.0) ** 2) for each in outputs)
    return first * own + (1.0 - first) * other


def record(
    path: Path,
    make: Callable[[Net], Any],
    loss: Loss,
    after: Callable[[Net], Any] = lambda net: None,
    trained: Callable[[Net], Any] = lambda net: net.trainable_variables,
) -> tuple[Any, Any]:
    """The user's own loop, with one optimizer or several that have each their own variables."""
    net = Net()
    net(X)
    made = make(net)
    each = made if isinstance(made, list) else [(made, trained(net))]
    optimizers = [optimizer for optimizer, _ in each]
    for optimizer, own in each:
        optimizer.build(own)
    given = optimizers[0] if len(optimizers) == 1 else optimizers

    def step(number: int) -> None:
        with tf.GradientTape(persistent=True) as tape:
            value = loss(net(X + number / 100), number)
            scaled = [optimizer.scale_loss(value) for optimizer in optimizers]
        for (optimizer, own), total in zip(each, scaled, strict=True):
            optimizer.apply(tape.gradient(total, own), own)

    with pastnet.Recorder(path, net, every=1, learning_rate=given) as recorder:
        for number in range(1, STEPS + 1):
            step(number)
            after(net)
            recorder.record(number)
        recorder.flush()
        before = pastnet.read(path).findings()
    assert not recorder.notes.counts()
    return before, pastnet.read(path).findings()


def causes(findings: Any) -> dict[str, str]:
    own = (each for each in findings if each.kind == "stalled")
    return {layer: each.cause for each in own for layer in each.layers}


def of(name: str, *settings: Any, **more: Any) -> Callable[[Net], Any]:
    return lambda net: getattr(keras.optimizers, name)(*settings, **more)


def several(net: Net) -> Any:
    rest = [*net.a.trainable_variables, *net.b.trainable_variables]
    adam, sgd = keras.optimizers.Adam(1e-2), keras.optimizers.SGD(0.0)
    return [(adam, rest), (sgd, net.aside.trainable_variables)]


def restored(net: Net) -> None:
    if not hasattr(net, "saved"):
        net.saved = [np.full(each.shape, 0.5, "f4") for each in net.aside.weights]
    net.aside.set_weights(net.saved)


def scaled(net: Net) -> Any:
    return keras.optimizers.LossScaleOptimizer(keras.optimizers.Adam(1e-2), initial_scale=2.0**15)


def not_aside(net: Net) -> Any:
    return [*net.a.trainable_variables, *net.b.trainable_variables]


ALL = ("a", "b", "aside")
STILL: dict[str, tuple[Any, Loss, dict[str, Any], dict[str, str]]] = {
    "not in the optimizer": (
        of("Adam", 1e-2), all_of_it, {"trained": not_aside}, {"aside": "no_optimizer"},
    ),
    "zero gradient": (of("Adam", 1e-2), without, {}, {"aside": "zero_gradient"}),
    "zero gradient, momentum": (
        of("SGD", 0.05, momentum=0.9), without, {}, {"aside": "zero_gradient"},
    ),
    "decay": (of("AdamW", 1e-2, weight_decay=0.01), without, {}, {"aside": "weight_decay"}),
    "rate 0": (of("Adam", 0.0), all_of_it, {}, dict.fromkeys(ALL, "rate")),
    "rate 0 of an optimizer": (several, all_of_it, {}, {"aside": "group_rate"}),
    "restored": (of("Adam", 1e-2), all_of_it, {"after": restored}, {"aside": "thrown_away"}),
    "no slots": (of("SGD", 0.05), without, {}, {"aside": "unknown"}),
}  # fmt: skip
AT_END = {"zero_gradient", "rate", "unknown"}


@pytest.mark.parametrize("name", STILL)
def test_causes_of_standing_still(tmp_path: Path, name: str) -> None:
    make, loss, more, expected = STILL[name]
    before, after = record(tmp_path, make, loss, **more)
    assert causes(after) == expected
    assert causes(before) == {k: v for k, v in expected.items() if v not in AT_END}


@pytest.mark.parametrize("sound", [0, 1])
def test_skipped_updates(tmp_path: Path, sound: int) -> None:
    def loss(outputs: Any, number: int) -> Any:
        return (all_of_it if number <= sound else infinite)(outputs, number)

    before, _ = record(tmp_path, scaled, loss)
    assert causes(before) == dict.fromkeys(ALL, "skipped")


SLOW: dict[str, tuple[Any, Loss, dict[str, Any]]] = {
    "all train": (of("Adam", 1e-2), all_of_it, {}),
    "phases": (of("Adam", 1e-2), in_phases, {}),
    "phases, AdamW": (of("AdamW", 1e-2), in_phases, {}),
    "accumulation": (of("Adam", 1e-2, gradient_accumulation_steps=4), all_of_it, {}),
    "scaled": (scaled, all_of_it, {}),
}


@pytest.mark.parametrize("name", SLOW)
def test_what_learns_is_not_stalled(tmp_path: Path, name: str) -> None:
    make, loss, more = SLOW[name]
    before, after = record(tmp_path, make, loss, **more)
    assert causes(before) == causes(after) == {}
