"""Sketches of the main weights of layers at some steps, see `core.sketch`.

The first of a lineage are stored whole, as float32. Later ones are stored as differences from them,
in int16 with one linear grid for each: so a small distance after a long way keeps its digits.
docs/reference/record_format.md has the fields.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tb_pastnet.core.sketch import BUCKETS
from tb_pastnet.errors import InvalidArgument
from tb_pastnet.format import limits, planes, varint
from tb_pastnet.format.envelope import Kind, seal, unseal

Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

_WHOLE, _DIFFERENCES = 0, 1
_LARGEST = 32767


@dataclass(frozen=True, eq=False)
class Sketches:
    """Sketches of some variables at some steps, oldest first.

    Either the whole sketches of one step, or differences from those of the lineage's first one.
    """

    variables: tuple[int, ...]  # numbers of the variables in the lineage's description, increasing
    sequence: Integers  # int64 (steps,), the writer's number of the record of each, increasing
    steps: Integers  # int64 (steps,), strictly increasing
    # float64 (steps, variables, 64); NaN for a variable with NaN or infinity
    values: Floats
    whole: bool
    # float64 (steps, variables), the distance of neighbours on the grid of each; 0 if it is whole
    grid: Floats


def whole_sketches(
    variables: tuple[int, ...], sequence: int, step: int, values: Floats
) -> Sketches:
    """The first sketches of a lineage, rounded to what is stored."""
    rounded = _without_nonfinite(values)[None].astype(np.float32).astype(np.float64)
    rounded = _without_nonfinite(rounded)  # beyond float32
    one = np.ones(1, np.int64)
    return Sketches(
        variables, one * sequence, one * step, rounded, True, np.zeros(rounded.shape[:2])
    )


def encode_sketches(sketches: Sketches, *, tag: str, step: int, lineage: int) -> bytes:
    """Packs and seals sketches; differences are rounded to their grids, which are chosen here.

    Raises InvalidArgument if the arrays don't fit together, or a reader would refuse them.
    """
    _check(sketches)
    kind = _WHOLE if sketches.whole else _DIFFERENCES
    payload = varint.encode([kind, len(sketches.steps), len(sketches.variables)])
    payload += varint.encode(np.diff(sketches.variables, prepend=0).tolist())
    payload += varint.encode_signed(np.diff(sketches.sequence, prepend=0).tolist())
    payload += varint.encode_signed((step - sketches.steps).tolist())
    values = _without_nonfinite(sketches.values)
    if sketches.whole:
        raw = values.astype("<f4").tobytes()
    else:
        grid = _grid(values)
        numbers = np.nan_to_num(values / np.where(grid > 0, grid, 1)[..., None])
        raw = grid.astype("<f4").tobytes() + np.rint(numbers).astype("<i2").tobytes()
    return seal(
        payload + planes.deflate(raw, 1), Kind.SKETCHES, tag=tag, step=step, lineage=lineage
    )


def decode_sketches(message: bytes, *, tag: str, step: int, lineage: int) -> Sketches:
    """Opens a message and restores its sketches; raises UnreadableRecord."""
    reader = varint.Reader(unseal(message, Kind.SKETCHES, tag=tag, step=step, lineage=lineage))
    kind, records, count = reader.number(_DIFFERENCES), reader.number(), reader.number()
    if not 0 < records * count * BUCKETS <= limits.MAX_VALUES:
        raise varint.damaged("sketches of reasonable size", f"{records} x {count}")
    variables = np.cumsum([reader.number(limits.MAX_CHANNELS) for _ in range(count)])
    sequence = np.cumsum(reader.signed_array(records))
    steps = step - reader.signed_array(records)
    if not all(map(varint.increase, (variables, sequence, steps))):
        raise varint.damaged("increasing steps and variables", "some that go back")
    form = records, count, BUCKETS
    size = records * count
    width = 4 * BUCKETS if kind == _WHOLE else 4 + 2 * BUCKETS
    raw = planes.inflate(reader.take(reader.left), size * width)
    grid = np.zeros(form[:2])
    if kind == _WHOLE:
        values = np.frombuffer(raw, "<f4").astype(np.float64).reshape(form)
    else:
        grid = np.frombuffer(raw, "<f4", size).astype(np.float64).reshape(form[:2])
        numbers = np.frombuffer(raw, "<i2", offset=4 * size).reshape(form)
        with np.errstate(invalid="ignore"):
            values = numbers * grid[..., None]
    return Sketches(
        tuple(variables.tolist()), sequence, steps, _without_nonfinite(values), kind == _WHOLE, grid
    )


def _grid(values: Floats) -> Floats:
    """The grid of each sketch, as it is stored: NaN if it isn't finite, 0 if all are 0."""
    largest = np.abs(values).max(axis=2)
    with np.errstate(over="ignore"):
        grid = (largest / _LARGEST).astype(np.float32)
    # What is rounded down would leave the largest value off the grid; what is tiny has none.
    grid = np.where(grid * np.float64(_LARGEST) < largest, np.nextafter(grid, np.inf), grid)
    return np.where(np.isfinite(grid), grid, np.nan).astype(np.float64)


def _without_nonfinite(values: Floats) -> Floats:
    """NaN for all of a sketch of which a part isn't finite."""
    finite = np.isfinite(values).all(axis=-1, keepdims=True)
    return np.where(finite, values, np.nan)


def _check(sketches: Sketches) -> None:
    records, count = len(sketches.steps), len(sketches.variables)
    if sketches.values.shape != (records, count, BUCKETS) or not records * count:
        raise InvalidArgument(
            f"Could not encode sketches: expected values of shape ({records}, {count}, {BUCKETS}), "
            f"got {sketches.values.shape}. Pass one of each variable at each step."
        )
    if sketches.values.size > limits.MAX_VALUES:
        raise InvalidArgument(
            f"Could not encode sketches: expected at most {limits.MAX_VALUES} values, got "
            f"{sketches.values.size}. Store them in several messages."
        )
    ordered: tuple[Any, ...] = (sketches.variables, sketches.sequence, sketches.steps)
    if len(sketches.sequence) != records or not all(map(varint.increase, ordered)):
        raise InvalidArgument(
            f"Could not encode sketches: expected strictly increasing steps, numbers and "
            f"variables, got steps {sketches.steps.tolist()[:8]}. Start a new lineage when "
            f"training goes back."
        )
