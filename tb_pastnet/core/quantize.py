"""Values as 16-bit codes on one logarithmic grid.

A code c stands for 2**(c/16). The grid is global and doesn't depend on the data: equal values have
equal codes in every record, so differences between records are small and compress well, and a ratio
of two values is a difference of two codes.

Precision: the nearest of 16 codes an octave is at most 2**(1/32) away, so a value is right within
2.2 %, and a ratio of two values within 4.5 % (2**(1/16) = 1.0443), over the whole range of a
double. A share below 1 (see `quantize_shares`) is also right within 4.5 %. Zero, infinity and NaN
have their own codes: a value other than zero never becomes zero.
Counts have another grid, exact up to 49,152 and within 0.07 % above.
"""

from __future__ import annotations

import functools

import numpy as np
import numpy.typing as npt

CODES_PER_OCTAVE = 16
PRECISION = 2 ** (1 / (2 * CODES_PER_OCTAVE)) - 1
"""Largest relative error of one decoded value: 0.0219."""

ZERO = -32768
ONE = 0
NAN = 32766
INFINITE = 32767
EXACT = 49_152
"""Counts up to this have a code each."""

_LARGEST = 1024 * CODES_PER_OCTAVE - 1
_ORDINARY = (1 << 14) - 1
_COUNTS_PER_OCTAVE = 512

_CELL = 16
_CELL_SIZE = 1 << _CELL
_SUBNORMAL_CELLS = 0x0080
_INFINITE_CELL = 0x7F80
_NO_CODE = ZERO + 1
"""In the table: the code is computed by its definition."""

Codes = npt.NDArray[np.int16]
Floats = npt.NDArray[np.float64]


def quantize(values: npt.ArrayLike) -> Codes:
    """Rounds values to int16 codes; 0 becomes `ZERO`, infinity `INFINITE`, NaN `NAN`.

    A negative value is a caller's error and is taken by its magnitude.
    """
    array = np.asarray(values)
    return _of_float32(array) if array.dtype == np.float32 else _rounded(array)


def _rounded(values: npt.ArrayLike) -> Codes:
    """Codes by the definition."""
    with np.errstate(divide="ignore", invalid="ignore"):
        array = np.abs(np.asarray(values, dtype=np.float64))
        scaled = np.rint(np.log2(array) * CODES_PER_OCTAVE)
    # The largest doubles would round up to 2**1024, which is infinite.
    codes = np.where(np.isfinite(scaled), np.minimum(scaled, _LARGEST), 0).astype(np.int16)
    codes[array == 0] = ZERO
    codes[np.isinf(array)] = INFINITE
    codes[np.isnan(array)] = NAN
    return codes


def _of_float32(values: npt.NDArray[np.float32]) -> Codes:
    """The same codes from a table, in a fraction of the time of logarithms."""
    bits = values.view(np.uint32)
    sums = np.asarray(_lookup().take((bits >> _CELL).astype(np.intp), mode="wrap"))
    sums += bits
    sums >>= np.uint32(_CELL)  # NumPy 1 would make an int64 of a scalar
    codes = sums.astype(np.uint16).view(np.int16)
    missing = codes == _NO_CODE
    if missing.any():
        codes[missing] = _rounded(values[missing])
    return codes


@functools.cache
def _lookup() -> npt.NDArray[np.uint32]:
    """What is added to the bits of a float32, by its cell: the upper half is then its code.

    A cell is the floats that share their upper bits, with the sign. An octave has 128 of them and
    16 codes: none holds more than two. The second one is one more, and is reached by a carry.
    """
    first = np.arange(1 << 15, dtype=np.uint32) << _CELL
    low, high = first, first + np.uint32(_CELL_SIZE - 1)
    codes = _rounded(low.view(np.float32))
    carries = codes != _rounded(high.view(np.float32))
    for _ in range(_CELL):
        middle = low + (high - low) // np.uint32(2)
        lower = _rounded(middle.view(np.float32)) == codes
        low, high = np.where(lower, middle, low), np.where(lower, high, middle)
    sums = codes.astype(np.int64) * _CELL_SIZE
    sums += np.where(carries, _CELL_SIZE - (high - first), 0)
    # A cell of subnormal floats may hold many codes, that of infinity also NaN.
    sums[:_SUBNORMAL_CELLS] = _NO_CODE * _CELL_SIZE
    sums[_INFINITE_CELL] = _NO_CODE * _CELL_SIZE
    sums[0] = ZERO * _CELL_SIZE + _CELL_SIZE - 1  # all but 0 carry, to `_NO_CODE`
    sums -= first
    return np.concatenate([sums, sums - (1 << 31)]).astype(np.uint32)


