"""What the store asks of whatever holds our series, such as a data provider of TensorBoard."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection
from typing import Any, NamedTuple

ALL = 1 << 30
"""A number of events that no series reaches: read all of them."""


class Caller(NamedTuple):
    """On whose behalf data are read.

    Attributes:
        context: TensorBoard's request context, None outside of a request.
        experiment: TensorBoard's experiment id, mostly "".
    """

    context: Any
    experiment: str


class Stamp(NamedTuple):
    """What is known of a series without reading it. Two equal stamps: nothing new was written.

    Attributes:
        max_step: the largest step.
        max_wall_time: the latest time, as text so that NaN equals itself.
        content: the plugin content of the first event.
    """

    max_step: int
    max_wall_time: str
    content: bytes


class Message(NamedTuple):
    """One stored event.

    Attributes:
        step: the event's step.
        wall_time: seconds since 1970, not covered by any checksum.
        data: the bytes; None where the event holds something else than bytes.
    """

    step: int
    wall_time: float
    data: bytes | None


Listing = dict[str, dict[str, Stamp]]
Readings = dict[tuple[str, str], list[Message]]


class Source(ABC):
    """Which series of ours there are, and their bytes.

    Where something is at fault, the answers say so and hold the rest.
    """

    @abstractmethod
    def runs(self, caller: Caller) -> list[str]:
        """All of TensorBoard's runs, ours or not."""

    @abstractmethod
    def listing(
        self, caller: Caller, only: Collection[str] | None = None
    ) -> tuple[Listing, list[str]]:
        """Lists our series.

        Args:
            caller: on whose behalf.
            only: names of runs; None: all.

        Returns:
            Stamps by run and tag, and the runs that could not be listed.
        """

    @abstractmethod
    def glance(self, caller: Caller, tags: Collection[str]) -> Listing | None:
        """Lists some tags of all runs: much quicker than all of them. None where that fails.

        Args:
            caller: on whose behalf.
            tags: names of tags.
        """

    @abstractmethod
    def probe(self, caller: Caller, run: str, tags: Collection[str]) -> dict[str, Stamp]:
        """Lists those of the tags that can be listed, one by one.

        Args:
            caller: on whose behalf.
            run: a run that `listing` could not list.
            tags: tags to look for.
        """

    @abstractmethod
    def read(
        self,
        caller: Caller,
        runs: Collection[str],
        tags: Collection[str],
        most: int = ALL,
    ) -> tuple[Readings, list[tuple[str, str]]]:
        """Reads all events of every given tag in every given run.

        Args:
            caller: on whose behalf.
            runs: names of runs.
            tags: names of tags.
            most: events a series, if the source can't hand out more; the last is among them.

        Returns:
            The events by run and tag, oldest first, and the series that could not be handed out.
            What doesn't exist is in neither.
        """
