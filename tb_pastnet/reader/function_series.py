"""How far the outputs of one run moved on its probe: the series, and its public form."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tb_pastnet.core.lineage import first_steps_after, supersede
from tb_pastnet.format import limits
from tb_pastnet.format.budget import PROBE_VALUES
from tb_pastnet.format.function_change import (
    MEASURES,
    FunctionChange,
    Input,
    Place,
    decode_function_change,
)
from tb_pastnet.format.tags import TAG_FUNCTION
from tb_pastnet.reader import notes
from tb_pastnet.reader.arrays import Flags, Integers
from tb_pastnet.reader.lineage_heads import LineageHead, decode_all, once
from tb_pastnet.reader.notes import Notes
from tb_pastnet.reader.runs import CatalogRun
from tb_pastnet.reader.sections import Sections
from tb_pastnet.reader.series_source import SeriesName, StoredMessage
from tb_pastnet.reader.tables import Column, Columns, labels, repeated, to_dataframe

if TYPE_CHECKING:
    from pandas import DataFrame

Floats = npt.NDArray[np.float32]
_Blocks = list[tuple[int, FunctionChange]]

MOST_CELLS = 1 << 22
"""Records times places of one run in memory: 64 MiB of values."""

MOST_PLACES = 1 << 17
"""Places of one run, over all its lineages."""

MOST_INPUTS = 1 << 15
"""Inputs of one run: each batch may differ from the one before."""

MOST_CHANGES = 256
"""Changes of the probe that are listed."""

_BLOCK, _ROW, _SEQUENCE, _STEP, _PAST = range(5)


@dataclass(frozen=True, eq=False)
class FunctionSeries:
    """The records of a probe that count, oldest first."""

    probe: tuple[Input, ...]  # the batch of the last record, none without records
    # the compared places, in the order of their first mention, each as mentioned last
    places: tuple[Place, ...]
    steps: Integers  # (records,), increasing
    past_steps: Integers  # (records,), of the network that each is compared with
    # float32 (measures, places, records), see `format.function_change`; NaN where a record lacks a
    # place
    values: Floats
    # steps of the records whose batch differs from the one before; the first 256
    changed: tuple[int, ...] = ()
    notes: Notes = field(default_factory=Counter)  # what could not be read, and why

    @property
    def size(self) -> int:
        """Approximate size in bytes."""
        return self.values.nbytes + 2 * self.steps.nbytes + 512 * len(self.places)


def make_function(
    lineages: Sequence[LineageHead],
    readings: Mapping[SeriesName, Sequence[StoredMessage]],
    *,
    withheld: Sequence[str] = (),
    sampled: bool = False,
) -> FunctionSeries:
    """Decodes and joins the probe records of a run's lineages, in their order.

    A lineage without a probe supersedes as well. `withheld` are the runs whose series TensorBoard
    could not return; `sampled` means that only a part of the events was read.
    """
    lost: Notes = Counter()
    blocks, left_out = _join_messages(_decoded(lineages, readings, lost))
    rows = _records(blocks, len(lineages))
    if left_out or sampled:
        lost[notes.FUNCTION_TOO_MANY] += max(left_out, 1)
    elif missing := _missing(rows, lineages, withheld):
        lost[notes.FUNCTION_MISSING] += missing
    if withheld:
        lost[notes.WITHHELD] += len(withheld)
    return _join([block for _, block in blocks], _standing(rows, lineages), lost)


def _decoded(
    lineages: Sequence[LineageHead],
    readings: Mapping[SeriesName, Sequence[StoredMessage]],
    lost: Notes,
) -> Iterator[tuple[int, FunctionChange]]:
    """Each message within the budget, and the position of the lineage that wrote it."""
    work = stored = 0
    for writer, lineage in enumerate(lineages):
        number = lineage.name.lineage
        for message in readings.get((lineage.tb_run, TAG_FUNCTION), ()):
            if work > PROBE_VALUES.most(stored):
                lost[notes.IN_PART] += 1
                continue
            stored += len(message.data or b"")
            for block in decode_all([message], decode_function_change, TAG_FUNCTION, number, lost):
                work += block.values.size
                yield writer, block


def _join_messages(blocks: Iterable[tuple[int, FunctionChange]]) -> tuple[_Blocks, int]:
    """Joins messages; if they are too many, every second record is left out, and so on.

    The rule depends only on the records' numbers, like `join_blocks`.
    """
    held: _Blocks = []
    places: dict[Place, Place] = {}
    inputs: dict[Input, Input] = {}
    total = count = 0
    stride = 1
    for writer, block in blocks:
        total += len(block.steps)
        if not (
            _fit(places, block.places, MOST_PLACES) and _fit(inputs, block.inputs, MOST_INPUTS)
        ):
            continue
        # Equal ones are kept once.
        shared = replace(
            block,
            places=tuple(places.setdefault(place, place) for place in block.places),
            inputs=tuple(inputs.setdefault(each, each) for each in block.inputs),
        )
        new = _thin([(writer, shared)], stride)
        held += new
        count += sum(len(thinned.steps) for _, thinned in new)
        while count * len(places) > MOST_CELLS:
            if stride <= limits.MAX_STEP:
                stride *= 2
                held = _thin(held, stride)
            else:
                # All that remain have number 0: many lineages, or a hostile one.
                held = held[::2]
            count = sum(len(kept.steps) for _, kept in held)
    return held, total - count


def _fit(known: Mapping[Any, Any], more: Iterable[Any], most: int) -> bool:
    return len(known) + len(set(more).difference(known)) <= most


def _thin(blocks: _Blocks, stride: int) -> _Blocks:
    thinned = [(writer, _choose(block, block.sequence % stride == 0)) for writer, block in blocks]
    return [(writer, block) for writer, block in thinned if len(block.steps)]


def _choose(block: FunctionChange, flags: Flags) -> FunctionChange:
    if flags.all():
        return block
    return replace(
        block,
        sequence=block.sequence[flags],
        steps=block.steps[flags],
        past_steps=block.past_steps[flags],
        values=block.values[:, flags],
    )


def _records(blocks: _Blocks, writers: int) -> list[Integers]:
    """Of each writer int64 (records, 5): message, row in it, number, step and past step."""
    tables = [[np.zeros((0, 5), np.int64)] for _ in range(writers)]
    for number, (writer, block) in enumerate(blocks):
        rows = np.arange(len(block.steps))
        columns = (np.full_like(rows, number), rows, block.sequence, block.steps, block.past_steps)
        tables[writer].append(np.column_stack(columns))
    joined = map(np.concatenate, tables)
    return [table[once(table[:, _SEQUENCE], table[:, _STEP])] for table in joined]


def _missing(
    by_writer: Sequence[Integers], lineages: Sequence[LineageHead], withheld: Sequence[str]
) -> int:
    """How many records that count lack values although their writer had a probe."""
    missing = 0
    cuts = first_steps_after([lineage.start for lineage in lineages])
    for rows, lineage, cut in zip(by_writer, lineages, cuts, strict=True):
        if TAG_FUNCTION in lineage.versions and lineage.tb_run not in withheld:
            line = lineage.timeline
            stands = slice(None if cut is None else np.searchsorted(line.steps, cut))
            every = lineage.description.probe_every if lineage.description else 1
            due = line.sequence[stands][line.sequence[stands] % every == 0]
            missing += int((~np.isin(due, rows[:, _SEQUENCE])).sum())
    return missing


def _standing(by_writer: Sequence[Integers], lineages: Sequence[LineageHead]) -> Integers:
    """The rows of records that count, in the order of their steps."""
    stand = supersede(
        [rows[:, _STEP] for rows in by_writer], [lineage.start for lineage in lineages]
    )
    kept = [rows[keep] for rows, keep in zip(by_writer, stand, strict=True)]
    joined = np.concatenate([np.zeros((0, 5), np.int64), *kept])
    return joined[np.argsort(joined[:, _STEP], kind="stable")]


def _join(blocks: Sequence[FunctionChange], rows: Integers, lost: Notes) -> FunctionSeries:
    order = np.argsort(rows[:, _BLOCK], kind="stable")
    bounds = np.searchsorted(rows[order, _BLOCK], np.arange(1, len(blocks)))
    by_block = zip(blocks, np.split(order, bounds), strict=False)
    groups = [(block, own) for block, own in by_block if len(own)]
    places: dict[tuple[str, str], Place] = {}
    for block, _ in groups:
        places.update({_key(place): place for place in block.places})
    index = {key: number for number, key in enumerate(places)}
    values = np.full((len(MEASURES), len(places), len(rows)), np.nan, np.float32)
    for block, own in groups:
        where = np.array([index[_key(place)] for place in block.places])
        values[:, where[:, None], own] = block.values[:, rows[own, _ROW]].transpose(0, 2, 1)
    return FunctionSeries(
        blocks[rows[-1, _BLOCK]].inputs if len(rows) else (),
        tuple(places.values()),
        rows[:, _STEP],
        rows[:, _PAST],
        values,
        _changed(blocks, rows),
        lost,
    )


def _changed(blocks: Sequence[FunctionChange], rows: Integers) -> tuple[int, ...]:
    starts = np.flatnonzero(np.diff(rows[:, _BLOCK])) + 1
    steps = (
        int(rows[i, _STEP])
        for i in starts
        if blocks[rows[i, _BLOCK]].inputs != blocks[rows[i - 1, _BLOCK]].inputs
    )
    return tuple(islice(steps, MOST_CHANGES))


def _key(place: Place) -> tuple[str, str]:
    return place.kind, place.name


def function_view(run: CatalogRun, series: FunctionSeries) -> Sections:
    """How far outputs moved, as the page draws it."""
    lost = run.notes + series.notes
    header = {
        "run": run.name,
        "past": run.past,
        "probe": [asdict(input_) for input_ in series.probe],
        "changed": list(series.changed),
        "places": [asdict(place) for place in series.places],
        "measures": list(MEASURES),
        "notes": notes.listed(lost),
    }
    arrays: dict[str, npt.NDArray[Any]] = {
        "steps": series.steps.astype(np.float64),
        "past_steps": series.past_steps.astype(np.float64),
        "values": series.values,
    }
    return header, arrays, lost


class Function:
    """The outputs of the network at each record, compared with those of its past values.

    One row per record and one column per place. A value is NaN if a record lacks the place, if an
    output isn't finite, or if a place doesn't predict classes.

    Attributes:
        places: what was compared, layers in forward order and then outputs: `kind` ("layer" or
            "output"), `name`, and `elements` of one sample.
        probe: the batch of the last record, an entry for each input: `name`, `shape`, `dtype`,
            `digest`.
        changed: steps of the records whose batch differs from the one before, the first 256.

    Example:
        >>> import tempfile
        >>> import numpy as np
        >>> import tb_pastnet as pastnet
        >>> logdir, weight = tempfile.mkdtemp(), np.ones((2, 3))
        >>> with pastnet.numpy.Recorder(logdir, {"dense/kernel": weight.copy}, every=1) as recorder:
        ...     for step in range(1, 4):
        ...         weight[:, 0] *= 2
        ...         recorder.record(step)
        >>> function = pastnet.read(logdir).runs["."].function
        >>> function.relative.shape  # no records: there was no probe
        (0, 0)
    """

    def __init__(self, series: FunctionSeries) -> None:
        self._series = series
        self.places: tuple[Place, ...] = series.places
        self.probe: tuple[Input, ...] = series.probe
        self.changed: tuple[int, ...] = series.changed

    @property
    def steps(self) -> Integers:
        """int64 (records,), increasing: the step of each record."""
        return self._series.steps.copy()

    @property
    def past_steps(self) -> Integers:
        """int64 (records,), the step of the past values that each record compares with."""
        return self._series.past_steps.copy()

    @property
    def relative(self) -> Floats:
        """float32 (records, places), ‖y − y′‖₂ / ‖y′‖₂: 0/0 is 0, x/0 infinite."""
        return self._measure("relative")

    @property
    def cosine(self) -> Floats:
        """float32 (records, places), y·y′ / (‖y‖₂ ‖y′‖₂): 1 if both are 0, 0 if one is."""
        return self._measure("cosine")

    @property
    def divergence(self) -> Floats:
        """float32 (records, places), the mean KL(p′ ‖ p) of the classes over samples, in nats."""
        return self._measure("divergence")

    @property
    def decisions(self) -> Floats:
        """float32 (records, places), the share of samples whose predicted class differs."""
        return self._measure("decisions")

    def to_dataframe(self) -> DataFrame:
        """Returns all values, one row per record and place, with the columns of the CSV export.

        Returns:
            Columns step, past_step, kind, place and one for each measure.

        Raises:
            ImportError: pandas isn't installed.
        """
        return to_dataframe(self.columns())

    def columns(self) -> Columns:
        """The columns of `to_dataframe` as arrays, without pandas; texts as `Labels`."""
        places, records = len(self.places), len(self._series.steps)
        columns: dict[str, Column] = {
            "step": np.repeat(self._series.steps, places),
            "past_step": np.repeat(self._series.past_steps, places),
            "kind": repeated(labels([place.kind for place in self.places]), records),
            "place": repeated(labels([place.name for place in self.places]), records),
        }
        return columns | {name: self._measure(name).ravel() for name in MEASURES}

    def __repr__(self) -> str:
        return f"Function({len(self._series.steps):,} records of {len(self.places):,} places)"

    def _measure(self, name: str) -> Floats:
        values: Floats = self._series.values[MEASURES.index(name)].T.copy()
        return values
