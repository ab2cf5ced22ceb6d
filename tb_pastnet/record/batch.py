"""From single records to the messages that are stored: quantised, and packed in blocks.

A block holds some consecutive records of one variable, or of several small ones. Blocks of all
variables and the timeline of the same records are written at once, and with them changes of masks
and violations.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tb_pastnet.core.parallel import yield_gil
from tb_pastnet.core.quantize import NAN, Codes
from tb_pastnet.core.statistics import MOVED, either_moved, quantize_statistics
from tb_pastnet.format import limits
from tb_pastnet.format.block import Block, encode_blocks
from tb_pastnet.format.follows import Follows, encode_follows
from tb_pastnet.format.function_change import FunctionChange, encode_function_change
from tb_pastnet.format.tags import TAG_FOLLOWS, TAG_FUNCTION, TAG_TIMELINE
from tb_pastnet.format.timeline import Timeline, encode_timeline
from tb_pastnet.format.together import Together, stored_channels
from tb_pastnet.record.changes import Changes
from tb_pastnet.record.follow_measures import Followed
from tb_pastnet.record.messages import Message
from tb_pastnet.record.sketch_log import SketchLog
from tb_pastnet.record.source import Probing, Sketches
from tb_pastnet.record.weight import Weight

BLOCK_RECORDS = 16
"""Records in a block: with more, files are smaller, but more is lost together."""

_PIECE = 4096
"""Channels that are packed at once: meanwhile training may wait for the interpreter."""

_COLUMNS = 4 * _PIECE
"""Channels, each once per record, that are quantised at once."""

_UNKNOWN: Codes = np.array([NAN], np.int16)  # of all channels


class Record(NamedTuple):
    """One record of all variables, as it leaves the training thread.

    Values are floats (statistics, channels of all variables), rows as in `statistics.STATISTICS`,
    or their `Codes` once it is quantised. The learning rate is NaN if unknown. `function` is
    float32 (4, places of the probe), rows as in `function_change.MEASURES`, None without a probe,
    or if it couldn't be evaluated. `thinned` counts earlier records of the lineage that a budget
    left out; `group_rates` are of the source's groups. `follows` is None without weights that
    follow others. `sketches` are those of `Network.sketched`, float64 (weights, 64), None if the
    record has none.
    """

    sequence: int
    step: int
    past_step: int
    wall_time: float
    learning_rate: float
    values: npt.NDArray[Any]
    function: npt.NDArray[np.float32] | None = None
    thinned: int = 0
    group_rates: tuple[float, ...] = ()
    follows: Followed | None = None
    sketches: npt.NDArray[np.float64] | None = None

    @property
    def nbytes(self) -> int:
        """Approximate memory while it waits."""
        return int(self.values.nbytes)

    @property
    def quantized(self) -> bool:
        """Whether its values are codes."""
        return self.values.dtype == np.int16


def quantized(records: Sequence[Record]) -> list[Record]:
    """The codes of records of one shape: together they take less time than one by one."""
    values = [record.values for record in records]
    codes = _quantize(values[0] if len(values) == 1 else np.concatenate(values, axis=1))
    ends = np.cumsum([each.shape[1] for each in values]).tolist()
    # Each has its own copy: the others' memory isn't kept with it.
    return [
        record._replace(values=codes[:, end - record.values.shape[1] : end].copy())
        for record, end in zip(records, ends, strict=True)
    ]


class Span(NamedTuple):
    """The place of a weight's channels among all; in a `kernel`, those of zeros count as pruned."""

    variable: str
    start: int
    stop: int
    kernel: bool


def spans_of(weights: Sequence[Weight]) -> list[Span]:
    """The place of each weight's channels in a record."""
    stops = np.cumsum([weight.axis.channels for weight in weights]).tolist()
    return [
        Span(weight.name, stop - weight.axis.channels, stop, weight.role == "kernel")
        for weight, stop in zip(weights, stops, strict=True)
    ]


class _Series(NamedTuple):
    """What is stored under one tag: channels of the blocks of all series, side by side."""

    tag: str
    start: int
    stop: int


def _arranged(
    spans: Sequence[Span], together: Together
) -> tuple[list[_Series], npt.NDArray[np.intp] | None]:
    """All series, and the place of each of their channels in a record; None: they are in order."""
    stored = stored_channels([(span.variable, span.stop - span.start) for span in spans], together)
    columns: dict[str, list[npt.NDArray[np.intp]]] = {}
    for span, place in zip(spans, stored, strict=True):
        columns.setdefault(place.tag, []).append(np.arange(span.start, span.stop))
    widths = [sum(map(len, own)) for own in columns.values()]
    stops = np.cumsum(widths).tolist()
    series = [
        _Series(tag, stop - width, stop)
        for tag, width, stop in zip(columns, widths, stops, strict=True)
    ]
    order = np.concatenate([own for each in columns.values() for own in each])
    return series, None if (np.diff(order) == 1).all() else order


