"""The interface to a source of our series, such as a data provider of TensorBoard."""

from __future__ import annotations

import logging
import math
from abc import ABC, abstractmethod
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from tb_pastnet.format.tags import parse_run

Item = TypeVar("Item")

ALL = 1 << 30
"""A number of events that no series reaches: read all of them."""


_EVENT_RECORDS = 16

logger = logging.getLogger(__name__)


class RequestContext(NamedTuple):
    """The request for which data are read."""

    tensorboard: Any  # TensorBoard's own request context, None outside of a request
    experiment: str  # TensorBoard's experiment id, mostly ""


LOCAL = RequestContext(None, "")
"""Files have neither requests nor experiments."""


class SeriesVersion(NamedTuple):
    """The version of a series, without reading it. Two equal ones: nothing new was written."""

    max_step: int
    max_wall_time: str  # the latest time, as text so that NaN equals itself
    content: bytes  # the plugin content of the first event


class StoredMessage(NamedTuple):
    """One stored event."""

    step: int
    wall_time: float  # seconds since 1970, not covered by any checksum
    data: bytes | None  # the bytes; None if the event holds anything but bytes


class ScalarPoint(NamedTuple):
    """One point of a scalar that the training logged by itself."""

    step: int
    wall_time: float  # seconds since 1970
    value: float


def count_standing(steps: Sequence[int], step: int) -> int:
    """How many events of a series remain when another step follows: those of smaller steps.

    TensorBoard's fast loader drops the others, so this is the rule for every source.

    Example:
        >>> count_standing([16, 32, 48], 20)
        1
    """
    return bisect_left(steps, step)


def standing(messages: Iterable[StoredMessage]) -> list[StoredMessage]:
    """The events of a series that count, given all in the order in which they were written.

    Those with infinite times are skipped, as by TensorBoard's fast loader.
    """
    stored: list[StoredMessage] = []
    steps: list[int] = []
    for message in messages:
        if math.isinf(message.wall_time):
            continue
        count = count_standing(steps, message.step)
        stored[count:] = [message]
        steps[count:] = [message.step]
    return stored


SeriesName = tuple[str, str]
"""TensorBoard's run and tag."""

Listing = dict[str, dict[str, SeriesVersion]]
Readings = dict[SeriesName, list[StoredMessage]]
Reading = tuple[Readings, list[SeriesName]]
"""Events by series, oldest first, and the series that TensorBoard could not return."""


class RunDeleted(Exception):
    """A run that was listed, but is gone from TensorBoard.

    As a run, all its records would count as unreadable.
    """


class NotListed(Exception):
    """TensorBoard fails to list runs or series.

    Its slow loader lists while another thread loads, so runs vanish and series are half there;
    a series with metadata and without any value makes it fail each time.
    """


class SeriesSource(ABC):
    """Our series, and their bytes.

    If something fails, the answers note it and contain the rest.
    """

    @property
    def unread(self) -> Mapping[str, str]:
        """Runs whose data raise when they are listed, and why."""
        return {}

    @abstractmethod
    def runs(self, context: RequestContext) -> list[str]:
        """All of TensorBoard's runs, ours or not; or `NotListed`."""

    @abstractmethod
    def series(
        self, context: RequestContext, runs: Collection[str] | None, tags: Collection[str] | None
    ) -> Listing:
        """Our series of some runs and tags; None: all. `NotListed` if TensorBoard fails."""

    def listing(
        self, context: RequestContext, only: Collection[str] | None = None
    ) -> tuple[Listing, list[str]]:
        """Our series by run and tag, of all runs or of some; and the runs that can't be listed."""
        try:
            return self.series(context, only, None), []
        except NotListed:
            logger.debug("list_tensors failed; asking run by run", exc_info=True)
        listing: Listing = {}
        failed: list[str] = []
        for run in self.runs(context) if only is None else only:
            try:
                listing.update(self.series(context, [run], None))
            except NotListed:
                failed.append(run)
        return listing, failed

    def glance(self, context: RequestContext, tags: Collection[str]) -> Listing | None:
        """Lists some tags of all runs: much quicker than all of them. None if that fails."""
        try:
            return self.series(context, None, tags)
        except NotListed:
            logger.debug("list_tensors failed; listing everything", exc_info=True)
            return None

    def probe(
        self, context: RequestContext, run: str, tags: Collection[str]
    ) -> dict[str, SeriesVersion]:
        """Lists those of the tags that can be listed one by one, in a run that `listing` can't."""
        versions: dict[str, SeriesVersion] = {}
        for tag in tags:
            try:
                versions.update(self.series(context, [run], [tag]).get(run, {}))
            except NotListed:
                logger.debug("list_tensors failed for one series", exc_info=True)
        return versions

    @abstractmethod
    def read(
        self,
        context: RequestContext,
        runs: Collection[str],
        tags: Collection[str],
        most: int = ALL,
    ) -> Reading:
        """Reads all events of every given tag in every given run.

        A limited source reads `most` events per series, the last among them. Returns the events,
        and the series that could not be read; missing ones are in neither.
        """

    def scalar_tags(self, context: RequestContext) -> Mapping[str, Sequence[str]]:
        """The tags of all scalars by TensorBoard's run; none if there is no data provider."""
        return {}

    def scalars(
        self, context: RequestContext, series: Collection[SeriesName]
    ) -> Mapping[SeriesName, Sequence[ScalarPoint]]:
        """The points of some scalars, as far as they can be read."""
        return {}

    def deleted(
        self, context: RequestContext, runs: Collection[str], reading: Reading
    ) -> list[str]:
        """Which runs were deleted while they were read; lists again only if one is empty."""
        readings, failed = reading
        answered = {run for run, _ in (*readings, *failed)}
        silent = [run for run in runs if run not in answered]
        present = set(self.runs(context)) if silent else set()
        return [run for run in silent if run not in present]

    def read_listed(
        self,
        context: RequestContext,
        runs: Collection[str],
        tags: Collection[str],
        most: int = ALL,
    ) -> Reading:
        """Reads runs in which one of the tags is listed; `RunDeleted` if one of them is gone."""
        reading = self.read(context, runs, tags, most)
        if deleted := self.deleted(context, runs, reading):
            name = parse_run(deleted[0])
            raise RunDeleted(name.run if name else deleted[0])
        return reading


def grouped(
    items: Iterable[Item], size: Callable[[Item], int], most: int
) -> Iterator[Sequence[Item]]:
    """Items in order, as many together as one call can carry; a larger one gets its own call."""
    group: list[Item] = []
    total = 0
    for item in items:
        more = size(item)
        if group and total + more > most:
            yield group
            group, total = [], 0
        group.append(item)
        total += more
    if group:
        yield group


def most_events(records: int, width: int, cells: int) -> int:
    """How many events of records of a width one call can carry: all, or twice the cells."""
    if records * width <= 2 * cells:
        return ALL
    return max(2 * cells // (_EVENT_RECORDS * width), 1)
