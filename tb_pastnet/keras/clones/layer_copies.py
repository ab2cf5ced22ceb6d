"""Makes the layers of a network again from their configs, and copies what these don't contain."""

from __future__ import annotations

import inspect
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import FunctionType
from typing import Any

import keras
import tensorflow as tf

from tb_pastnet.errors import InvalidArgument
from tb_pastnet.keras.clones.proof import CLONE_FUNCTION, Pair
from tb_pastnet.keras.clones.symbolic import SymbolicPart, origin, part_between
from tb_pastnet.keras.graphs.reason import reason
from tb_pastnet.keras.model.tf_variable import tf_variable

_ADDED = ("name", "trainable", "dtype")
"""For a config; set on the copy otherwise."""

Initializer = Callable[..., Any]


class LayerCopies:
    """Copies layers, each once, with the values that their initializers draw."""

    def __init__(self) -> None:
        self.pairs: list[Pair] = []
        # Variables that no layer owns, passed to calls.
        self.loose: list[Pair] = []
        # With the original, so no other object gets its id.
        self._copies: dict[int, Pair] = {}
        self._owners: dict[int, keras.layers.Layer] = {}

    def operation(self, operation: keras.Operation) -> Any:
        """The copy of a layer or of an operation."""
        if id(operation) not in self._copies:
            copy = self._copy(operation)
            self._copies[id(operation)] = (operation, copy)
            if isinstance(operation, keras.layers.Layer):
                self.pairs.append((operation, copy))
        return self._copies[id(operation)][1]

    def _copy(self, operation: keras.Operation) -> Any:
        kind = type(operation)
        plain = of_keras(kind, "__init__") and of_keras(kind, "get_config")
        if isinstance(operation, keras.Function) and plain:
            # `inputs` and `outputs` are flat, and there are no public names for the nests.
            part = part_between(operation._inputs_struct, operation._outputs_struct, unused=True)
            copy = kind(**self.tensors(part), name=operation.name)
        elif isinstance(operation, keras.Sequential) and plain:
            layers = [self.operation(layer) for layer in operation.layers]
            tensors = getattr(operation, "inputs", None) or []
            copy = kind([*map(_input, tensors), *layers], name=operation.name)
        else:
            layer = isinstance(operation, keras.layers.Layer)
            return _again(operation) if layer else _bare(operation)
        if isinstance(operation, keras.Model):
            copy.dtype_policy = operation.dtype_policy
        return copy

    def tensors(self, part: SymbolicPart) -> dict[str, Any]:
        """The inputs of a part of a network, made again, and the outputs from its copied layers."""
        for call in part.calls:
            if isinstance(call.operation, keras.layers.Layer):
                variables = call.operation.variables
                self._owners.update((id(variable), call.operation) for variable in variables)
        inputs = _inputs(part)
        return {"inputs": inputs, "outputs": part.run(inputs, self._call)}

    def _call(
        self, operation: keras.Operation, args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> Any:
        copy = self.operation(operation)
        args, kwargs = keras.tree.map_structure(self._own, (args, kwargs))
        return copy(*args, **kwargs)

    def _own(self, leaf: object) -> Any:
        """The copy's own variable for one that is an argument of a call."""
        if tf_variable(leaf) is None:
            return leaf
        if id(leaf) not in self._copies:
            self._copies[id(leaf)] = (leaf, self._variable(leaf))
        return self._copies[id(leaf)][1]

    def _variable(self, variable: keras.Variable | tf.Variable) -> Any:
        owner = self._owners.get(id(variable))
        if owner is not None:
            copy = self.operation(owner)
            if not copy.built:
                copy.build_from_config(owner.get_build_config())
            pairs = zip(owner.variables, copy.variables, strict=False)
            return next(twin for own, twin in pairs if own is variable)
        value = tf.convert_to_tensor(variable).numpy()
        copy = keras.Variable(
            value,
            dtype=variable.dtype if isinstance(variable, keras.Variable) else variable.dtype.name,
            trainable=variable.trainable,
            name=variable.name.partition(":")[0].rpartition("/")[2],
        )
        self.loose.append((variable, copy))
        return copy


def _again(layer: keras.layers.Layer) -> Any:
    """An unbuilt layer of the same class, config and name."""
    copy = _from_config(layer)
    if _policies(copy) != _policies(layer):
        # Inner layers get the policy that is set while they are made.
        policy = keras.config.dtype_policy()
        keras.config.set_dtype_policy(layer.dtype_policy)
        try:
            copy = _from_config(layer)
        finally:
            keras.config.set_dtype_policy(policy)
    return copy


def inside(layer: keras.layers.Layer) -> list[Any]:
    """A layer and all layers in it, in a fixed order."""
    # No public name: only models have `layers`.
    return list(layer._flatten_layers())


def of_keras(kind: type, name: str) -> bool:
    """Whether a class has this attribute from Keras itself."""
    owner = next(base for base in kind.__mro__ if name in vars(base))
    return _root(owner.__module__) == "keras"


def _from_config(layer: keras.layers.Layer) -> Any:
    with _custom_objects(layer):
        try:
            copy = type(layer).from_config(_config(layer))
        except Exception as error:
            raise InvalidArgument(
                f"Could not clone layer {layer.name!r}: expected a {type(layer).__name__} that can "
                f"be made again from its config, got: {reason(error).rstrip('.')}. "
                f"Give it a get_config with all arguments of its constructor, or {CLONE_FUNCTION}"
            ) from error
    if type(copy) is not type(layer):
        raise InvalidArgument(
            f"Could not clone layer {layer.name!r}: expected a {type(layer).__name__} from its "
            f"config, got a {type(copy).__name__}. Return cls(**config) from its from_config."
        )
    _name_as(copy, layer)
    return copy


def _name_as(copy: keras.layers.Layer, layer: keras.layers.Layer) -> None:
    """Names a layer and inner ones: some configs lack names, and Keras numbers automatic ones."""
    if type(copy) is type(layer) and not copy.built:
        copy.name = layer.name
        copies, layers = (
            parent._flatten_layers(include_self=False, recursive=False) for parent in (copy, layer)
        )
        # Layers made in `build` don't exist yet.
        for inner_copy, inner in zip(copies, layers, strict=False):
            _name_as(inner_copy, inner)


def _config(layer: keras.layers.Layer) -> dict[str, Any]:
    """Its config, without entries that Keras adds and its constructor doesn't take."""
    kind = type(layer)
    config: dict[str, Any] = layer.get_config()
    if _root(kind.__module__) == "keras":
        # Inner layers are built by their parents, as in the original: this determines their names.
        return dict(_unbuilt(config))
    if not of_keras(kind, "get_config") or of_keras(kind, "__init__"):
        return config
    parameters = inspect.signature(kind.__init__).parameters.values()
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters):
        return config
    taken = {parameter.name for parameter in parameters}
    return {key: value for key, value in config.items() if key in taken or key not in _ADDED}


