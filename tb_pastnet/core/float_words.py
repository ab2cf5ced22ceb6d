"""The words in which weights of 16 and 32 bits are kept: what a kernel reads, and past copies hold.

A bfloat16 is a uint16, its upper half as a float32; a float16 is an int16; a float32 is itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from tb_pastnet.errors import PastNetError

Words = npt.NDArray[Any]

WORDS: Mapping[str, type[np.generic]] = {
    "float32": np.float32,
    "bfloat16": np.uint16,
    "float16": np.int16,
}
"""The type of a word, by the name of a dtype."""


class OtherValues(PastNetError):
    """Values that a dtype doesn't have: weights got another one during training."""


def words_of(values: npt.NDArray[Any], dtype: str) -> Words:
    """The words of values, C-contiguous; raises OtherValues if one isn't of the dtype.

    Example:
        >>> words_of(np.array([1.0, -2.0], np.float32), "bfloat16")
        array([16256, 49152], dtype=uint16)
    """
    if values.dtype.name == dtype:
        return np.ascontiguousarray(values).view(WORDS[dtype])
    if dtype == "float32":
        return np.ascontiguousarray(values, np.float32)
    exact = np.ascontiguousarray(values, np.float32)
    if dtype == "bfloat16":
        bits = exact.view(np.uint32)
        words = (bits >> 16).astype(np.uint16)
        fits = not (bits & 0xFFFF).any()
    else:
        with np.errstate(over="ignore"):
            halves = exact.astype(np.float16)
        words = halves.view(np.int16)
        fits = np.array_equal(halves.astype(np.float32), exact, equal_nan=True)
    if not fits:
        raise OtherValues(f"expected values of {dtype}, got others")
    return words


def values_of(words: Words) -> npt.NDArray[np.float32]:
    """The values of words as float32, exactly; float32 as they are.

    Example:
        >>> values_of(np.array([16256, 49152], np.uint16))
        array([ 1., -2.], dtype=float32)
    """
    if words.dtype == np.uint16:
        return (words.astype(np.uint32) << 16).view(np.float32)
    return words.view(np.float16).astype(np.float32) if words.dtype == np.int16 else words


def address_of(array: npt.NDArray[Any]) -> int:
    """Where an array begins in memory. It may be read-only."""
    address: int = array.__array_interface__["data"][0]
    return address
