"""Clones a network of which only tensors, or a function, are left."""

from __future__ import annotations

from typing import Any

import keras
import tensorflow as tf

from tb_pastnet.errors import InvalidArgument
from tb_pastnet.keras.clones.clone_function import clone_function
from tb_pastnet.keras.clones.clone_model import Values, clone_model, clone_tensors
from tb_pastnet.keras.clones.layer_state import Initializer
from tb_pastnet.keras.graphs.callable_network import functions_of
from tb_pastnet.keras.graphs.nodes import Nest


def clone_network(
    inputs: Nest,
    outputs: Nest = None,
    *,
    weights: str = "copy",
    initializer: Initializer | None = None,
    example: Nest = None,
    name: str | None = None,
) -> Any:
    """Clones a network, given its tensors, the model, or a function, with variables of its own.

    Neither code that built it nor a saved file is needed. The copy computes the same and shares no
    state with the original: train it, save it, or delete the original. A copy that uses a variable
    of the original is refused. Layers are also traced beside the original, and the graphs compared
    operation by operation: what isn't the same is refused too.

    - Symbolic tensors: the layers between `inputs` and `outputs` are made again from their configs,
      a shared layer once. Classes and functions of the user needn't be registered. `trainable`
      flags, vocabularies, and statistics stay as they are.
    - A keras.Model or layer that is built: the same for all of it. It isn't compiled.
    - A tf.function, a ConcreteFunction, a function of a loaded SavedModel, or a module that is
      called as one: its graphs are copied with their gradients, its layers are unknown.

    Args:
        inputs: one KerasTensor or a list or dict of them, also intermediate ones; or the model or
            function.
        outputs: KerasTensors likewise; None for a model or function.
        weights: "copy": the values of all variables. "fresh": drawn anew by the layers' own
            initializers; what `adapt` learned is kept, masks and frozen values too.
        initializer: with weights="fresh": draws the trainable variables, as a keras initializer or
            a function of `shape` and `dtype`. A function has no layers, and so it has to be given;
            all other variables are then copied.
        example: a batch, or a tuple of arguments, as tensors or tf.TensorSpecs: for a tf.function
            that wasn't called yet, and a subclassed model that takes other dtypes than its own.
        name: of the new model.

    Returns:
        A keras.Model for KerasTensors, the same class for a model, a `ClonedFunction` for a
        function.

    Raises:
        InvalidArgument: an input is lacking or isn't needed, an output can't be reached, the model
            isn't built, a layer can't be made from its config, or computes something else then,
            other state than variables is used by a function, or a variable of it was deleted.

    Example:
        >>> import numpy as np
        >>> x = keras.Input((2,))
        >>> y = keras.layers.Dense(1, use_bias=False, kernel_initializer="ones")(x)
        >>> copy = clone_network(x, y)
        >>> copy.set_weights([np.array([[2.0], [3.0]])])
        >>> batch = np.array([[1.0, 1.0]])
        >>> float(keras.Model(x, y)(batch)[0, 0]), float(copy(batch)[0, 0])
        (2.0, 5.0)
    """
    values = _values(weights, initializer)
    if not tf.executing_eagerly():
        raise InvalidArgument(
            "Could not clone a network: expected to run eagerly, got a call inside of a "
            "tf.function. Clone it before, and call the clone there."
        )
    if outputs is not None:
        return clone_tensors(inputs, outputs, values, name)
    if isinstance(inputs, keras.layers.Layer):
        return clone_model(inputs, values, example, name)
    if not callable(inputs):
        raise _unknown(inputs)
    if not values.copied and initializer is None:
        raise InvalidArgument(
            "Could not clone a function with fresh weights: expected an initializer, got none. A "
            "function has no layers that know theirs: pass initializer=, such as "
            "keras.initializers.GlorotUniform()."
        )
    return clone_function(inputs, initializer, example, name)


def _values(weights: str, initializer: Initializer | None) -> Values:
    if weights not in ("copy", "fresh"):
        raise InvalidArgument(
            f"Could not clone a network: expected weights 'copy' or 'fresh', got {weights!r}. "
            f"Choose one of them."
        )
    if weights == "copy" and initializer is not None:
        raise InvalidArgument(
            "Could not clone a network: expected an initializer with weights='fresh' only, got one "
            "with 'copy'. Pass weights='fresh' as well."
        )
    return Values(weights == "copy", initializer)


def _unknown(given: object) -> InvalidArgument:
    if any(isinstance(leaf, keras.KerasTensor) for leaf in keras.tree.flatten(given)):
        return InvalidArgument(
            "Could not clone a network: expected outputs beside the inputs, got none. Pass the "
            "KerasTensors that the network ends with."
        )
    hint = "symbolic tensors, such as model.inputs and model.outputs, or a function"
    if functions := functions_of(given):
        hint = f"one of its functions: {', '.join(functions)}"
    return InvalidArgument(
        f"Could not clone a network: expected KerasTensors, a keras.Model or a function, got a "
        f"{type(given).__name__}. Pass {hint}."
    )
