"""How far a network's outputs moved on a probe batch: past against current network.

Some consecutive records are stored in one message, which decodes alone. Payload (numbers are
LEB128)::

    bytes of the head
    head                                 deflated JSON, see `json_payload`: the probe, the places,
                                         and of each record its sequence number, step and past step
    values                               deflated float32, little-endian (measures, records, places)

Unknown keys of the head are ignored.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tb_pastnet.core import json_payload, limits, planes, varint
from tb_pastnet.core.envelope import Kind, seal, unseal
from tb_pastnet.core.json_payload import text, whole
from tb_pastnet.errors import InvalidArgument

Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float32]

MEASURES = ("relative", "cosine", "divergence", "decisions")
"""What is measured of each place, between current outputs y and past ones y', over all samples:

- relative: ‖y − y'‖₂ / ‖y'‖₂; 0/0 is 0, x/0 infinite.
- cosine: y·y' / (‖y‖₂ ‖y'‖₂); 1 where both are zero, 0 where one is.
- divergence: mean Kullback-Leibler divergence KL(p' ‖ p) of a sample's classes, in nats.
- decisions: share of the samples whose decided class differs.

The last two are NaN where a place doesn't decide between classes. All are NaN where an output isn't
finite.
"""
RELATIVE, COSINE, DIVERGENCE, DECISIONS = range(len(MEASURES))

LAYER, OUTPUT = "layer", "output"
"""Kinds of places."""


@dataclass(frozen=True)
class Place:
    """Where outputs are compared.

    Attributes:
        kind: `LAYER`, with the id of a layer as name, or `OUTPUT`, with the output's own name.
        name: which one.
        elements: numbers of one sample there.
    """

    kind: str
    name: str
    elements: int


@dataclass(frozen=True)
class Input:
    """One input of the probe batch.

    Attributes:
        name: of the input; empty where it has none.
        shape: with the samples.
        dtype: its name.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str


@dataclass(frozen=True, eq=False)
class FunctionChange:
    """Records of how far outputs moved, oldest first.

    Attributes:
        inputs: the probe batch.
        places: what was compared, layers in forward order, then outputs.
        sequence: int64 (records,), the numbers of the records that these belong to, increasing.
        steps: int64 (records,), strictly increasing.
        past_steps: int64 (records,), the step of the past values.
        values: float32 (4, records, places), see `MEASURES`.
    """

    inputs: tuple[Input, ...]
    places: tuple[Place, ...]
    sequence: Integers
    steps: Integers
    past_steps: Integers
    values: Floats


def encode_function_change(change: FunctionChange, *, tag: str, step: int, lineage: int) -> bytes:
    """Packs and seals some records.

    Args:
        change: at least one record of at least one place.
        tag: the tag that they will be stored under.
        step: the event's step, at least the last record's.
        lineage: the writer's id.

    Returns:
        The sealed message.

    Raises:
        InvalidArgument: the arrays don't fit together.

    Example:
        >>> one = np.array([3])
        >>> places = (Place("layer", "dense", 8),)
        >>> change = FunctionChange((), places, one, one, one - 1, np.ones((4, 1, 1), np.float32))
        >>> message = encode_function_change(change, tag="function", step=3, lineage=1)
        >>> decode_function_change(message, tag="function", step=3, lineage=1).places == places
        True
    """
    _check(change)
    head = json_payload.pack(
        {
            "inputs": [asdict(one) for one in change.inputs],
            "places": [asdict(one) for one in change.places],
            "sequence": change.sequence.tolist(),
            "steps": change.steps.tolist(),
            "past_steps": change.past_steps.tolist(),
        }
    )
    values = zlib.compress(change.values.astype("<f4").tobytes(), 6)
    payload = varint.encode([len(head)]) + head + values
    return seal(payload, Kind.FUNCTION, tag=tag, step=step, lineage=lineage)


def decode_function_change(message: bytes, *, tag: str, step: int, lineage: int) -> FunctionChange:
    """Opens a message and restores its records.

    Args:
        message: stored bytes, untrusted.
        tag: the tag that it was found under.
        step: the step of its event.
        lineage: the lineage it belongs to.

    Returns:
        The records, exactly as they were encoded.

    Raises:
        UnreadableRecord: foreign, of a newer version, or damaged.
    """
    reader = varint.Reader(unseal(message, Kind.FUNCTION, tag=tag, step=step, lineage=lineage))
    data = json_payload.unpack(reader.take(reader.number(limits.MAX_MESSAGE)))
    try:
        inputs = tuple(_input(entry) for entry in data["inputs"])
        places = tuple(_place(entry) for entry in data["places"])
        sequence = _numbers(data["sequence"])
        steps, past_steps = _numbers(data["steps"]), _numbers(data["past_steps"])
    except json_payload.WRONG as error:
        raise varint.damaged("a complete probe", repr(error)[:200]) from None
    shape = len(MEASURES), len(steps), len(places)
    cells = shape[1] * shape[2]
    if not 0 < cells <= limits.MAX_CELLS or not len(sequence) == len(steps) == len(past_steps):
        raise varint.damaged("records of reasonable size", f"{shape[1]} x {shape[2]} cells")
    if any(np.diff(one).min(initial=1) < 1 for one in (sequence, steps)):
        raise varint.damaged("increasing steps", "steps that go back")
    raw = planes.inflate(reader.take(reader.left), 4 * len(MEASURES) * cells)
    values = np.frombuffer(raw, "<f4").reshape(shape).astype(np.float32)
    return FunctionChange(inputs, places, sequence, steps, past_steps, values)


def _numbers(values: Any) -> Integers:
    # The first record may be of step 0, its past of step -1.
    return np.array([whole(abs(one)) and one for one in values], np.int64)


def _input(data: Mapping[str, Any]) -> Input:
    shape = tuple(whole(one) for one in data["shape"])
    return Input(text(data["name"]), shape, text(data["dtype"]))


def _place(data: Mapping[str, Any]) -> Place:
    return Place(text(data["kind"]), text(data["name"]), whole(data["elements"]))


def _check(change: FunctionChange) -> None:
    records = len(change.steps)
    shape = (len(MEASURES), records, len(change.places))
    if change.values.shape != shape or not change.values.size:
        raise InvalidArgument(
            f"Could not encode changes of a function: expected values of shape {shape} with at "
            f"least one record and place, got {change.values.shape}. Pass all measures of each."
        )
    if len(change.sequence) != records or len(change.past_steps) != records:
        raise InvalidArgument(
            f"Could not encode changes of a function: expected {records} sequence numbers and past "
            f"steps, got {len(change.sequence)} and {len(change.past_steps)}. Pass one of each a "
            f"record."
        )
    if any(np.diff(one).min(initial=1) < 1 for one in (change.sequence, change.steps)):
        raise InvalidArgument(
            f"Could not encode changes of a function: expected increasing steps, got "
            f"{change.steps.tolist()}. Start a new lineage when training goes back."
        )
