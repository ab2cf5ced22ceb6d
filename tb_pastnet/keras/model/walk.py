"""Walks a model: its layers in forward order, and the variables that belong to each.

Names are the path of layer names below the root, numbered again within each parent, so they are
the same in every process and after every load. `variable.path` isn't: it changes on load.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import keras

from tb_pastnet.core.names import renumber
from tb_pastnet.errors import InvalidArgument
from tb_pastnet.keras.types import Variable
from tb_pastnet.record.weight import OwnMasks

_SIDES = ("forward_", "backward_")


@dataclass(frozen=True)
class Found:
    """A variable and its place.

    Attributes:
        layer: path of its layer; its own path for a variable of the root.
        variable: the tf.Variable that holds it; on other backends of Keras the keras.Variable. For
            a layer that owns its masks, the object that TensorFlow converts to the effective value,
            with the tf.Variable in its attribute of this name.
        types: names of the class and its bases for the table of channel axes.
        local_name: the layer's name in the layer around it.
        statistic: it isn't trained by gradients.
        given: the object that a user has: the keras.Variable, or else the tf.Variable.
        around: the Keras layers that it is in, the outermost first; if it is shared, those of each
            place.
        paths: its names in Keras, first the one below the root.
        owner: the Keras layer whose path this is; None for variables elsewhere.
        rule: its name in the table of channel axes, "" if that is `name`.
        computed: it is computed from other variables, which are listed, too.
    """

    layer: str
    name: str
    variable: Variable
    type: str
    types: tuple[str, ...] = ()
    parent_types: tuple[str, ...] = ()
    local_name: str = ""
    statistic: bool = False
    given: Any = None
    around: tuple[Any, ...] = ()
    paths: tuple[str, ...] = ()
    owner: Any = None
    rule: str = ""
    computed: bool = False
    masks: OwnMasks | None = None

    @property
    def flags(self) -> tuple[Any, ...]:
        """The objects whose `trainable` flags decide, as in Keras's `trainable_variables`."""
        # Setting a layer sets its variables; layers in between don't matter.
        return () if self.statistic else (*self.around[:1], self.given)

    @property
    def id(self) -> str:
        """The variable's path below the root."""
        return self.layer if self.layer == self.name else f"{self.layer}/{self.name}"


def layer_variables(model: keras.layers.Layer) -> list[Found]:
    """Lists the variables of a Keras model or layer in forward order, each shared one once."""
    if not (model.built or model.weights):
        raise InvalidArgument(
            f"Could not use model {model.name!r}: expected a built model, got one without "
            f"weights. Call it, or its layers, on one batch first."
        )
    return once(of_layer(model, "", (), ""))


def once(entries: Iterable[Found]) -> list[Found]:
    """Each variable at its first place, with all of its places."""
    unique: dict[int, Found] = {}
    for entry in entries:
        first = unique.setdefault(id(entry.variable), entry)
        if first is not entry:
            around, paths = (*first.around, *entry.around), (*first.paths, entry.id, *entry.paths)
            unique[id(entry.variable)] = replace(first, around=around, paths=paths)
    return list(unique.values())


def is_ready(model: keras.Model) -> bool:
    """Whether its weights exist: it is built, or, if it is never called, its layers are."""
    layer = keras.layers.Layer
    return bool(model.weights) and (
        model.built
        or all(
            each.built or each._layers or type(each).build is layer.build
            for each in model._flatten_layers(include_self=False)
        )
    )


def find_weights(layer: keras.layers.Layer) -> list[tuple[str, Any]]:
    """The name below a built layer, and the variable, of each weight trained by gradients, once."""
    weights = {
        id(entry.given): (entry.id, entry.given)
        for entry in of_layer(layer, "", (), "")
        if not entry.statistic
    }
    return list(weights.values())


def named_children(layer: keras.layers.Layer) -> list[tuple[Any, str]]:
    """The layers directly below one, with their names in paths."""
    children = _parts(layer)[0]
    return list(zip(children, _names(layer, children), strict=True))


