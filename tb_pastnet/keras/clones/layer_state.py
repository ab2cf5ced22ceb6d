"""What layers hold besides their config: brought from an original to its copy."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import keras
import tensorflow as tf

from tb_pastnet.errors import InvalidArgument
from tb_pastnet.keras.clones.layer_copies import inside, of_keras
from tb_pastnet.keras.clones.proof import Pair
from tb_pastnet.keras.model.walk import tf_variable

Initializer = Callable[..., Any]


def layer_pairs(pairs: Iterable[Pair], name: str) -> list[Pair]:
    """Layers that were copied, and their copies, with all layers in them."""
    unique: dict[int, Pair] = {}
    for layer, copy in pairs:
        originals, copies = inside(layer), inside(copy)
        kinds = [[type(inner).__name__ for inner in each] for each in (originals, copies)]
        if kinds[0] != kinds[1]:
            raise InvalidArgument(
                f"Could not clone {name}: expected {layer.name!r} to be made of "
                f"{_listed(kinds[0])}, got {_listed(kinds[1])}. Make all layers inside of it in "
                f"its __init__ or build."
            )
        for pair in zip(originals, copies, strict=True):
            unique.setdefault(id(pair[0]), pair)
    return list(unique.values())


def take_over(pairs: Iterable[Pair], *, saved: bool) -> None:
    """Takes over what layers hold other than in variables, by their own ways of being saved.

    Where not all is `saved`, that is only what `adapt` learned, such as vocabularies: no
    initializer draws that.
    """
    for layer, copy in pairs:
        if callable(getattr(layer, "get_vocabulary", None)):
            # That of a TextVectorization is in a layer inside of it.
            if len(inside(layer)) == 1:
                _take_vocabulary(layer, copy)
            continue
        own = saved and not of_keras(type(layer), "load_own_variables")
        if layer.built and (own or callable(getattr(layer, "adapt", None))):
            store: dict[str, Any] = {}
            layer.save_own_variables(store)
            copy.load_own_variables(
                {key: tf.convert_to_tensor(value).numpy() for key, value in store.items()}
            )
        if saved and hasattr(layer, "load_assets"):
            with tempfile.TemporaryDirectory() as folder:
                layer.save_assets(folder)
                copy.load_assets(folder)


def listed_variables(pairs: Iterable[Pair], name: str) -> list[Pair]:
    """The tf.Variables that layers list, each with that of the copy."""
    variables: list[Pair] = []
    for layer, copy in pairs:
        own, copied = layer.variables, copy.variables
        if len(own) != len(copied):
            raise InvalidArgument(
                f"Could not clone {name}: expected {layer.name!r} to have {len(own)} variables, "
                f"got {len(copied)} in its copy. Make all of them in its __init__ or build."
            )
        variables += [(tf_variable(a), tf_variable(b)) for a, b in zip(own, copied, strict=True)]
    for pair in variables:
        places = ["on one device", "in replicas of a tf.distribute.Strategy"]
        own, got = (isinstance(variable, tf.distribute.DistributedValues) for variable in pair)
        if own != got:
            raise InvalidArgument(
                f"Could not clone {name}: expected {pair[0].name!r} to be {places[own]} in the "
                f"copy too, got it {places[got]}. Clone it in the scope that it was made in."
            )
    return variables


def copy_flags(pairs: Sequence[Pair]) -> None:
    """Sets `trainable` as in the originals: of layers and of single variables."""
    # Setting it on a layer sets it on all inside: from the outside to the inside, that is until
    # nothing changes any more.
    for _ in range(len(pairs) + 1):
        changed = [(layer, copy) for layer, copy in pairs if layer.trainable != copy.trainable]
        for layer, copy in changed:
            copy.trainable = layer.trainable
        if not changed:
            break
    for layer, copy in pairs:
        for variable, twin in zip(layer.variables, copy.variables, strict=True):
            if variable.trainable != twin.trainable:
                twin.trainable = variable.trainable


def assign(pairs: Iterable[Pair]) -> None:
    """Gives tf.Variables the values of their originals."""
    for original, copy in pairs:
        copy.assign(original.read_value())


def draw(variables: Iterable[tf.Variable], initializer: Initializer, name: str) -> None:
    """Gives those variables that are trainable and floating values of an initializer."""
    for variable in variables:
        if variable.trainable and variable.dtype.is_floating:
            value = tf.convert_to_tensor(
                initializer(shape=tuple(variable.shape), dtype=variable.dtype.name)
            )
            if value.shape != variable.shape:
                raise InvalidArgument(
                    f"Could not initialize {variable.name!r} in a clone of {name}: expected shape "
                    f"{variable.shape}, got {value.shape}. Return values of the shape that the "
                    f"initializer is called with."
                )
            variable.assign(tf.cast(value, variable.dtype))


def _take_vocabulary(layer: keras.layers.Layer, copy: keras.layers.Layer) -> None:
    weights = getattr(layer, "idf_weights_const", None)
    if weights is not None:
        copy.set_vocabulary(layer.get_vocabulary(), idf_weights=weights.numpy())
    elif layer.get_vocabulary() != copy.get_vocabulary():
        copy.set_vocabulary(layer.get_vocabulary())
    if layer.get_vocabulary() != copy.get_vocabulary():
        raise InvalidArgument(
            f"Could not clone layer {layer.name!r}: expected its vocabulary of "
            f"{layer.vocabulary_size()} tokens, got {copy.vocabulary_size()} in the copy. Pass the "
            f"vocabulary to the layer's constructor."
        )


def _listed(kinds: Sequence[str]) -> str:
    return ", ".join(kinds[1:]) or "no layers"
