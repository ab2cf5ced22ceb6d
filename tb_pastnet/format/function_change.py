"""How far a network's outputs moved on a probe batch: past against current network.

Some consecutive records are stored in one message, which decodes by itself.
docs/reference/record_format.md has its fields. Unknown keys of the head and unknown measures are
ignored; a missing measure is NaN.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tb_pastnet.errors import InvalidArgument
from tb_pastnet.format import json_payload, limits, planes, varint
from tb_pastnet.format.envelope import Kind, seal, unseal
from tb_pastnet.format.json_payload import items, natural, numbers, shape, text

Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float32]

MEASURES = ("relative", "cosine", "divergence", "decisions")
"""The measures of each place, between current outputs y and past ones y', over all samples:

- relative: ‖y − y'‖₂ / ‖y'‖₂; 0/0 is 0, x/0 infinite.
- cosine: y·y' / (‖y‖₂ ‖y'‖₂); 1 if both are zero, 0 if one is.
- divergence: mean Kullback-Leibler divergence KL(p' ‖ p) of a sample's classes, in nats.
- decisions: share of the samples whose predicted class differs.

The last two are NaN for a place that doesn't predict classes. All are NaN if an output isn't
finite.
"""
RELATIVE, COSINE, DIVERGENCE, DECISIONS = range(len(MEASURES))

LAYER, OUTPUT = "layer", "output"
"""Kinds of places."""

_FLOAT32 = float(np.finfo(np.float32).max)
# By its bits: if subnormal numbers are flushed to zero, 2.0**-149 would be zero as well.
_SMALLEST = np.array(1, np.uint32).view(np.float32)


@dataclass(frozen=True)
class Place:
    """A place where outputs are compared: a `LAYER` by its id, or an `OUTPUT` by its own name.

    `elements` is the number of values of one sample there.
    """

    kind: str
    name: str
    elements: int


@dataclass(frozen=True)
class Input:
    """One input of the probe batch; the shape includes the samples.

    Equal values have equal digests. Name and digest are empty if there is none.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    digest: str = ""


@dataclass(frozen=True, eq=False)
class FunctionChange:
    """Records of how far outputs moved, oldest first."""

    inputs: tuple[Input, ...]  # the probe batch
    places: tuple[Place, ...]  # what was compared, layers in forward order, then outputs
    # int64 (records,), the numbers of the records that these belong to, increasing
    sequence: Integers
    steps: Integers  # int64 (records,), strictly increasing
    past_steps: Integers  # int64 (records,), the step of the past values
    values: Floats  # float32 (4, records, places), see `MEASURES`


def narrow(values: npt.NDArray[np.float64]) -> Floats:
    """Rounds to float32; only zero becomes zero, and only infinity infinite.

    What is smaller than float32's smallest number, or larger than its largest, becomes that number,
    with its sign. NaN stays NaN.
    """
    wide = np.asarray(values, np.float64)
    inside = np.where(np.isinf(wide), wide, np.clip(wide, -_FLOAT32, _FLOAT32))
    with np.errstate(under="ignore"):
        rounded = inside.astype(np.float32)
    lost = (rounded == 0) & (wide != 0)
    return np.where(lost, np.copysign(_SMALLEST, rounded), rounded)


def encode_function_change(change: FunctionChange, *, tag: str, step: int, lineage: int) -> bytes:
    """Packs and seals some records: at least one, of at least one place.

    Raises InvalidArgument if the arrays don't fit together, or a reader would refuse them.
    """
    _check(change)
    data = _compared(change.inputs, change.places)
    with json_payload.encoding("changes of a function"):
        _inputs_and_places(data)
    for key in ("sequence", "steps", "past_steps"):
        data[key] = getattr(change, key).tolist()
    head = json_payload.pack(data)
    values = planes.deflate(change.values.astype("<f4").tobytes(), 6)
    payload = varint.encode([len(head)]) + head + values
    return seal(payload, Kind.FUNCTION, tag=tag, step=step, lineage=lineage)


def decode_function_change(message: bytes, *, tag: str, step: int, lineage: int) -> FunctionChange:
    """Opens a message and restores its records, exactly; raises UnreadableRecord."""
    reader = varint.Reader(unseal(message, Kind.FUNCTION, tag=tag, step=step, lineage=lineage))
    data = json_payload.unpack(reader.take(reader.number(limits.MAX_MESSAGE)))
    with json_payload.expecting("a complete probe"):
        measures = [text(name) for name in items(data["measures"], limits.MAX_INPUTS)]
        inputs, places = _inputs_and_places(data)
        if len(set(measures)) < len(measures):
            raise ValueError("a measure is there twice")
        sequence = numbers(data["sequence"], natural)
        steps, past_steps = (numbers(data[key], _step) for key in ("steps", "past_steps"))
    sizes = len(measures), len(steps), len(places)
    count = math.prod(sizes)
    if not 0 < count <= limits.MAX_VALUES:
        raise varint.damaged("records of reasonable size", " x ".join(map(str, sizes)) + " values")
    if not len(sequence) == len(steps) == len(past_steps):
        raise varint.damaged("a step of each record", "more of one than of another")
    if not (varint.increase(sequence) and varint.increase(steps)):
        raise varint.damaged("increasing steps", "steps that go back")
    raw = planes.inflate(reader.take(reader.left), 4 * count)
    values = _by_measure(measures, np.frombuffer(raw, "<f4").reshape(sizes))
    return FunctionChange(inputs, places, sequence, steps, past_steps, values)


def check_places(inputs: Sequence[Input], places: Sequence[Place]) -> None:
    """Raises InvalidArgument if a reader would refuse any record of these."""
    data = _compared(inputs, places)
    with json_payload.encoding("a probe"):
        _inputs_and_places(data)
    # Room for the numbers of as many records as there may be.
    json_payload.pack({**data, "numbers": [limits.MAX_STEP] * 3 * limits.MAX_RECORDS})


def _compared(inputs: Sequence[Input], places: Sequence[Place]) -> dict[str, Any]:
    return {
        "measures": list(MEASURES),
        "inputs": [{**asdict(entry), "shape": list(entry.shape)} for entry in inputs],
        "places": [asdict(place) for place in places],
    }


def _inputs_and_places(data: Mapping[str, Any]) -> tuple[tuple[Input, ...], tuple[Place, ...]]:
    inputs = tuple(_input(entry) for entry in items(data["inputs"], limits.MAX_INPUTS))
    places = tuple(_place(entry) for entry in items(data["places"], limits.MAX_PLACES))
    if _twice(places):
        raise ValueError("a place is there twice")
    return inputs, places


def _step(value: Any) -> int:
    # The first record may be of step 0, its past of step -1.
    natural(-value if type(value) is int and value < 0 else value)
    return int(value)


def _input(data: Mapping[str, Any]) -> Input:
    return Input(
        text(data["name"]), shape(data["shape"]), text(data["dtype"]), text(data.get("digest", ""))
    )


def _place(data: Mapping[str, Any]) -> Place:
    return Place(text(data["kind"]), text(data["name"]), natural(data["elements"]))


def _twice(places: Sequence[Place]) -> bool:
    return len({(place.kind, place.name) for place in places}) < len(places)


def _by_measure(measures: Sequence[str], stored: npt.NDArray[np.floating]) -> Floats:
    values = np.full((len(MEASURES), *stored.shape[1:]), np.nan, np.float32)
    for row, name in enumerate(MEASURES):
        if name in measures:
            values[row] = stored[measures.index(name)]
    return values


def _check(change: FunctionChange) -> None:
    records = len(change.steps)
    shape = (len(MEASURES), records, len(change.places))
    if change.values.shape != shape or not change.values.size:
        raise InvalidArgument(
            f"Could not encode changes of a function: expected values of shape {shape} with at "
            f"least one record and place, got {change.values.shape}. Pass all measures of each."
        )
    for noun, size, most in (
        ("inputs", len(change.inputs), limits.MAX_INPUTS),
        ("places", len(change.places), limits.MAX_PLACES),
        ("records", records, limits.MAX_RECORDS),
        ("values", change.values.size, limits.MAX_VALUES),
    ):
        if size > most:
            raise InvalidArgument(
                f"Could not encode changes of a function: expected at most {most} {noun}, got "
                f"{size}. Compare fewer places, or store the records in several messages."
            )
    if _twice(change.places):
        raise InvalidArgument(
            "Could not encode changes of a function: expected one place of each kind and name, got "
            "two. Give each its own name."
        )
    if len(change.sequence) != records or len(change.past_steps) != records:
        raise InvalidArgument(
            f"Could not encode changes of a function: expected {records} sequence numbers and past "
            f"steps, got {len(change.sequence)} and {len(change.past_steps)}. Pass one of each per "
            f"record."
        )
    if not (varint.increase(change.sequence) and varint.increase(change.steps)):
        raise InvalidArgument(
            f"Could not encode changes of a function: expected increasing steps, got "
            f"{change.steps.tolist()} of records {change.sequence.tolist()}. Start a new lineage "
            f"when training goes back."
        )
