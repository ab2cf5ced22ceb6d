"""What is asked of whatever holds our series, such as a data provider of TensorBoard."""

from __future__ import annotations

import logging
import math
from abc import ABC, abstractmethod
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, TypeVar

from tb_pastnet.format.tags import parse_run

Item = TypeVar("Item")

ALL = 1 << 30
"""A number of events that no series reaches: read all of them."""


_EVENT_RECORDS = 16

logger = logging.getLogger(__name__)


class RequestContext(NamedTuple):
    """On whose behalf data are read."""

    tensorboard: Any  # TensorBoard's own request context, None outside of a request
    experiment: str  # TensorBoard's experiment id, mostly ""


LOCAL = RequestContext(None, "")
"""Files know neither requests nor experiments."""


class SeriesVersion(NamedTuple):
    """What is known of a series without reading it. Two equal ones: nothing new was written."""

    max_step: int
    max_wall_time: str  # the latest time, as text so that NaN equals itself
    content: bytes  # the plugin content of the first event


class StoredMessage(NamedTuple):
    """One stored event."""

    step: int
    wall_time: float  # seconds since 1970, not covered by any checksum
    data: bytes | None  # the bytes; None if the event holds something else than bytes


def count_standing(steps: Sequence[int], step: int) -> int:
    """How many events of a series stand when one of another step follows: those of smaller steps.

    TensorBoard's fast loader lets go of the others, so that this is the rule for every source.

    Example:
        >>> count_standing([16, 32, 48], 20)
        1
    """
    return bisect_left(steps, step)


def standing(messages: Iterable[StoredMessage]) -> list[StoredMessage]:
    """The events of a series that stand, given all in the order in which they were written.

    Those of infinite times are passed over, as by TensorBoard's fast loader.
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
"""Events by series, oldest first, and the series that TensorBoard could not hand out."""


class RunDeleted(Exception):
    """A run that was listed, and of which TensorBoard has nothing any more.

    Told as a run, all its records would be unreadable.
    """


class NotListed(Exception):
    """TensorBoard fails to list runs or series.

    Its slow loader lists while another thread loads, so that runs vanish and series are half there;
    a series with metadata and without any value makes it fail each time.
    """


class SeriesSource(ABC):
    """Which series of ours there are, and their bytes.

    Where something is at fault, the answers say so and hold the rest.
    """

    @abstractmethod
    def runs(self, context: RequestContext) -> list[str]:
        """All of TensorBoard's runs, ours or not; or `NotListed`."""

    @abstractmethod
    def series(
        self, context: RequestContext, runs: Collection[str] | None, tags: Collection[str] | None
    ) -> Listing:
        """Our series of some runs and tags; None: of all. `NotListed` where TensorBoard fails."""

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

        A source that can't hand out more reads `most` events a series, the last among them. Given
        back are the events, and the series that could not be handed out; what doesn't exist is in
        neither.
        """

    def deleted(
        self, context: RequestContext, runs: Collection[str], reading: Reading
    ) -> list[str]:
        """Which runs were deleted while they were read; asks again only where one gave nothing."""
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
        """Reads runs in which one of the tags is listed; `RunDeleted` where one of them is gone."""
        reading = self.read(context, runs, tags, most)
        if deleted := self.deleted(context, runs, reading):
            name = parse_run(deleted[0])
            raise RunDeleted(name.run if name else deleted[0])
        return reading


def grouped(
    items: Iterable[Item], size: Callable[[Item], int], most: int
) -> Iterator[Sequence[Item]]:
    """Items in their order, as many together as one call can carry; a larger one goes alone."""
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
    """How many events of records so wide one call can carry: all, or as many as twice the cells."""
    if records * width <= 2 * cells:
        return ALL
    return max(2 * cells // (_EVENT_RECORDS * width), 1)
