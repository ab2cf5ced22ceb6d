"""Layers that own their masks: a wrapper for any Keras layer, and a Dense."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import keras
import numpy as np
import numpy.typing as npt
import tensorflow as tf
from keras.src.backend import AutocastScope

from tb_pastnet.core.axes import channel_axis, variable_role
from tb_pastnet.core.mask_input import Mask
from tb_pastnet.core.names import resolve
from tb_pastnet.errors import InvalidArgument
from tb_pastnet.keras.layers.refusals import refuse_layer
from tb_pastnet.keras.model.tf_variable import tf_variable
from tb_pastnet.keras.model.walk import find_weights
from tb_pastnet.keras.strategies import check_agreed
from tb_pastnet.keras.versions import need_tensorflow, refuse_legacy
from tb_pastnet.record.masks.packed import StoredMasks, pack, unpack
from tb_pastnet.record.masks.weight_masks import WeightMasks
from tb_pastnet.record.weight import Array

Packed = Mapping[str, Mapping[str, str]]


@keras.saving.register_keras_serializable(package="tb_pastnet")
class Masked(keras.layers.Wrapper):
    """A layer whose single weights can be pruned and frozen.

    Unlike those of `Masks`, which are added to a built model, its masks are a part of it: they need
    no optimizer, are in SavedModel exports, and are copied by `clone_model`. The inner layer
    computes with where(T, K1, K2), see `MaskedWeight`. Held weights stay bit-identical under every
    optimizer. Regularizers and constraints see the effective weights too.

    A change takes effect at once, even in an already compiled `fit` or `predict`. After each change
    K1 equals the effective weights; later, the optimizer may move held elements of K1. So read
    `masked_weight(name).numpy()`, not `get_weights()`, which lists K1.

    `clone_model` initializes the trained variables, as always. In the clone, pruned weights are
    pruned, and frozen ones are frozen at the same values: the masks and frozen values are in the
    config, compressed. Copy the rest with `clone.set_weights(m.get_weights())`.

    Args:
        layer: any Keras layer with one input, or any built layer. Layers that write their weights
            in call (SpectralNormalization), stateful RNNs, layers with LoRA or quantization, and
            those whose call is a tf.function are refused.
        masks: initial masks, as returned by `get_config`. None: everything is let through.
        **settings: common arguments of Keras layers: name, dtype, trainable.

    Raises:
        InvalidArgument: the layer is one of these.
        UnsupportedBackend: Keras doesn't run on TensorFlow.

    Example:
        >>> import numpy as np
        >>> layer = Masked(keras.layers.Conv1D(2, 1, kernel_initializer="ones"))
        >>> layer(np.ones((1, 1, 2), "f")).numpy().tolist()
        [[[2.0, 2.0]]]
        >>> layer.prune_kernel([[[0, 1], [1, 1]]])
        >>> layer(np.ones((1, 1, 2), "f")).numpy().tolist()
        [[[1.0, 2.0]]]
    """

    def __init__(
        self, layer: keras.layers.Layer, masks: Packed | None = None, **settings: Any
    ) -> None:
        need_tensorflow("make a masked layer")
        refuse_legacy(layer)
        refuse_layer(layer)
        settings.setdefault("dtype", layer.dtype_policy)
        super().__init__(layer, **settings)
        self.supports_masking = layer.supports_masking
        # Hidden from trackers of Keras and TensorFlow.
        self._masks = SimpleNamespace(given=dict(masks or {}), weights={})

    def build(self, input_shape: Any = None) -> None:
        """Builds the layer inside, and masks for each of its weights.

        Raises:
            InvalidArgument: the layer has several inputs and isn't built, or the given masks are of
                other weights.
        """
        if not self.layer.built:
            needed = inspect.signature(self.layer.build).parameters.values()
            if sum(each.default is each.empty for each in needed) > 1:
                raise InvalidArgument(
                    f"Could not build {self.name!r}: expected a layer with one input, or one that "
                    f"is built, got {self.layer.name!r} with several. Call its build() first."
                )
            super().build(input_shape)
        given = self._masks.given
        for name, weight in find_weights(self.layer):
            stored = None
            if name in given:
                dtype = tf.as_dtype(weight.dtype).as_numpy_dtype
                packed = given.pop(name)
                stored = unpack(packed, weight.shape, dtype, f"{self.name}/{name}")
            self._masks.weights[name] = MaskedWeight(self, name, weight, stored)
        if given:
            raise InvalidArgument(
                f"Could not build {self.name!r}: expected masks of {sorted(self._masks.weights)}, "
                f"got masks of {sorted(given)}. Pass masks= of a layer of the same kind."
            )
        self.built = True

    def call(self, inputs: Any, *args: Any, training: Any = None, **kwargs: Any) -> Any:
        """Calls the layer inside with its effective weights.

        Raises:
            InvalidArgument: the layer was changed after wrapping, so it can't be masked any more.
        """
        refuse_layer(self.layer)
        values = [(each.weight, each.effective()) for each in self.masked_weights()]
        scope = _EffectiveScope(values, self.name)
        if training is not None:  # Keras drops it if the inner layer doesn't take it
            kwargs["training"] = training
        with scope:
            outputs = self.layer(inputs, *args, **kwargs)
        for loss in {id(loss): loss for loss in tf.nest.flatten(scope.losses)}.values():
            # A copy: otherwise the inner layers would count it a second time.
            self.add_loss(tf.identity(loss))
        return outputs

    def compute_mask(self, inputs: Any, previous_mask: Any) -> Any:
        """The inner layer's mask over time steps."""
        return self.layer.compute_mask(inputs, previous_mask)

    def compute_output_shape(self, *args: Any, **kwargs: Any) -> Any:
        """The inner layer's, which TimeDistributed asks for."""
        return self.layer.compute_output_shape(*args, **kwargs)

    def compute_output_spec(self, *args: Any, **kwargs: Any) -> Any:
        """From a trial call: the inner layer may have no `compute_output_shape`."""
        return keras.Operation.compute_output_spec(self, *args, **kwargs)

    def masked_weights(self) -> list[MaskedWeight]:
        """All maskable weights, with their masks; none before the layer is built."""
        return list(self._masks.weights.values())

    def masked_weight(self, name: str) -> MaskedWeight:
        """One weight with its masks: `.kept`, `.trainable`, `.numpy()`, `.effective()`.

        Args:
            name: such as "kernel", in a layer of layers "query/kernel", or the end of it.

        Raises:
            InvalidArgument: the layer isn't built.
            UnknownName: no weight, or several, have that name.
        """
        if not self.built:
            raise InvalidArgument(
                f"Could not find {name!r} of {self.name!r}: expected a built layer, got one "
                f"without weights. Call it, or its build(input_shape), first."
            )
        weights: dict[str, MaskedWeight] = self._masks.weights
        return weights[resolve(name, weights)]

    def prune(self, name: str, kept: npt.ArrayLike) -> None:
        """Prunes where `kept` is 0, like `MaskedWeight.prune`; `name` as in `masked_weight`."""
        self.masked_weight(name).prune(kept)

    def regrow(self, name: str, kept: npt.ArrayLike | None = None) -> None:
        """Lets pruned weights train again, from zero, where `kept` is 1; None: all."""
        self.masked_weight(name).regrow(kept)

    def freeze(self, name: str, trainable: npt.ArrayLike | None = None) -> None:
        """Freezes current values where `trainable` is 0, like `MaskedWeight.freeze`; None: all."""
        self.masked_weight(name).freeze(trainable)

    def thaw(self, name: str, trainable: npt.ArrayLike | None = None) -> None:
        """Lets frozen weights train again, from their values, where `trainable` is 1; None: all."""
        self.masked_weight(name).thaw(trainable)

    def prune_kernel(self, kept: npt.ArrayLike) -> None:
        """Prunes weights of the kernel, like `prune`."""
        self.prune("kernel", kept)

    def prune_bias(self, kept: npt.ArrayLike) -> None:
        """Prunes weights of the bias, like `prune`. All of a bias may be pruned."""
        self.prune("bias", kept)

    def prune_kernel_below_threshold(self, threshold: float) -> None:
        """Prunes small weights of the kernel, by magnitude: large negative weights stay."""
        self.masked_weight("kernel").prune_below(threshold)

    def prune_bias_below_threshold(self, threshold: float) -> None:
        """Prunes small weights of the bias, by magnitude."""
        self.masked_weight("bias").prune_below(threshold)

    def freeze_kernel(self, trainable: npt.ArrayLike | None = None) -> None:
        """Freezes weights of the kernel, like `freeze`."""
        self.freeze("kernel", trainable)

    def freeze_bias(self, trainable: npt.ArrayLike | None = None) -> None:
        """Freezes weights of the bias, like `freeze`."""
        self.freeze("bias", trainable)

    def get_config(self) -> dict[str, Any]:
        """The inner layer, and the masks with the frozen values, None if nothing is held."""
        packed = {each.name: pack(each.stored()) for each in self.masked_weights()}
        held = {name: text for name, text in packed.items() if text}
        return {**super().get_config(), "masks": held or self._masks.given or None}


