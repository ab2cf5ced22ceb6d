"""A small network with every kind of held weight, and its twin that a stock Keras trains."""

from __future__ import annotations

import functools
from typing import Any

import keras
import numpy as np
import tensorflow as tf

import tb_pastnet as pastnet

SHAPES = {"one/kernel": (6, 5), "one/bias": (5,), "two/kernel": (5, 3), "two/bias": (3,)}


def network(*, built: bool = True, **compiled: Any) -> Any:
    """Two dense layers, always from the same values; compiled if told an optimizer.

    An optimizer that isn't `built` makes its slots in the first step, which is traced twice for it.
    """
    keras.utils.set_random_seed(3)
    layers = [
        keras.layers.Dense(5, name="one", activation="tanh"),
        keras.layers.Dense(3, name="two"),
    ]
    model = keras.Sequential([keras.Input((6,)), *layers])
    generator = np.random.default_rng(5)
    model.set_weights([generator.normal(size=shape).astype("f") for shape in SHAPES.values()])
    if compiled:
        model.compile(loss="mse", **compiled)
        if built:
            model.optimizer.build(model.trainable_variables)
    return model


def data(rows: int = 24) -> tuple[Any, Any]:
    """Inputs and targets."""
    generator = np.random.default_rng(7)
    return (
        generator.normal(size=(rows, 6)).astype("f"),
        generator.normal(size=(rows, 3)).astype("f"),
    )


def hold_some(masks: Any) -> None:
    """Prunes and freezes single weights and whole channels, of kernels and of biases."""
    elements = np.random.default_rng(11).random(SHAPES["one/kernel"])
    masks.prune("one/kernel", kept=elements > 0.3)
    masks.freeze("one/kernel", trainable=elements < 0.7)
    masks.prune("one/bias", kept=[1, 0, 1, 1, 1])
    masks.freeze("one/bias", channels=[3])
    masks.prune("two/kernel", channels=[0])
    masks.freeze("two/kernel", channels=[2])


def free(masks: Any) -> dict[str, Any]:
    """Where updates go through."""
    return {name: masks.kept[name] & masks.trainable[name] for name in SHAPES}


def values(model: Any) -> dict[str, Any]:
    """The weights by name."""
    return dict(zip(SHAPES, model.get_weights(), strict=True))


def bits(array: Any) -> bytes:
    """What bitwise comparisons compare: NaN and -0.0 too."""
    return np.ascontiguousarray(array).tobytes()


def held_bits(model: Any, masks: Any) -> dict[str, bytes]:
    """The held weights, bit by bit."""
    through = free(masks)
    return {name: bits(value[~through[name]]) for name, value in values(model).items()}


class Twin:
    """What a stock Keras does, with held weights put back by hand after each step.

    Args:
        start: the weights after masks were put in force.
        through: where updates go through.
        optimizer: a stock one.
    """

    def __init__(self, start: dict[str, Any], through: dict[str, Any], optimizer: Any) -> None:
        self.variables = [
            keras.Variable(start[name], name=name.replace("/", "_")) for name in SHAPES
        ]
        self.optimizer = optimizer
        self._through = through
        self._start = start

    def put_back(self) -> None:
        """By hand: NumPy alone."""
        for name, variable in zip(SHAPES, self.variables, strict=True):
            variable.assign(np.where(self._through[name], variable.numpy(), self._start[name]))

    def values(self) -> dict[str, Any]:
        """The weights by name."""
        return {n: v.numpy() for n, v in zip(SHAPES, self.variables, strict=True)}


def own_step(optimizer: Any, variables: Any, *, jit: bool = False) -> Any:
    """A step of one's own that takes gradients as they come."""

    @tf.function(jit_compile=jit)
    def step(gradients: Any) -> None:
        optimizer.apply(gradients, variables)

    return step


@functools.cache
def gradients(steps: int, seed: int = 1) -> list[list[Any]]:
    """Random gradients of every weight for a number of steps, now and then large."""
    generator = np.random.default_rng(seed)
    return [
        [
            tf.constant(
                generator.normal(scale=10.0 ** generator.integers(-2, 2), size=s), tf.float32
            )
            for s in SHAPES.values()
        ]
        for _ in range(steps)
    ]


def masks_on(model: Any, optimizer: Any = None) -> Any:
    """Masks of `hold_some`, in force."""
    masks = pastnet.Masks(model, optimizer)
    hold_some(masks)
    return masks