def held_by(weight: Variable) -> Any:
    """The storage of a keras.Variable: a tf.Variable, or itself on other backends."""
    if keras.backend.backend() != "tensorflow":
        return weight
    from tb_pastnet.keras.model.tf_variable import tf_variable

    return tf_variable(weight)


def _parts(layer: keras.layers.Layer) -> tuple[list[Any], list[Any], set[int]]:
    """Sublayers, own variables, and which of these are never trainable."""
    # The only private access to Keras: only models have `layers`, and the public lists of
    # non-trainable weights include those that `trainable=False` holds.
    children = list(layer._flatten_layers(include_self=False, recursive=False))
    statistics = {id(v) for v in layer._non_trainable_variables}
    inner = {id(w) for child in children for w in child.weights}
    return children, [w for w in layer.weights if id(w) not in inner], statistics


def of_layer(
    layer: keras.layers.Layer,
    path: str,
    around: tuple[Any, ...],
    local_name: str,
    parent: Any = None,
) -> Iterator[Found]:
    """The variables of a layer at a path, as often as they are found."""
    if callable(getattr(layer, "masked_weights", None)):
        yield from _of_masked(layer, path, around, local_name, parent)
        return
    children, own, statistics = _parts(layer)
    around = (*around, layer)
    if isinstance(layer, keras.layers.RNN) and not _parts(layer.cell)[0]:
        # A cell is a part of an RNN: its variables are those of the layer.
        children, own, statistics = [], *_parts(layer.cell)[1:]
        around, types = (*around, layer.cell), _types(layer.cell)
    else:
        types = _types(layer)
    names = renumber([("Variable", weight.name) for weight in own])
    for weight, name in zip(own, names, strict=True):
        yield Found(
            layer=path or name,
            name=name,
            variable=held_by(weight),
            type=type(layer).__name__,
            types=types,
            parent_types=_types(parent) if parent is not None else (),
            local_name=local_name,
            statistic=id(weight) in statistics,
            given=weight,
            around=around,
            paths=_paths(weight, around),
            owner=layer,
        )
    for child, name in zip(children, _names(layer, children), strict=True):
        yield from of_layer(child, f"{path}/{name}" if path else name, around, name, layer)


def _of_masked(
    layer: keras.layers.Layer, path: str, around: tuple[Any, ...], local_name: str, parent: Any
) -> Iterator[Found]:
    # Like the inner layer: its masks, held values and raw weights aren't listed separately.
    masked = {id(each.weight): each for each in layer.masked_weights()}
    for entry in of_layer(layer.layer, path, (*around, layer), local_name, parent):
        each = masked.get(id(entry.given))
        yield entry if each is None else replace(entry, variable=each, masks=each)


def _paths(weight: Variable, around: tuple[Any, ...]) -> tuple[str, ...]:
    """By the current names of its layers, below the root; and its original one."""
    below = "/".join([*(layer.name for layer in around[1:]), weight.name])
    made = str(getattr(weight, "path", None) or below)
    return tuple(dict.fromkeys([below, made]))


def _names(parent: keras.layers.Layer, children: Sequence[Any]) -> list[str]:
    if not isinstance(parent, keras.layers.Bidirectional):
        return renumber([(type(child).__name__, child.name) for child in children])
    names = []
    for child in children:
        # Its halves are named after the inner layer: "forward_lstm_7".
        side = next((side for side in _SIDES if child.name.startswith(side)), "")
        names.append(side + renumber([(type(child).__name__, child.name[len(side) :])])[0])
    return names


def _types(layer: keras.layers.Layer) -> tuple[str, ...]:
    # A user's class with the name of a Keras class works differently: it gets its module's name.
    return tuple(
        kind.__name__ if kind.__module__.partition(".")[0] == "keras" else full_name(kind)
        for kind in type(layer).__mro__
    )


def full_name(kind: type) -> str:
    """With its module, so it isn't mistaken for a Keras class."""
    return f"{kind.__module__}.{kind.__qualname__}"