@keras.saving.register_keras_serializable(package="tb_pastnet")
class MaskedDense(Masked):
    """A Dense layer whose single weights can be pruned and frozen.

    It works like `Masked`. It takes `masks` as `Masked` does, and the arguments of
    keras.layers.Dense, except LoRA and quantization.

    Raises:
        InvalidArgument: LoRA or quantization is requested.
        UnsupportedBackend: Keras doesn't run on TensorFlow.

    Example:
        >>> import numpy as np
        >>> model = keras.Sequential([keras.Input((12,))])
        >>> for units in (16, 12, 10, 8, 3):
        ...     model.add(MaskedDense(units, "relu"))
        >>> model.compile("adam", "mse")
        >>> first = model.layers[0]
        >>> first.prune_kernel_below_threshold(0.2)
        >>> first.freeze_bias()
        >>> history = model.fit(np.ones((4, 12)), np.ones((4, 3)), verbose=0)
        >>> kernel = first.masked_weight("kernel")
        >>> bool((kernel.numpy()[~kernel.kept] == 0).all())
        True
    """

    def __init__(
        self,
        units: int,
        activation: Any = None,
        use_bias: bool = True,
        *,
        masks: Packed | None = None,
        name: str | None = None,
        trainable: bool = True,
        dtype: Any = None,
        **dense: Any,
    ) -> None:
        inner = keras.layers.Dense(units, activation, use_bias, dtype=dtype, **dense, name="dense")
        super().__init__(inner, masks=masks, name=name, trainable=trainable)

    @property
    def units(self) -> int:
        """Outputs."""
        return int(self.layer.units)

    def get_config(self) -> dict[str, Any]:
        """The config of the Dense, and the masks with the frozen values."""
        own = super().get_config()
        inner = self.layer.get_config()
        own.pop("layer")
        # Refused arguments, unknown to older versions of Keras.
        inner.pop("quantization_config", None)
        return {**inner, **own}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> MaskedDense:
        """Makes a layer from the config of `get_config`."""
        return cls(**config)


