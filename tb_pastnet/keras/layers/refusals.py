"""What masks can't hold: layers whose values depend on more than masks and the optimizer."""

from __future__ import annotations

from typing import Any

import keras
import tensorflow as tf

from tb_pastnet.errors import InvalidArgument
from tb_pastnet.keras.masks.variable_masks import VariableMasks
from tb_pastnet.keras.model.tf_weights import TFWeight
from tb_pastnet.record.masks.commands import unmaskable

_REFUSES = "_pastnet_refuses"


def refuse_weight(weight: TFWeight) -> None:
    """Raises if masks on the optimizer would not hold what a weight's layer computes with."""
    for holder in weight.found.around:
        if isinstance(holder, keras.layers.SpectralNormalization):
            expected, got = "a weight that an optimizer writes", "one that its layer writes"
            mend = "Mask the layers around it, or remove SpectralNormalization."
        elif _has_lora(holder):
            expected, got = "a weight by itself", "one that LoRA adds to"
            mend = "Merge the LoRA weights first, by saving and loading the model."
        elif (mode := getattr(holder, "quantization_mode", None)) is not None:
            expected, got = "a floating weight", f"one quantized to {mode}"
            mend = "Mask it before you quantize: rounding keeps zeros."
        else:
            continue
        raise unmaskable(weight.name, expected, got, mend)


def refuse_lora(layer: keras.layers.Layer, name: str, masks: VariableMasks) -> None:
    """Makes a layer refuse LoRA as long as masks hold something of its weight."""
    original = getattr(layer, "enable_lora", None)
    if original is None or hasattr(original, _REFUSES):
        return

    def enable_lora(*args: Any, **kwargs: Any) -> Any:
        if not masks.through.numpy().all():
            raise InvalidArgument(
                f"Could not enable LoRA on {layer.name!r}: expected a weight without masks, got "
                f"{name!r} with masks, where LoRA would add to held weights. Regrow and thaw it "
                "first, or mask another layer."
            )
        return original(*args, **kwargs)

    setattr(enable_lora, _REFUSES, True)
    layer.enable_lora = enable_lora


def refuse_layer(layer: keras.layers.Layer) -> None:
    """Raises if a layer computes with anything but its weights as they are read."""
    if not isinstance(layer, keras.layers.Layer):
        raise InvalidArgument(
            f"Could not mask {layer!r:.60}: expected a Keras layer, got {type(layer).__name__}. "
            f"Pass a layer, such as keras.layers.Dense(8)."
        )
    expected = "a layer that computes with its weights as they are"
    around = "Mask the layers around it, or remove it."
    lora = "Merge these first, by saving and loading the model."
    for part in layer._flatten_layers():
        writes = isinstance(part, keras.layers.SpectralNormalization)
        stateful = isinstance(part, keras.layers.RNN) and part.stateful
        quantized = getattr(part, "quantization_mode", None)
        rounded = f"one quantized to {quantized}"
        for applies, got, mend in (
            (writes, "one that writes them", around),
            (stateful, "one with stateful=True", "Pass its states from call to call yourself."),
            (_has_lora(part), "one with LoRA matrices", lora),
            (quantized is not None, rounded, "Mask it before you quantize."),
            (
                isinstance(part.call, tf.types.experimental.PolymorphicFunction),
                "one whose call is a tf.function, which reads them by itself",
                "Take @tf.function from its call; fit compiles the whole step anyway.",
            ),
            (hasattr(part, "masked_weights"), "one that owns masks", "Wrap the layer only once."),
        ):
            if applies:
                raise unmaskable(part.name, expected, got, mend)


def _has_lora(layer: keras.layers.Layer) -> bool:
    return bool(getattr(layer, "lora_enabled", False) or getattr(layer, "lora_rank", None))
