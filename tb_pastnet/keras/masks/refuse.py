"""Weights that a mask can't hold, because something else than the optimizer makes them."""

from __future__ import annotations

import keras

from tb_pastnet.errors import InvalidArgument
from tb_pastnet.keras.layers.weight import MaskedWeight
from tb_pastnet.keras.model.weights import TFWeight


def refuse(record: TFWeight) -> None:
    """Raises where a mask would not hold what the layer computes with.

    Args:
        record: the variable, where it was found.

    Raises:
        InvalidArgument: its layer writes it in `call`, adds LoRA matrices to it, or is quantized.
    """
    if record.found.statistic:
        _fail(record, "a weight that an optimizer trains", "a statistic that its layer writes")
    if isinstance(record.found.variable, MaskedWeight):
        mended = "Call the layer's own prune and freeze."
        _fail(record, "a weight without masks", "one of a layer that owns its masks", mended)
    for holder in record.found.holders:
        if isinstance(holder, keras.layers.SpectralNormalization):
            mended = "Mask the layers around it, or take SpectralNormalization away."
            _fail(record, "a weight that an optimizer writes", "one that its layer writes", mended)
        if getattr(holder, "lora_enabled", False):
            mended = "Mask it before enable_lora, or merge the LoRA weights by saving the model."
            _fail(record, "a weight of its own", "one that LoRA adds to", mended)
        if getattr(holder, "quantization_mode", None) is not None:
            mended = "Mask it before you quantize: rounding keeps zeros."
            _fail(
                record, "a floating weight", f"one quantized to {holder.quantization_mode}", mended
            )


def _fail(record: TFWeight, expected: str, got: str, mended: str = "Choose another one.") -> None:
    raise InvalidArgument(
        f"Could not mask {record.text.id!r}: expected {expected}, got {got}. {mended}"
    )
