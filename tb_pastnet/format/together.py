"""Which variables share a series: small ones do.

To open a message takes as long as to restore hundreds of channels, and a network may have thousands
of small variables. The channels of those that share a series are side by side in its blocks. What
is drawn of each layer, its main variable, is read much more often than the rest, so these are
apart.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from tb_pastnet.format.tags import channels_tag, together_tag

MOST = 256
"""Channels that a recorder puts together. With more, a message that is lost takes more with it, and
more is read for a single variable; with fewer, there are more messages."""

Together = tuple[tuple[int, ...], ...]
"""The numbers of variables in each series of several."""


class StoredChannels(NamedTuple):
    """Where the channels of a variable are in the blocks of a series."""

    tag: str
    first: int  # its first channel in a block
    width: int  # channels of a block


def put_together(channels: Sequence[int], is_main: Iterable[bool]) -> Together:
    """The variables that share a series, by their channels and whether a layer is drawn by them.

    Example:
        >>> put_together([200, 200, 40, 40, 4096, 10], [True, False, True, False, True, True])
        ((0, 2, 5), (1, 3))
    """
    series: list[list[int]] = []
    latest: dict[bool, list[int]] = {}
    widths: dict[bool, int] = {}
    for number, (own, main) in enumerate(zip(channels, is_main, strict=True)):
        if own > MOST:
            continue
        widths[main] = widths.get(main, MOST) + own
        if widths[main] > MOST:
            latest[main], widths[main] = [], own
            series.append(latest[main])
        latest[main].append(number)
    return tuple(tuple(numbers) for numbers in series if len(numbers) > 1)


def stored_channels(
    variables: Sequence[tuple[str, int]], together: Together
) -> list[StoredChannels]:
    """The place of each variable's channels; variables are ids and numbers of channels.

    Example:
        >>> stored_channels([("a", 4), ("b", 8)], [(0, 1)])[1]
        StoredChannels(tag='together/a', first=4, width=12)
    """
    stored = [StoredChannels(channels_tag(id_), 0, channels) for id_, channels in variables]
    for numbers in together:
        tag, first = together_tag(variables[numbers[0]][0]), 0
        width = sum(variables[number][1] for number in numbers)
        for number in numbers:
            stored[number] = StoredChannels(tag, first, width)
            first += variables[number][1]
    return stored