def _unbuilt(config: object) -> Any:
    if isinstance(config, dict):
        return {key: _unbuilt(value) for key, value in config.items() if key != "build_config"}
    return config


def _policies(layer: keras.layers.Layer) -> list[str]:
    return [inner.dtype_policy.name for inner in inside(layer)]


@contextmanager
def _custom_objects(layer: keras.layers.Layer) -> Iterator[None]:
    """A context in which the user's classes and functions in a layer's config are registered."""
    customs: dict[int, Any] = {}
    for inner in inside(layer):
        _collect(type(inner), customs)
        for value in vars(inner).values():
            _collect(value, customs)
    lambdas = [custom for custom in customs.values() if custom.__name__ == "<lambda>"]
    try:
        for number, custom in enumerate(lambdas):
            # Keras would serialize its code, and load it into another module.
            custom.__name__ = f"lambda_{number}"
        named = {custom.__name__: custom for custom in customs.values()}
        named |= {keras.saving.get_registered_name(each): each for each in customs.values()}
        with keras.saving.custom_object_scope(named):
            yield
    finally:
        for custom in lambdas:
            custom.__name__ = "<lambda>"


def _collect(value: object, customs: dict[int, Any]) -> None:
    if isinstance(value, Mapping | list | tuple | set):
        for item in value.values() if isinstance(value, Mapping) else value:
            _collect(item, customs)
    elif isinstance(value, FunctionType | type):
        if _root(value.__module__) not in ("keras", "builtins"):
            customs[id(value)] = value
    elif hasattr(value, "get_config"):
        _collect(type(value), customs)


