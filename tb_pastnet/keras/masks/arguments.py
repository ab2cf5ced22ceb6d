"""Masks as a user gives them: an array of 0 and 1, or numbers of channels."""

from __future__ import annotations

from typing import Any

import numpy as np

from tb_pastnet.core import selection
from tb_pastnet.errors import InvalidArgument
from tb_pastnet.keras.masks.hold import Mask
from tb_pastnet.keras.model.weights import TFWeight


def mask_of(record: TFWeight, mask: Any, channels: Any, word: str) -> Mask:
    """The mask that is asked for.

    Args:
        record: the variable.
        mask: an array, or None.
        channels: numbers of channels to be held, or None.
        word: "kept" or "trainable".

    Raises:
        InvalidArgument: both or none are given, or one can't be used.
    """
    name = record.text.id
    if (mask is None) == (channels is None):
        verb = "prune" if word == "kept" else "freeze"
        got = "none" if mask is None else "both"
        raise InvalidArgument(
            f"Could not {verb} {name!r}: expected either {word}= or channels=, got {got}. Give an "
            f"array of 0 and 1, or numbers of channels."
        )
    if mask is not None:
        return selection.as_mask(mask, record.text.shape, name, word)
    return selection.channel_mask(channels, record.axis, name)


def opened(record: TFWeight, mask: Any, channels: Any, word: str) -> Mask:
    """Where held elements go through again: everywhere if neither is given.

    Args:
        record: the variable.
        mask: an array, 1 goes through, or None.
        channels: numbers of channels to be let through, or None.
        word: "kept" or "trainable".

    Raises:
        InvalidArgument: both are given, or one can't be used.
    """
    if mask is None and channels is None:
        return np.ones(record.text.shape, bool)
    given = mask_of(record, mask, channels, word)
    return given if mask is not None else ~given
