"""Which weights the masks of many runs let through, as sets, read in few calls."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain

import numpy as np
import numpy.typing as npt

from tb_pastnet.core import overlap
from tb_pastnet.core.mask_bits import MaskBits, decode_mask
from tb_pastnet.core.overlap import Words
from tb_pastnet.errors import UnreadableRecord
from tb_pastnet.serve.store import notes
from tb_pastnet.serve.store.notes import Notes
from tb_pastnet.serve.store.overlap_channels import read_channel_sets
from tb_pastnet.serve.store.overlap_plan import Change, Plan, plan
from tb_pastnet.serve.store.overlap_sets import Layers, Sets
from tb_pastnet.serve.store.runs import Run
from tb_pastnet.serve.store.source import Caller, Message
from tb_pastnet.serve.store.store import Store

Flags = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Readings = Mapping[tuple[str, str], Sequence[Message]]

BYTES_A_CALL = 64 << 20
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
    store: Store,
    caller: Caller,
    runs: Sequence[Run],
    steps: Sequence[Integers],
    layers: Layers,
    mask: str,
    said: Notes,
) -> Iterator[Mapping[int, Sets]]:
    """The sets of weights of many runs, layer by layer.

    Args:
        store: the records.
        caller: on whose behalf.
        runs: from the catalog.
        steps: int64 (columns,) for each of them: of records, -1 for none.
        layers: what to read.
        mask: "kept": weights that aren't pruned; "trainable": those that an update may change.
        said: gets what could not be read.

    Yields:
        For each layer the sets of each run that has it.
    """
    helds = [store.held(caller, run) for run in runs]
    for held in helds:
        said.update(held.notes)
    still = _still(store, caller, runs, steps, layers, said) if mask == "trainable" else {}
    plans = [
        {
            at: plan(helds[at], one, mask, steps[at], still.get((at, one.id)))
            for at, one in layer.items()
        }
        for layer in layers
    ]
    for some in _calls(plans):
        series = {place for layer in some for one in layer.values() for place in one.cost}
        tags = sorted({tag for _, tag in series})
        readings, _ = store.read(caller, sorted({run for run, _ in series}), tags)
        gone = sum(not readings.get(place) for place in series)
        if gone:
            said[notes.WITHHELD] += gone
        for layer in some:
            most = 8 * MOST_BYTES // max(len(layer), 1)
            yield {at: Bits(readings, one, most, said).sets() for at, one in layer.items()}


def _still(
    store: Store,
    caller: Caller,
    runs: Sequence[Run],
    steps: Sequence[Integers],
    layers: Layers,
    said: Notes,
) -> dict[tuple[int, str], Flags]:
    """Where `trainable=False` holds a variable: no mask tells that, records do."""
    found = {}
    for at, run in enumerate(runs):
        wanted = [layer[at].id for layer in layers if at in layer]
        for name, sets in read_channel_sets(store, caller, run, wanted).items():
            said.update(sets.notes)
            found[at, name] = sets.held(steps[at])
    return found


def _calls(plans: Iterable[Mapping[int, Plan]]) -> Iterator[list[Mapping[int, Plan]]]:
    """Layers whose masks one call can carry."""
    some: list[Mapping[int, Plan]] = []
    cost = 0
    for layer in plans:
        more = sum(sum(one.cost.values()) for one in layer.values())
        if some and cost + more > BYTES_A_CALL:
            yield some
            some, cost = [], 0
        some.append(layer)
        cost += more
    if some:
        yield some
