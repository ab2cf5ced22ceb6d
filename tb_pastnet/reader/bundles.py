"""Variables that are read at once: in each lineage, their records are in the same series."""

from __future__ import annotations

import re
from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate
from typing import NamedTuple

import numpy as np

from tb_pastnet.format.description import VariableEntry
from tb_pastnet.format.tags import channels_tag
from tb_pastnet.format.together import StoredChannels
from tb_pastnet.reader.arrays import Integers
from tb_pastnet.reader.lineage_heads import LineageHead

BUNDLE_CELLS = 1 << 20
"""Records times channels up to which several variables are one bundle."""


@dataclass(frozen=True, eq=False)
class SeriesPart:
    """The series that stores a part of the records of variables."""

    tb_run: str
    tag: str
    lineage: LineageHead | None  # the lineage, None in a user's own writer
    width: int  # channels of its blocks
    columns: Integers | None  # those of the variables, side by side; None: all
    share: float = 1.0  # the part of its bytes that is the bundle's
    # whether these have the channels that they have in the latest network
    fits: bool = True


@dataclass(frozen=True, eq=False)
class Bundle:
    """Variables whose records are in the same series, side by side in their order."""

    names: tuple[str, ...]
    widths: tuple[int, ...]  # the channels of each
    parts: tuple[SeriesPart, ...]  # by lineage
    all_channels: int  # those of the bundle that it is or is a part of
    is_shared: bool = False  # whether that bundle has several variables

    @cached_property
    def channels(self) -> int:
        """Those of all of its variables."""
        return sum(self.widths)

    def only(self, names: Collection[str]) -> Bundle:
        """Some of its variables."""
        chosen = [number for number, name in enumerate(self.names) if name in names]
        if len(chosen) == len(self.names):
            return self
        ends = list(accumulate(self.widths))
        own = np.concatenate([np.arange(ends[n] - self.widths[n], ends[n]) for n in chosen])
        parts = tuple(
            replace(part, columns=own if part.columns is None else part.columns[own])
            for part in self.parts
        )
        picked = tuple(self.names[n] for n in chosen), tuple(self.widths[n] for n in chosen)
        return Bundle(*picked, parts, self.all_channels, self.is_shared)


def bundles_of(
    variables: Mapping[str, VariableEntry], lineages: Sequence[LineageHead]
) -> dict[str, Bundle]:
    """The bundle of each variable.

    A series that is lost is among its parts: its records count as missing.
    """
    records = sum(len(head.timeline.steps) for head in lineages)
    most = BUNDLE_CELLS // max(records, 1)
    alike: dict[Hashable, _Own] = {}
    for variable in variables.values():
        stored = list(_stored_by(variable, lineages))
        key = tuple((each.head.tb_run, each.place.tag, each.fits) for each in stored)
        alike.setdefault(key, []).append((variable, stored))
    bundles: dict[str, Bundle] = {}
    for own in alike.values():
        for bundle in map(_bundle, _up_to(most, own)):
            bundles |= dict.fromkeys(bundle.names, bundle)
    return bundles


class _Stored(NamedTuple):
    """Where a lineage has the records of a variable."""

    head: LineageHead
    place: StoredChannels
    fits: bool


def _stored_by(variable: VariableEntry, lineages: Sequence[LineageHead]) -> Iterator[_Stored]:
    tag = channels_tag(variable.id)
    for head in lineages:
        entry = head.described.get(variable.id)
        if entry is None:
            if tag in head.versions:
                yield _Stored(head, StoredChannels(tag, 0, variable.channels), fits=True)
            continue
        place, fits = head.stored[variable.id], _is_alike(entry, variable)
        if place.tag == tag:  # its blocks say how many channels they have
            yield _Stored(head, StoredChannels(tag, 0, variable.channels), fits)
        else:
            yield _Stored(head, place, fits and entry.channels == variable.channels)


def _is_alike(entry: VariableEntry, latest: VariableEntry) -> bool:
    """Whether variables are split into channels along the same axes."""
    is_same = entry.axis == latest.axis and len(entry.shape) == len(latest.shape)
    return is_same or _axis(entry) == _axis(latest)


def _axis(entry: VariableEntry) -> str:
    # The last of two axes may be "-1" or "1".
    return re.sub(r"-\d{1,9}", lambda number: str(int(number[0]) + len(entry.shape)), entry.axis)


_Own = list[tuple[VariableEntry, list[_Stored]]]


def _up_to(most: int, own: _Own) -> Iterator[_Own]:
    """Variables, as many at once as a reader has room for with all of their records."""
    piece: _Own = []
    channels = 0
    for each in own:
        if piece and channels + each[0].channels > most:
            yield piece
            piece, channels = [], 0
        piece.append(each)
        channels += each[0].channels
    yield piece


def _bundle(own: _Own) -> Bundle:
    variables = [variable for variable, _ in own]
    widths = tuple(variable.channels for variable in variables)
    starts = [0, *accumulate(widths)]
    parts = []
    for stored in zip(*(stored for _, stored in own), strict=True):
        head, place = stored[0].head, stored[0].place
        firsts = [each.place.first for each in stored]
        share, columns = min(starts[-1] / max(place.width, 1), 1.0), None
        if firsts != starts[:-1] or starts[-1] != place.width:
            pairs = zip(firsts, widths, strict=True)
            columns = np.concatenate([np.arange(first, first + own) for first, own in pairs])
        parts.append(
            SeriesPart(head.tb_run, place.tag, head, place.width, columns, share, stored[0].fits)
        )
    names = tuple(variable.id for variable in variables)
    return Bundle(names, widths, tuple(parts), starts[-1], len(names) > 1)
