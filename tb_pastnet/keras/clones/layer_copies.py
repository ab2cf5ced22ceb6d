"""Makes the layers of a network again, and calls them as the network does."""

from __future__ import annotations

from typing import Any

import keras
import tensorflow as tf

from tb_pastnet.keras.clones.config import again, of_keras
from tb_pastnet.keras.clones.symbolic import Part, origin, part_between
from tb_pastnet.keras.model.walk import tf_variable


class Copier:
    """Copies layers, each once, however often and wherever the network calls it.

    The copies have the values that their initializers draw.

    Attributes:
        pairs: layers and their copies.
        loose: variables that no layer owns and that calls take, and their copies.
    """

    def __init__(self) -> None:
        self.pairs: list[tuple[Any, Any]] = []
        self.loose: list[tuple[Any, Any]] = []
        # With the original, so that no other object gets its id.
        self._known: dict[int, tuple[Any, Any]] = {}
        self._owners: dict[int, Any] = {}

    def model(self, part: Part, name: str | None = None, like: Any = None) -> Any:
        """A model of a part of a network.

        Args:
            part: of the network.
            name: of the model.
            like: the functional model that the part is all of.
        """
        inputs, outputs = self._tensors(part)
        if like is None:
            return keras.Model(inputs=inputs, outputs=outputs, name=name)
        copy = type(like)(inputs=inputs, outputs=outputs, name=name)
        copy.dtype_policy = like.dtype_policy
        return copy

    def operation(self, operation: Any) -> Any:
        """The copy of a layer or of an operation."""
        if id(operation) not in self._known:
            copy = self._copy(operation)
            self._known[id(operation)] = (operation, copy)
            if isinstance(operation, keras.layers.Layer):
                self.pairs.append((operation, copy))
        return self._known[id(operation)][1]

    def _copy(self, operation: Any) -> Any:
        kind = type(operation)
        plain = of_keras(kind, "__init__") and of_keras(kind, "get_config")
        if isinstance(operation, keras.Function) and plain:
            part = part_of(operation)
            if isinstance(operation, keras.Model):
                return self.model(part, operation.name, operation)
            return keras.Function(*self._tensors(part), name=operation.name)
        if isinstance(operation, keras.Sequential) and plain:
            layers = [self.operation(layer) for layer in operation.layers]
            tensors = getattr(operation, "inputs", None) or []
            copy = kind([*map(_input, tensors), *layers], name=operation.name)
            copy.dtype_policy = operation.dtype_policy
            return copy
        if isinstance(operation, keras.layers.Layer):
            return again(operation)
        return _bare(operation)

    def _tensors(self, part: Part) -> tuple[Any, Any]:
        for call in part.calls:
            if isinstance(call.operation, keras.layers.Layer):
                self._owners.update((id(one), call.operation) for one in call.operation.variables)
        inputs = _inputs(part)
        return inputs, part.run(inputs, self._call)

    def _call(self, operation: Any, args: Any, kwargs: Any) -> Any:
        copy = self.operation(operation)
        args, kwargs = keras.tree.map_structure(self._own, (args, kwargs))
        return copy(*args, **kwargs)

    def _own(self, leaf: Any) -> Any:
        """A variable that a call takes as an argument: the copy's own."""
        if tf_variable(leaf) is None:
            return leaf
        if id(leaf) not in self._known:
            self._known[id(leaf)] = (leaf, self._variable(leaf))
        return self._known[id(leaf)][1]

    def _variable(self, variable: Any) -> Any:
        owner = self._owners.get(id(variable))
        if owner is not None:
            copy = self.operation(owner)
            if not copy.built:
                copy.build_from_config(owner.get_build_config())
            pairs = zip(owner.variables, copy.variables, strict=False)
            return next(other for one, other in pairs if one is variable)
        value = tf.convert_to_tensor(variable).numpy()
        copy = keras.Variable(
            value,
            dtype=variable.dtype if isinstance(variable, keras.Variable) else variable.dtype.name,
            trainable=variable.trainable,
            name=variable.name.partition(":")[0].rpartition("/")[2],
        )
        self.loose.append((variable, copy))
        return copy


def _bare(operation: Any) -> Any:
    """An operation of keras.ops has settings only. A call of its own keeps the original free."""
    kind: Any = type(operation)
    copy = kind.__new__(kind)
    # Not by its config: many have none. No public name says which calls it was in.
    vars(copy).update(vars(operation), _inbound_nodes=[], _outbound_nodes=[])
    return copy


def part_of(function: Any) -> Part:
    """All of a functional model, or of a keras.Function.

    Args:
        function: one of them; an input of it may be unused.
    """
    # `inputs` and `outputs` are flat, and a keras.Function has no public names for the nests.
    return part_between(function._inputs_struct, function._outputs_struct, unused=True)


def _inputs(part: Part) -> Any:
    if isinstance(part.inputs, dict):
        # Keras wants the tensors of a dict to be named as its keys.
        return {
            key: keras.tree.map_structure(
                lambda one, key=key, value=value: _input(one, key if one is value else None), value
            )
            for key, value in part.inputs.items()
        }
    return keras.tree.map_structure(_input, part.inputs)


def _input(tensor: Any, name: str | None = None) -> Any:
    call = origin(tensor)
    made_by = None if call is None else call.operation
    settings: dict[str, Any] = {"optional": True} if getattr(made_by, "optional", False) else {}
    if getattr(tensor, "ragged", False):
        settings["ragged"] = True
    return keras.Input(
        batch_shape=tensor.shape,
        dtype=tensor.dtype,
        sparse=tensor.sparse,
        name=name or tensor.name,
        **settings,
    )
