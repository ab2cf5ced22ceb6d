"""Makes a layer of Keras again, from its config."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import FunctionType
from typing import Any

import keras

from tb_pastnet.errors import InvalidArgument
from tb_pastnet.keras.clones.proof import CLONE_FUNCTION
from tb_pastnet.keras.graphs.reason import reason

_ADDED = ("name", "trainable", "dtype")
"""Set on the copy otherwise."""


def again(layer: Any) -> Any:
    """A layer of the same class and config, with the same name, that isn't built.

    Classes and functions of the user needn't be registered: the layer itself has them.

    Args:
        layer: of Keras.

    Raises:
        InvalidArgument: its class can't be made from its config.
    """
    copy = _made(layer)
    if _policies(copy) != _policies(layer):
        # What a layer makes inside has the policy that is set while it is made.
        before = keras.config.dtype_policy()
        keras.config.set_dtype_policy(layer.dtype_policy)
        try:
            copy = _made(layer)
        finally:
            keras.config.set_dtype_policy(before)
    return copy


def inside(layer: Any) -> list[Any]:
    """A layer and all layers in it, in a fixed order."""
    # No public name: `layers` exists on models alone.
    return list(layer._flatten_layers())


def of_keras(kind: type, name: str) -> bool:
    """Whether a class has this attribute from Keras itself.

    Example:
        >>> class Mine(keras.layers.Layer):
        ...     def call(self, x):
        ...         return x
        >>> of_keras(Mine, "build"), of_keras(Mine, "call")
        (True, False)
    """
    owner = next(base for base in kind.__mro__ if name in vars(base))
    return _root(owner.__module__) == "keras"


def _made(layer: Any) -> Any:
    with _names_of(layer) as named, keras.saving.custom_object_scope(named):
        try:
            copy = type(layer).from_config(_config(layer))
        except Exception as error:
            raise InvalidArgument(
                f"Could not clone layer {layer.name!r}: expected a {type(layer).__name__} that can "
                f"be made again from its config, got: {reason(error).rstrip('.')}. "
                f"Give it a get_config with all that its constructor takes, or {CLONE_FUNCTION}"
            ) from error
    if type(copy) is not type(layer):
        raise InvalidArgument(
            f"Could not clone layer {layer.name!r}: expected a {type(layer).__name__} from its "
            f"config, got a {type(copy).__name__}. Return cls(**config) from its from_config."
        )
    _name_as(copy, layer)
    return copy


def _name_as(copy: Any, layer: Any) -> None:
    """Names a layer and those inside: not all configs have names, and Keras numbers its own."""
    if type(copy) is type(layer) and not copy.built:
        copy.name = layer.name
        parts = [one._flatten_layers(include_self=False, recursive=False) for one in (copy, layer)]
        # What a layer makes when it is built isn't there yet.
        for one, other in zip(*parts, strict=False):
            _name_as(one, other)


def _config(layer: Any) -> dict[str, Any]:
    """Its config, without what its constructor doesn't take and Keras adds on its own."""
    kind = type(layer)
    config: dict[str, Any] = layer.get_config()
    if _root(kind.__module__) == "keras":
        # Layers inside are built by those around them, as in the original: so they are named.
        return dict(_unbuilt(config))
    if not of_keras(kind, "get_config") or of_keras(kind, "__init__"):
        return config
    parameters = inspect.signature(kind.__init__).parameters.values()
    if any(one.kind is one.VAR_KEYWORD for one in parameters):
        return config
    taken = {one.name for one in parameters}
    return {key: value for key, value in config.items() if key in taken or key not in _ADDED}


def _unbuilt(config: Any) -> Any:
    if isinstance(config, dict):
        return {key: _unbuilt(each) for key, each in config.items() if key != "build_config"}
    return config


def _policies(layer: Any) -> list[str]:
    return [one.dtype_policy.name for one in inside(layer)]


@contextmanager
def _names_of(layer: Any) -> Iterator[dict[str, Any]]:
    """Classes and functions of the user in a layer, by the names that its config has for them."""
    found: dict[int, Any] = {}
    for one in inside(layer):
        _collect(type(one), found)
        for value in vars(one).values():
            _collect(value, found)
    lambdas = [each for each in found.values() if each.__name__ == "<lambda>"]
    try:
        for number, each in enumerate(lambdas):
            # Keras would write down its code, and read it as that of another module.
            each.__name__ = f"lambda_{number}"
        named = {name: each for each in found.values() for name in _names(each)}
        yield named
    finally:
        for each in lambdas:
            each.__name__ = "<lambda>"


def _names(each: Any) -> set[str]:
    return {each.__name__, keras.saving.get_registered_name(each)}


def _collect(value: Any, found: dict[int, Any]) -> None:
    if isinstance(value, list | tuple | set):
        for item in value:
            _collect(item, found)
    elif isinstance(value, Mapping):
        for item in value.values():
            _collect(item, found)
    elif isinstance(value, FunctionType | type):
        if _root(value.__module__) not in ("keras", "builtins"):
            found[id(value)] = value
    elif hasattr(value, "get_config"):
        _collect(type(value), found)


def _root(module: str | None) -> str:
    return (module or "").partition(".")[0]