def quantize_shares(shares: npt.ArrayLike) -> Codes:
    """Rounds shares to int16 codes as `quantize`; a share below 1 doesn't get the code of 1."""
    array = np.asarray(shares)
    if (array == 1).all():  # most often
        return np.zeros(array.shape, np.int16)
    codes = quantize(array)
    codes[(array < 1) & (codes == 0)] = -1
    return codes


def dequantize(codes: npt.ArrayLike) -> Floats:
    """Returns the float64 values of codes, with exact zeros, infinities and NaN."""
    array = np.asarray(codes, dtype=np.int16)
    values = array.astype(np.float64)
    values /= CODES_PER_OCTAVE
    with np.errstate(over="ignore", under="ignore"):
        np.exp2(values, out=values)
    values[array == ZERO] = 0.0
    values[array == INFINITE] = np.inf
    values[array == NAN] = np.nan
    return values


def quantize_counts(counts: npt.ArrayLike) -> Codes:
    """Rounds counts to int16 codes of their grid; 0 becomes `ZERO`, NaN `NAN`."""
    array = np.asarray(counts, np.float64)
    if not array.any():  # most often
        return np.full(array.shape, ZERO, np.int16)
    known = np.where(np.isnan(array), 0, array)
    octaves = np.log2(np.maximum(known, EXACT) / EXACT)
    above = ZERO + EXACT + np.rint(_COUNTS_PER_OCTAVE * octaves)
    codes = np.where(known > EXACT, np.minimum(above, NAN - 1), ZERO + np.minimum(known, EXACT))
    codes[np.isnan(array)] = NAN
    return codes.astype(np.int16)


def dequantize_counts(codes: npt.ArrayLike) -> Floats:
    """Returns the counts of codes from `quantize_counts`, float64."""
    array = np.asarray(codes, np.int16)
    numbers = array.astype(np.float64) - ZERO
    octaves = np.maximum(numbers - EXACT, 0) / _COUNTS_PER_OCTAVE
    values = np.where(numbers > EXACT, np.rint(EXACT * np.exp2(octaves)), numbers)
    values[array == NAN] = np.nan
    return np.asarray(values)


def ratio_codes(numerator: npt.ArrayLike, denominator: npt.ArrayLike) -> Codes:
    """Divides codes, as a relative delta is defined.

    0/0 is `ZERO`, x/0 is `INFINITE`, a NaN on either side is `NAN`; beyond the grid it is the
    nearest code that isn't special.
    """
    top = np.asarray(numerator, dtype=np.int16)
    bottom = np.asarray(denominator, dtype=np.int16)
    if _ordinary(top) and _ordinary(bottom):
        return top - bottom
    difference = np.clip(top.astype(np.int32) - bottom, ZERO + 1, NAN - 1).astype(np.int16)
    infinite = (bottom == ZERO) | (top == INFINITE)
    codes = np.where(infinite, np.int16(INFINITE), difference)
    codes[(top == ZERO) | (bottom == INFINITE)] = ZERO
    codes[(top == NAN) | (bottom == NAN)] = NAN
    return codes.astype(np.int16, copy=False)


def _ordinary(codes: Codes) -> bool:
    """Whether no code is special, and the difference of any two fits."""
    return bool(codes.size) and codes.min() > -_ORDINARY and codes.max() < _ORDINARY