def _root(module: str | None) -> str:
    return (module or "").partition(".")[0]


def _bare(operation: keras.Operation) -> Any:
    """An operation of keras.ops has only settings. A copy leaves the original untouched."""
    kind: Any = type(operation)
    copy = kind.__new__(kind)
    # Not by its config: many have none. No public name lists its calls.
    vars(copy).update(vars(operation), _inbound_nodes=[], _outbound_nodes=[])
    return copy


def _inputs(part: SymbolicPart) -> Any:
    if isinstance(part.inputs, dict):
        # Keras wants the tensors of a dict to be named as its keys.
        return {
            key: _input(value, key)
            if isinstance(value, keras.KerasTensor)
            else keras.tree.map_structure(_input, value)
            for key, value in part.inputs.items()
        }
    return keras.tree.map_structure(_input, part.inputs)


def _input(tensor: keras.KerasTensor, name: str | None = None) -> keras.KerasTensor:
    operation = getattr(origin(tensor), "operation", None)
    # Older versions of Keras don't take it.
    ragged = {"ragged": True} if getattr(tensor, "ragged", False) else {}
    return keras.Input(
        batch_shape=tensor.shape,
        dtype=tensor.dtype,
        sparse=tensor.sparse,
        name=name or tensor.name,
        optional=getattr(operation, "optional", False),
        **ragged,
    )


def layer_pairs(pairs: Iterable[Pair], name: str) -> list[Pair]:
    """Layers that were copied, and their copies, with all layers in them."""
    unique: dict[int, Pair] = {}
    for layer, copy in pairs:
        originals, copies = inside(layer), inside(copy)
        kinds = [[type(inner).__name__ for inner in each] for each in (originals, copies)]
        if kinds[0] != kinds[1]:
            raise InvalidArgument(
                f"Could not clone {name}: expected {layer.name!r} to be made of "
                f"{_listed(kinds[0])}, got {_listed(kinds[1])}. Make all its inner layers in its "
                "__init__ or build."
            )
        for pair in zip(originals, copies, strict=True):
            unique.setdefault(id(pair[0]), pair)
    return list(unique.values())


def take_over(pairs: Iterable[Pair], *, saved: bool) -> None:
    """Copies state of layers outside of variables, by their own saving methods.

    Unless `saved`, only results of `adapt`, such as vocabularies: no initializer draws them.
    """
    for layer, copy in pairs:
        if callable(getattr(layer, "get_vocabulary", None)):
            # That of a TextVectorization is in its inner layer.
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
    """The tf.Variables of layers, each with that of the copy."""
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
                f"copy too, got it {places[got]}. Clone it in the scope where it was made."
            )
    return variables


def copy_flags(pairs: Sequence[Pair]) -> None:
    """Sets `trainable` as in the originals: of layers and of single variables."""
    # Setting it on a layer sets it on all inside: repeat from the outside to the inside until
    # nothing changes.
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
    """Initializes the trainable floating variables."""
    for variable in variables:
        if variable.trainable and variable.dtype.is_floating:
            value = tf.convert_to_tensor(
                initializer(shape=tuple(variable.shape), dtype=variable.dtype.name)
            )
            if value.shape != variable.shape:
                raise InvalidArgument(
                    f"Could not initialize {variable.name!r} in a clone of {name}: expected shape "
                    f"{variable.shape}, got {value.shape}. Return values of the shape passed to "
                    "the initializer."
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
