"""Which weights the masks of many runs let through, as sets, read in few calls."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain

import numpy as np
import numpy.typing as npt

from tb_pastnet.core import overlap
from tb_pastnet.core.overlap import Words
from tb_pastnet.errors import UnreadableRecord
from tb_pastnet.format.mask_bits import MaskBits, decode_mask
from tb_pastnet.reader import notes
from tb_pastnet.reader.mask_history import Held
from tb_pastnet.reader.notes import Notes
from tb_pastnet.reader.overlap_channels import read_channel_sets
from tb_pastnet.reader.overlap_plan import Change, Plan, Spans
from tb_pastnet.reader.overlap_reader import Layers, Reader
from tb_pastnet.reader.overlap_sets import Sets
from tb_pastnet.reader.source import Message

Flags = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Readings = Mapping[tuple[str, str], Sequence[Message]]

BYTES_A_CALL = 16 << 20
"""Bytes of masks that one provider call is asked for, if nothing deflates."""

MOST_BYTES = 256 << 20
"""Bytes of masks of one layer that are unpacked at once, a bit an element. A hostile log claims any
number of them in a few bytes."""


class Bits:
    """The bits of one variable's sets, decoded when they are asked for; the latest are kept.

    Args:
        readings: events by run and tag.
        plan: whose bits.
        most: elements of a mask that is unpacked.
        lost: gets a note where a mask can't be read.
    """

    def __init__(self, readings: Readings, plan: Plan, most: int, lost: Notes) -> None:
        self._readings = readings
        self._plan = plan
        self._most = most
        self._lost = lost
        self._latest: dict[str, tuple[Change, Words | None]] = {}

    def sets(self) -> Sets:
        """The sets, with their bits at hand."""
        return Sets(self._plan.which, self._plan.sizes, self._bits, self._plan.elements)

    def _bits(self, at: int) -> Words | None:
        found: Words | None = None
        for change in self._plan.masks[at]:
            mask = self._mask(change)
            if mask is None:
                return None
            found = mask if found is None else found & mask
        return found

    def _mask(self, change: Change) -> Words | None:
        latest = self._latest.get(change.tag)
        if latest is None or latest[0] != change:
            latest = self._latest[change.tag] = change, self._decoded(change)
        return latest[1]

    def _decoded(self, change: Change) -> Words | None:
        elements = self._plan.elements
        if elements <= self._most:
            messages = self._readings.get((change.lineage.tb_run, change.tag), ())
            found = _find(messages, change, elements)
            if found is not None and found.elements == elements:
                packed = overlap.words(found.bits)
                if overlap.count(packed) == change.through:
                    return packed
        self._lost[notes.MASKS_UNREAD] += 1
        return None


def _find(messages: Sequence[Message], change: Change, elements: int) -> MaskBits | None:
    """The mask of one change: mostly where it should be, else anywhere."""
    where = (message for message in messages[change.position : change.position + 1])
    for message in chain(where, messages):
        if message.data is None:
            continue
        try:
            found = decode_mask(
                message.data,
                tag=change.tag,
                step=message.step,
                lineage=change.lineage.name.lineage,
                most=elements,
            )
        except UnreadableRecord:
            continue
        if found.number == change.number:
            return found
    return None


def each_weights(
    reader: Reader, helds: Sequence[Held], layers: Layers, alone: Flags
) -> Iterator[Mapping[int, Sets]]:
    """The sets of weights of many runs, layer by layer, read in few calls.

    Args:
        reader: of which runs, at which steps. "kept": weights that aren't pruned; "trainable":
            those that an update may change.
        helds: what each run tells of its masks.
        layers: what to read.
        alone: bool (runs,), those of which only the sizes of the sets matter.

    Yields:
        For each layer the sets of each run that has it.
    """
    for held in helds:
        reader.said.update(held.notes)
    still = _still(reader, layers) if reader.mask == "trainable" else {}
    spans = [Spans(held, steps) for held, steps in zip(helds, reader.steps, strict=True)]
    plans = (
        {at: spans[at].plan(one, reader.mask, still.get((at, one.id))) for at, one in layer.items()}
        for layer in layers
    )
    for some, series in _calls(plans, alone):
        readings = _read(reader, series)
        for layer in some:
            most = 8 * MOST_BYTES // max(len(layer), 1)
            yield {at: Bits(readings, one, most, reader.said).sets() for at, one in layer.items()}


def _read(reader: Reader, series: Collection[tuple[str, str]]) -> Readings:
    runs, tags = ({place[at] for place in series} for at in (0, 1))
    readings, _ = reader.store.read(reader.caller, sorted(runs), sorted(tags))
    # What is listed and comes back empty was withheld, too.
    gone = sum(not readings.get(place) for place in series)
    if gone:
        reader.said[notes.WITHHELD] += gone
    return readings


def _still(reader: Reader, layers: Layers) -> dict[tuple[int, str], Flags]:
    """Where `trainable=False` holds a variable: no mask tells that, records do."""
    return {
        (at, name): sets.held(steps)
        for at, steps in enumerate(reader.steps)
        for name, sets in read_channel_sets(reader, at, layers).items()
    }


def _calls(
    plans: Iterable[Mapping[int, Plan]], alone: Flags
) -> Iterator[tuple[list[Mapping[int, Plan]], dict[tuple[str, str], int]]]:
    """Layers whose masks one call can carry, and the series that hold these."""
    some: list[Mapping[int, Plan]] = []
    series: dict[tuple[str, str], int] = {}
    for layer in plans:
        more: dict[tuple[str, str], int] = {}
        for at, one in layer.items():
            more |= one.cost(bool(alone[at]))
        if some and sum(series.values()) + sum(more.values()) > BYTES_A_CALL:
            yield some, series
            some, series = [], {}
        some.append(layer)
        series |= more
    if some:
        yield some, series