class MaskedWeight(WeightMasks):
    """One weight of a layer, with its masks: K = where(T, K1, K2), `tf.convert_to_tensor(weight)`.

    K1 is the variable that the optimizer trains, K2 has the held values: zero where pruned, the
    value at freezing where frozen. T lets K1 through. The layer computes with K, so whatever moves
    K1 (momentum, weight decay, moving averages) never moves held weights. Masks and K2 are
    variables: changes reach steps that are already traced.

    Attributes:
        name: of the weight in its layer, such as "kernel".
        weight: the trained keras.Variable. Its held elements may have any value.
        shape: of the weight, a tf.TensorShape.
        dtype: of the weight, a tf.DType.
        version: grows with every command, but not when loading weights changes masks.
    """

    def __init__(
        self,
        layer: keras.layers.Layer,
        name: str,
        weight: keras.Variable,
        stored: StoredMasks | None = None,
    ) -> None:
        self.name = name
        self.weight = weight
        self.version = 0
        self.label = f"{layer.name}/{name}"
        shape = tuple(weight.shape)
        self.shape, self.dtype = tf.TensorShape(shape), tf.as_dtype(weight.dtype)
        self.role = variable_role(name, shape)
        self.axis = channel_axis([], name, shape)
        stored = stored or StoredMasks(np.ones(shape, bool), np.ones(shape, bool), np.zeros(shape))

        def add(word: str, dtype: str, value: Array) -> Any:
            variable = layer.add_weight(
                name=f"{name.replace('/', '_')}_{word}",
                shape=shape,
                dtype=dtype,
                initializer=lambda shape, dtype: tf.reshape(tf.constant(value, dtype), shape),
                trainable=False,
                autocast=False,
                aggregation="only_first_replica",
            )
            # TensorFlow checkpoints use attributes.
            setattr(layer, f"_{variable.name}", variable)
            return variable

        self._kept = add("kept", "bool", stored.kept)
        self._through = add("through", "bool", stored.through)
        self._held = add("held", weight.dtype, stored.held)
        if weight.regularizer is not None:
            weight.regularizer = _Regularizer(weight.regularizer, self)
        if weight.constraint is not None:
            weight.constraint = _Constraint(weight.constraint, self)

    @property
    def variable(self) -> Any:
        """The trained tf.Variable."""
        return tf_variable(self.weight)

    @property
    def sources(self) -> tuple[Any, ...]:
        """The tf.Variables that elements come from: if all have one value, the element has it."""
        return tf_variable(self.weight), tf_variable(self._held)

    def read(self) -> tuple[Mask, Mask]:
        """See `WeightMasks`."""
        kept = np.array(self._kept.numpy())
        return kept, self._through.numpy() | ~kept

    def effective(self, trained: Any = None) -> Any:
        """The values that the layer computes with, in full precision; `trained` replaces K1."""
        with AutocastScope(None):
            value = tf.convert_to_tensor(self.weight if trained is None else trained)
            held = tf.cast(tf.convert_to_tensor(self._held), value.dtype)
            return tf.where(tf.convert_to_tensor(self._through), value, held)

    def open(self, free: tf.Tensor, held: tf.Tensor) -> Any:
        """`free` where the weight is free, `held` elsewhere."""
        return tf.where(tf.convert_to_tensor(self._through), free, held)

    def numpy(self) -> Any:
        """The effective value as an array."""
        return self.effective().numpy()

    values = numpy

    def __tf_tensor__(self, dtype: Any = None, name: str | None = None) -> Any:
        return tf.convert_to_tensor(self.effective(), dtype, name=name)

    def stored(self) -> StoredMasks:
        """Masks and held values as arrays."""
        return StoredMasks(self.kept, np.array(self._through.numpy()), np.array(self._held.numpy()))

    def write(self, kept: Mask, trainable: Mask) -> None:
        """See `WeightMasks`. Released elements continue from the effective values."""
        subject = f"the masks of {self.label!r}"
        check_agreed(self.variable, subject, kept, trainable)
        value = self.numpy()
        value = np.where(kept, value, np.zeros((), value.dtype))
        # Released elements continue from here, whatever the optimizer did to them in the meantime.
        self.weight.assign(value)
        self._held.assign(value)
        self._kept.assign(kept)
        self._through.assign(kept & trainable)
        self.version += 1

    def renew(self, elements: Mask) -> None:
        """See `WeightMasks`. The slots kept changing while the element was held."""


