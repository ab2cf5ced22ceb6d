"""Whatever a user calls a variable: what is held is what was meant, or an error tells both."""

from __future__ import annotations

import random

import keras
import pytest
from keras import layers

from tb_pastnet import Masks
from tb_pastnet.errors import UnknownName

MODELS = 200
CHOSEN = ("a", "head", "dense", "dense_1", "block", "conv")


def some_layer(rng: random.Random, depth: int) -> keras.layers.Layer:
    """A layer of four numbers to four, or a model of such; named or not."""
    name = rng.choice(CHOSEN) if rng.random() < 0.3 else None
    kind = rng.choice(["dense", "norm", "sequential", "functional", "own"]) if depth else "dense"
    if kind == "dense":
        return layers.Dense(4, name=name)
    if kind == "norm":
        return layers.LayerNormalization(name=name)
    inner = some_layers(rng, depth - 1)
    if kind == "sequential":
        return keras.Sequential([keras.Input((4,)), *inner], name=name)
    if kind == "functional":
        inputs = x = keras.Input((4,))
        for layer in inner:
            x = layer(x)
        return keras.Model(inputs, x, name=name)
    return Own(inner, name)


class Own(keras.layers.Layer):
    def __init__(self, inner, name):
        super().__init__(name=name)
        self.inner = inner

    def call(self, x):
        for layer in self.inner:
            x = layer(x)
        return x


def some_layers(rng: random.Random, depth: int) -> list[keras.layers.Layer]:
    """Some, whose names differ: Keras wants that of the layers of one model."""
    made: dict[str, keras.layers.Layer] = {}
    for _ in range(rng.randint(1, 3)):
        layer = some_layer(rng, depth)
        made.setdefault(layer.name, layer)
    return list(made.values())


def some_model(seed: int) -> keras.Model:
    """A model, after some others in this process."""
    rng = random.Random(seed)
    for _ in range(rng.randint(0, 2)):
        some_layer(rng, 1)
    return keras.Sequential([keras.Input((4,)), *some_layers(rng, 3)])


def kernels(model: keras.Model) -> list[tuple[str, keras.Variable]]:
    """Each variable with its path of layer names in Keras, by a walk of the test's own."""
    found, seen = [], set()

    def walk(layer, path):
        inner = getattr(layer, "layers", None) or getattr(layer, "inner", None)
        if inner:
            for child in inner:
                walk(child, [*path, child.name])
            return
        for variable in layer.weights:
            if id(variable) not in seen:
                seen.add(id(variable))
                found.append(("/".join([*path, variable.name]), variable))

    walk(model, [])
    return found


def held(masks: Masks) -> set[int]:
    """The variables of which something is held."""
    tables = masks.state
    return {
        id(weight.found.given)
        for name, weight in tables.weights.items()
        if not masks.trainable[name].all()
    }


def freezes(model: keras.Model, wanted: object, meant: set[int], told: list[str]) -> bool:
    """Freezes by what a user writes: what was meant, or an error with all that it may mean."""
    masks, refused = Masks(model, enforce=False), ""
    try:
        masks.freeze(wanted)
    except UnknownName as error:
        refused = str(error)
    if refused:
        assert all(name in refused for name in told), (wanted, told, refused)
        return False
    assert held(masks) == meant, wanted
    masks.thaw(wanted)
    assert not held(masks)
    return True


def check(seed: int) -> tuple[int, int]:
    """All ways to call all variables of a model; how many were held, and how many refused."""
    model = some_model(seed)
    names = {id(w.found.given): n for n, w in Masks(model, enforce=False).state.weights.items()}
    found = kernels(model)
    assert len(found) == len(names)
    results = []
    for path, variable in found:
        own, meant = names[id(variable)], {id(variable)}
        assert freezes(model, variable, meant, [])
        assert freezes(model, [variable, (variable,)], meant, [])
        (listed,) = (name for name in Masks(model, enforce=False).kept if name == own)
        assert freezes(model, listed, meant, [])
        results += [freezes(model, name, meant, [own]) for name in (own, path, variable.path)]
    for layer in model._flatten_layers(include_self=False):
        if layer.weights:
            assert freezes(model, layer, {id(variable) for variable in layer.weights}, [])
    every = {id(variable) for _, variable in found}
    assert freezes(model, "*", every, [])
    return sum(results), len(results) - sum(results)


@pytest.mark.parametrize("seed", range(3))
def test_what_is_held_is_what_was_meant(seed: int) -> None:
    assert check(seed)[0] > 0


@pytest.mark.prove
def test_what_is_held_is_what_was_meant_in_many_models(figure) -> None:
    counts = [check(seed) for seed in range(MODELS)]
    held_, refused = map(sum, zip(*counts, strict=True))
    figure(f"{MODELS} models: {held_:,} names held what was meant, {refused:,} told both")
    assert held_ > 10 * refused
