"""When records were made, at which learning rate, and what became of missing ones.

One timeline per lineage serves all variables: the index of the tab reads nothing else. It also
carries the writer's account: `offered` counts the sequence numbers used so far, so whatever is
neither readable nor thinned nor dropped is unreadable.

Every event of a tag needs a larger step than the one before, or TensorBoard's fast loader drops
events: a closing timeline without records is stored one step after the timeline before it.
docs/reference/record_format.md has its fields.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from tb_pastnet.errors import InvalidArgument
from tb_pastnet.format import limits, varint
from tb_pastnet.format.envelope import Kind, seal, unseal, version_of

Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

_LONGEST_NOTE = 2000
_OTHER_NOTES = "Other notes"


@dataclass(frozen=True, eq=False)
class Timeline:
    """The time axis of some consecutive records, and the account up to there."""

    # int64 (records,), strictly increasing
    sequence: Integers = field(default_factory=lambda: np.zeros(0, np.int64))
    # int64 (records,), strictly increasing
    steps: Integers = field(default_factory=lambda: np.zeros(0, np.int64))
    # float64 (records,), seconds since 1970, stored to the microsecond
    wall_times: Floats = field(default_factory=lambda: np.zeros(0))
    # float64 (records,), NaN where unknown, or if several are in use
    learning_rates: Floats = field(default_factory=lambda: np.zeros(0))
    # sequence numbers used so far in this lineage, and records of earlier ones that were lost
    # before an account of these could be written
    offered: int = 0
    thinned: int = 0  # of these, left out by the thinning rule
    dropped: int = 0  # of these, not written: the notes say why
    closed: bool = False  # whether training ended normally here, as far as the writer knew
    # what went wrong and how often, since the lineage began
    notes: dict[str, int] = field(default_factory=dict)
    # float64 (groups, records), for each group of weights with its own learning rate, in the order
    # of the description's `groups`; NaN where unknown
    group_rates: Floats = field(default_factory=lambda: np.zeros((0, 0)))
    at: int = 0  # the event's step, which increases: of two accounts, the later one is right


def encode_timeline(timeline: Timeline, *, tag: str, step: int, lineage: int) -> bytes:
    """Packs and seals a timeline, whose arrays have one length, possibly 0.

    The event's step is at least the last step, and larger than that of the event before. Notes that
    are too long or too many for a reader are cut. Raises InvalidArgument if the arrays differ in
    length or are too long, or the steps don't increase.
    """
    records = len(timeline.steps)
    _check(timeline, records)
    head = [records, timeline.offered, timeline.thinned, timeline.dropped, timeline.closed]
    payload = bytearray(varint.encode(head))
    payload += varint.encode_signed(np.diff(timeline.sequence, prepend=0).tolist())
    backwards = [step, *timeline.steps[::-1].tolist()]
    payload += varint.encode_signed((-np.diff(backwards)).tolist())
    micros = np.rint(timeline.wall_times * 1e6).astype(np.int64)
    payload += varint.encode_signed(np.diff(micros, prepend=0).tolist())
    payload += timeline.learning_rates.astype("<f8").tobytes()
    notes = _fitting(timeline.notes)
    payload += varint.encode([len(notes)])
    for text, count in notes.items():
        raw = text.encode("utf-8", "replace")
        payload += varint.encode([len(raw)]) + raw + varint.encode([count])
    payload += varint.encode([len(timeline.group_rates)])
    payload += timeline.group_rates.astype("<f8").tobytes()
    return seal(bytes(payload), Kind.TIMELINE, tag=tag, step=step, lineage=lineage)


def decode_timeline(message: bytes, *, tag: str, step: int, lineage: int) -> Timeline:
    """Opens a message and restores its timeline; raises UnreadableRecord."""
    payload = unseal(message, Kind.TIMELINE, tag=tag, step=step, lineage=lineage)
    reader = varint.Reader(payload)
    records = reader.number(limits.MAX_RECORDS)
    offered, thinned, dropped = (reader.number(limits.MAX_STEP) for _ in range(3))
    closed = reader.number(1) == 1
    sequence = np.cumsum(reader.signed_array(records))
    steps = (step - np.cumsum(reader.signed_array(records)))[::-1].copy()
    wall_times = np.cumsum(reader.signed_array(records)) / 1e6
    rates = _floats(reader, records)
    notes: dict[str, int] = {}
    for _ in range(reader.number(limits.MAX_RECORDS)):
        text = reader.take(reader.number(4 * limits.MAX_NAME)).decode("utf-8", "replace")
        notes[text] = reader.number(limits.MAX_STEP)
    groups = reader.number(limits.MAX_GROUPS) if version_of(message) > 1 else 0
    own_rates = _floats(reader, groups * records).reshape(groups, records)
    reader.end()
    if not (varint.increase(sequence) and varint.increase(steps)):
        raise varint.damaged("increasing steps", "steps that go back")
    account = offered, thinned, dropped, closed, notes
    return Timeline(sequence, steps, wall_times, rates, *account, own_rates, step)


def _floats(reader: varint.Reader, count: int) -> Floats:
    return np.frombuffer(reader.take(8 * count), "<f8").astype(np.float64)


def _fitting(notes: Mapping[str, int]) -> dict[str, int]:
    """Notes that are at most as long, and as many, as a reader accepts; the counts add up."""
    fitting: dict[str, int] = {}
    for text, count in notes.items():
        cut = text if len(text) <= _LONGEST_NOTE else text[: _LONGEST_NOTE - 1] + "…"
        key = cut if cut in fitting or len(fitting) < limits.MAX_RECORDS - 1 else _OTHER_NOTES
        fitting[key] = fitting.get(key, 0) + count
    return fitting


def _check(timeline: Timeline, records: int) -> None:
    groups = len(timeline.group_rates)
    if records > limits.MAX_RECORDS or groups > limits.MAX_GROUPS:
        raise InvalidArgument(
            f"Could not encode a timeline: expected at most {limits.MAX_RECORDS} records and "
            f"{limits.MAX_GROUPS} groups, got {records} and {groups}. Store it in several messages."
        )
    arrays = (
        *(timeline.sequence, timeline.wall_times, timeline.learning_rates),
        *timeline.group_rates,
    )
    if any(len(array) != records for array in arrays):
        raise InvalidArgument(
            f"Could not encode a timeline: expected {records} entries in each array, got "
            f"{[len(array) for array in arrays]}. Pass one of each per record."
        )
    if not (varint.increase(timeline.steps) and varint.increase(timeline.sequence)):
        raise InvalidArgument(
            f"Could not encode a timeline: expected strictly increasing steps, got "
            f"{timeline.steps.tolist()}. Start a new lineage when training goes back."
        )