class _Regularizer(keras.regularizers.Regularizer):
    """Penalises the effective weight."""

    def __init__(self, regularizer: keras.regularizers.Regularizer, masked: MaskedWeight) -> None:
        self._regularizer = regularizer
        self._masked = masked

    def __call__(self, x: Any) -> Any:
        return self._regularizer(self._masked.effective(x))


class _Constraint(keras.constraints.Constraint):
    """Constrains the effective weight."""

    def __init__(self, constraint: keras.constraints.Constraint, masked: MaskedWeight) -> None:
        self._constraint = constraint
        self._masked = masked

    def __call__(self, w: Any) -> Any:
        value = tf.convert_to_tensor(w)
        return self._masked.open(self._constraint(self._masked.effective(value)), value)


class _EffectiveScope(keras.StatelessScope):
    """Makes layers read given values for some variables, and write all others."""

    def __init__(self, values: Sequence[tuple[Any, Any]], name: str) -> None:
        super().__init__(values, collect_losses=True, initialize_variables=False)
        self._own = {id(variable) for variable, _ in values}
        self._name = name

    def get_current_value(self, variable: tf.Variable) -> Any:
        """The value of a variable: ours, or that of an outer scope."""
        value = super().get_current_value(variable)
        if value is None and self.original_scope is not None:
            return self.original_scope.get_current_value(variable)
        return value

    def add_update(self, update: tuple[Any, Any]) -> None:
        """Writes a variable at once, as without the scope: statistics, and states of seeds."""
        variable, value = update
        if id(variable) in self._own:
            raise InvalidArgument(
                f"Could not hold the weights of {self._name!r}: expected a layer that leaves them "
                f"to the optimizer, got one that writes {variable.name!r} in call. Mask the layers "
                f"around it."
            )
        self.__exit__()
        try:
            variable.assign(value)
        finally:
            self.__enter__()
