"""Channel-records of a run, counted before they are decoded: see `format.budget`.

Each bundle of variables has a share of what is free, by its channels. Within that, and what its own
bytes allow, nothing else has to be read. A bundle over it isn't cut if the run as a whole is
within: channels that never change take few bytes, and others of the run may take more. So the
answer depends only on the log, not on the order of requests. If several bundles read a series, each
has a share of its bytes, and pays for all cells.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from tb_pastnet.format.block import claimed
from tb_pastnet.format.budget import CELLS
from tb_pastnet.reader.series_source import StoredMessage


class Within(NamedTuple):
    """The messages of a series that the budget allows."""

    messages: Sequence[StoredMessage]
    beyond: int  # how many records come after
    cells: int  # channels times records, as the messages claim
    largest: int  # cells of one message


class CellBudget:
    """The budget of a bundle of variables: messages are taken in order, until one is over it.

    `free` is its share of the free work; `is_whole` returns whether its run as a whole is within
    the budget, and is called only if the bundle isn't.
    """

    def __init__(
        self, free: int = CELLS.free, is_whole: Callable[[], bool] = lambda: False
    ) -> None:
        self._left: float = free
        self._is_whole = is_whole

    def within(self, messages: Sequence[StoredMessage], share: float = 1.0) -> Within:
        """The next messages as far as the budget goes; a share of their bytes is the bundle's."""
        per_byte = share * CELLS.per_byte
        total = largest = 0
        for position, message in enumerate(messages):
            data = message.data or b""
            records, channels = claimed(data)
            cells = records * channels
            self._left += per_byte * len(data) - cells
            if self._left < 0:
                if not self._is_whole():
                    beyond = _records(messages[position:])
                    return Within(messages[:position], beyond, total, largest)
                self._left = math.inf
            total += cells
            largest = max(largest, cells)
        return Within(messages, 0, total, largest)


def surplus(messages: Sequence[StoredMessage], share: float = 1.0) -> float:
    """What a share of the bytes of messages of channels allows, less what they hold."""
    stored = share * sum(len(each.data or b"") for each in messages)
    return CELLS.per_byte * stored - sum(math.prod(claimed(each.data or b"")) for each in messages)


def _records(messages: Iterable[StoredMessage]) -> int:
    return sum(max(claimed(message.data or b"")[0], 1) for message in messages)


def share_of(channels: int, all_channels: int) -> int:
    """The share of free work of a bundle, by its channels among those of all variables."""
    return CELLS.free * channels // max(all_channels, 1)
