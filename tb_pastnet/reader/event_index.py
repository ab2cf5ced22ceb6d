"""Where the values of one series lie in the event files of its run: a few numbers each, no bytes.

What counts is what counts for TensorBoard's fast loader: the first value of a tag says whose series
it is and what kind, a step that doesn't grow replaces what was stored from there on, and values of
another kind are left out.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import BinaryIO, NamedTuple

from tb_pastnet.core.names import PLUGIN
from tb_pastnet.errors import UnreadableLog
from tb_pastnet.format.events import Event, Metadata, Value, read_events
from tb_pastnet.format.frames import Rest

_BUFFER = 1 << 20
_DATA_CLASS_TENSOR = 2
_TENSORS = ("tensor", "histo", None)  # what TensorBoard makes a tensor of


class Stored(NamedTuple):
    """Where a value is.

    Attributes:
        file: which file of the run, counted from 0.
        offset: of its frame in that file.
        step: of its event.
        wall_time: of its event.
    """

    file: int
    offset: int
    step: int
    wall_time: float


class FileSeries:
    """The values of one tag of one run.

    Args:
        metadata: of its first value.

    Attributes:
        content: what the plugin noted in it.
    """

    def __init__(self, metadata: Metadata) -> None:
        self.content = metadata.content
        self._ours = metadata.plugin == PLUGIN and metadata.data_class == _DATA_CLASS_TENSOR
        self._files = array("l")
        self._offsets = array("q")
        self._steps = array("q")
        self._walls = array("d")

    @property
    def ours(self) -> bool:
        """Whether it holds tensors of ours."""
        return self._ours and len(self._steps) > 0

    @property
    def last_step(self) -> int:
        """The largest step."""
        return self._steps[-1]

    @property
    def last_wall_time(self) -> float:
        """The latest wall time."""
        return max(self._walls)

    def add(self, file: int, event: Event, value: Value) -> None:
        """Takes the next value.

        Args:
            file: which file it is in.
            event: which event.
            value: of that event.
        """
        if not self._ours:
            return
        while self._steps and self._steps[-1] >= event.step:
            for column in (self._files, self._offsets, self._steps, self._walls):
                column.pop()
        if value.proto.WhichOneof("value") in _TENSORS:
            self._files.append(file)
            self._offsets.append(event.offset)
            self._steps.append(event.step)
            self._walls.append(event.wall_time)

    def __iter__(self) -> Iterator[Stored]:
        """Where its values are, oldest first."""
        return map(Stored, self._files, self._offsets, self._steps, self._walls)


class Scan(NamedTuple):
    """What the event files of one run hold.

    Attributes:
        series: those of ours, by tag.
        begun: whether there is any event; before that TensorBoard doesn't know the run.
        unopened: how many files could not be read.
    """

    series: dict[str, FileSeries]
    begun: bool
    unopened: int


def scan(files: Iterable[Path]) -> Scan:
    """Finds the series of a run. All of it is read once, and nothing but places kept.

    Args:
        files: its event files, in their order.
    """
    found: dict[str, FileSeries] = {}
    begun, unopened = False, 0
    for number, path in enumerate(files):
        try:
            with path.open("rb", buffering=_BUFFER) as stream:
                for event in read_events(stream):
                    if isinstance(event, Rest):
                        break
                    begun = True
                    _add(found, number, event)
        except OSError:
            unopened += 1
    ours = {tag: series for tag, series in found.items() if series.ours}
    return Scan(ours, begun, unopened)


def _add(found: dict[str, FileSeries], file: int, event: Event) -> None:
    for value in event.values:
        series = found.get(value.tag)
        if series is None:
            series = found[value.tag] = FileSeries(value.metadata)
        series.add(file, event, value)


def read(files: Sequence[Path], tag: str, places: Iterable[Stored]) -> Iterator[bytes | None]:
    """Reads values again.

    Args:
        files: those of the run.
        tag: of the series.
        places: where its values are, file by file.

    Yields:
        The bytes of each; None where a value isn't bytes in one dimension.

    Raises:
        UnreadableLog: a file is gone, or was changed since.
    """
    for number, some in groupby(places, lambda place: place.file):
        try:
            with files[number].open("rb") as stream:
                for place in some:
                    yield _value(stream, tag, place)
        except (OSError, EOFError) as error:
            raise UnreadableLog(
                f"Could not read {str(files[number])!r}: expected the file that was found when "
                f"the log was opened, got {error}. Read the log anew."
            ) from error


def _value(stream: BinaryIO, tag: str, place: Stored) -> bytes | None:
    event = next(read_events(stream, place.offset), None)
    if isinstance(event, Event) and event.step == place.step:
        for value in reversed(event.values):
            if value.tag == tag:
                data: bytes | None = value.data
                return data
    raise EOFError(f"another one, without step {place.step} at byte {place.offset}")