class Group(NamedTuple):
    """Messages that are stored together or not at all, and how many records they hold."""

    messages: tuple[Message, ...]
    records: int


class Batch:
    """Collects records and packs them, on the sink's thread.

    Attributes:
        changes: of masks, and violations; they are written with the records, or by themselves.
        packed: records that were packed and are written.
        thinned: records left out so far, by the thinning rule and by a budget.
        carried: records of earlier lineages that were lost, and are in none of their accounts.
    """

    def __init__(
        self,
        spans: Sequence[Span],
        lineage: int,
        probe: Probing | None = None,
        sketched: Sequence[int] = (),
        together: Together = (),
    ) -> None:
        self._series, self._order = _arranged(spans, together)
        self.lineage = lineage
        self._probe = probe
        widest = max(own.stop - own.start for own in self._series)
        self._capacity = max(1, min(BLOCK_RECORDS, limits.MAX_CELLS // widest))
        self._pending: list[Record] = []
        # What moved in records that are dropped, and that no later one says yet.
        self._unkept: Codes | None = None
        self._timeline_step = -1
        self._seen = 0
        self.thinned = 0
        self._accounted = 0
        self.changes = Changes(lineage)
        self._sketches = SketchLog(lineage, tuple(sketched))
        self.packed = self.carried = 0

    @property
    def unaccounted(self) -> int:
        """Records that were due, but are in no account that is written."""
        return self._seen + self.carried - self._accounted

    @property
    def full(self) -> bool:
        """Whether a block is complete, or changes are too many to wait."""
        return len(self._pending) >= self._capacity or self.changes.full

    @property
    def nbytes(self) -> int:
        """Bytes of the records that wait; all are of one size."""
        return len(self._pending) * self._pending[-1].nbytes if self._pending else 0

    @property
    def empty(self) -> bool:
        """Whether no kept record waits, and no change."""
        return not self._pending and self.changes.empty and self._sketches.empty

    def add(self, record: Record) -> None:
        """Adds the next record, `quantized` or not."""
        unkept = self._unkept
        # If this fails, it isn't known what had moved in this one.
        self._unkept = _UNKNOWN if unkept is None else either_moved(_UNKNOWN, unkept)
        if not record.quantized:
            # The floats aren't kept: they take more memory than what waits here counts as.
            (record,) = quantized([record])
        self.reach(record.sequence + 1, record.thinned)
        if record.sketches is not None:
            self.sketch(record.sequence, record.step, record.sketches)
            record = record._replace(sketches=None)
        self._pending.append(record if unkept is None else _with_moved(record, unkept))
        self._unkept = None

    def sketch(self, sequence: int, step: int, sketches: Sketches) -> None:
        """Adds the sketches of a record, kept or not."""
        self._sketches.add(sequence, step, sketches)

    def reach(self, offered: int, thinned: int) -> None:
        """Notes how many records were due so far, and how many of them were left out."""
        if offered >= self._seen:
            self._seen, self.thinned = offered, thinned

    def pack(self, *, closed: bool = False, notes: Mapping[str, int] | None = None) -> Group:
        """Packs what waits; it keeps waiting until `done`.

        The timeline comes last, because it covers all records; changes by themselves need none.
        """
        records = self._pending
        messages: list[Message] = []
        for start in range(0, len(records), self._capacity):
            messages += self._blocks(records[start : start + self._capacity])
        messages += self._outputs(records)
        messages += self._sketches.pack()
        messages += self._followed(records)
        messages += self.changes.pack()
        if closed or records or not messages:
            messages += self._timelines(records, closed=closed, notes=notes or {})
        return Group(tuple(messages), len(records))

    def done(self, group: Group) -> None:
        """Starts again: all that waited was packed and written."""
        self.changes.done()
        self._sketches.done()
        if group.messages[-1].tag == TAG_TIMELINE:
            self._timeline_step = group.messages[-1].step
            self._accounted = self._seen + self.carried
        self.packed += group.records
        self._pending = []

    def drop(self) -> None:
        """Drops what waits: these records then count as dropped."""
        self.changes.drop()
        self._sketches.drop()
        for record in self._pending:
            self._carry(record)
        self._pending = []

    def _carry(self, record: Record) -> None:
        moved = record.values[MOVED]
        self._unkept = moved if self._unkept is None else either_moved(moved, self._unkept)

    def _timelines(
        self, records: Sequence[Record], *, closed: bool, notes: Mapping[str, int]
    ) -> list[Message]:
        """The timeline of records, and at its end the account: in a store, many may have waited."""
        last = max(0, len(records) - 1) // limits.MAX_RECORDS * limits.MAX_RECORDS
        account = {
            "offered": self.carried + self._seen,
            "thinned": self.thinned,
            "dropped": self.carried + self._seen - self.packed - len(records) - self.thinned,
            "closed": closed,
            "notes": dict(notes),
        }
        messages = [
            self._timeline(records[start : start + limits.MAX_RECORDS], {})
            for start in range(0, last, limits.MAX_RECORDS)
        ]
        return [*messages, self._timeline(records[last:], account)]

    def _timeline(self, records: Sequence[Record], account: Mapping[str, Any]) -> Message:
        rates = [record.group_rates[: limits.MAX_GROUPS] for record in records]
        timeline = Timeline(
            np.array([r.sequence for r in records], np.int64),
            np.array([r.step for r in records], np.int64),
            np.array([r.wall_time for r in records], np.float64),
            np.array([r.learning_rate for r in records], np.float64),
            group_rates=np.array(rates, np.float64).T,
            **account,
        )
        # The steps of a tag must increase, even after a closing timeline that wasn't the last.
        last = records[-1].step if records else -1
        step = max(last, self._timeline_step + 1)
        sealed = encode_timeline(timeline, tag=TAG_TIMELINE, step=step, lineage=self.lineage)
        return Message(TAG_TIMELINE, step, sealed)

    def _blocks(self, records: Sequence[Record]) -> list[Message]:
        sequence = np.array([r.sequence for r in records], np.int64)
        steps = np.array([r.step for r in records], np.int64)
        past_steps = np.array([r.past_step for r in records], np.int64)
        messages = []
        for some in _pieces(self._series):
            first, last = some[0].start, some[-1].stop
            own = slice(first, last) if self._order is None else self._order[first:last]
            codes = np.stack([r.values[:, own] for r in records], axis=1)
            block = Block(sequence, steps, past_steps, codes)
            ranges = [(each.tag, each.start - first, each.stop - first) for each in some]
            sealed = encode_blocks(block, ranges, lineage=self.lineage)
            for (tag, _, _), message in zip(ranges, sealed, strict=True):
                messages.append(Message(tag, int(steps[-1]), message))
            yield_gil()
        return messages

    def _outputs(self, records: Sequence[Record]) -> Iterator[Message]:
        """How far outputs moved, in messages that a reader accepts: in a store, many may wait."""
        probed = [(r, r.function) for r in records if r.function is not None]
        if self._probe is None:
            return
        most = min(4 * BLOCK_RECORDS, limits.MAX_VALUES // (4 * len(self._probe.places)))
        for start in range(0, len(probed), most):
            piece = probed[start : start + most]
            change = FunctionChange(
                self._probe.inputs,
                self._probe.places,
                np.array([record.sequence for record, _ in piece], np.int64),
                np.array([record.step for record, _ in piece], np.int64),
                np.array([record.past_step for record, _ in piece], np.int64),
                np.stack([values for _, values in piece], axis=1),
            )
            step = piece[-1][0].step
            sealed = encode_function_change(
                change, tag=TAG_FUNCTION, step=step, lineage=self.lineage
            )
            yield Message(TAG_FUNCTION, step, sealed)

    def _followed(self, records: Sequence[Record]) -> Iterator[Message]:
        """How weights follow others, in messages that a reader accepts."""
        measured = [(r, r.follows) for r in records if r.follows is not None]
        if not measured:
            return
        pairs = measured[0][1].pairs
        most = min(4 * BLOCK_RECORDS, limits.MAX_VALUES // measured[0][1].values.size)
        for start in range(0, len(measured), most):
            piece = measured[start : start + most]
            step = piece[-1][0].step
            follows = Follows(
                pairs,
                np.array([record.sequence for record, _ in piece], np.int64),
                np.array([record.step for record, _ in piece], np.int64),
                np.array([own.past_step for _, own in piece], np.int64),
                np.stack([own.values for _, own in piece], axis=1),
            )
            sealed = encode_follows(follows, tag=TAG_FOLLOWS, step=step, lineage=self.lineage)
            yield Message(TAG_FOLLOWS, step, sealed)


def _with_moved(record: Record, unkept: Codes) -> Record:
    """A record that also says what moved in records before it that were dropped."""
    values = record.values.copy()
    values[MOVED] = either_moved(values[MOVED], unkept)
    return record._replace(values=values)


def _pieces(series: Sequence[_Series]) -> Iterator[list[_Series]]:
    """Series that are packed at once: up to a number of channels, or a single larger one."""
    piece: list[_Series] = []
    for own in series:
        if piece and own.stop - piece[0].start > _PIECE:
            yield piece
            piece = []
        piece.append(own)
    if piece:
        yield piece


def _quantize(values: npt.NDArray[np.floating]) -> Codes:
    codes = np.empty(values.shape, np.int16)
    for start in range(0, values.shape[1], _COLUMNS):
        piece = slice(start, start + _COLUMNS)
        codes[:, piece] = quantize_statistics(values[:, piece])
        yield_gil()
    return codes
