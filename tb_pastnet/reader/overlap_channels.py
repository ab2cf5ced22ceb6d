"""Which channels of a run are pruned or frozen, as sets: small, where the records aren't."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt

from tb_pastnet.core import overlap, states
from tb_pastnet.core.overlap import Words
from tb_pastnet.core.statistics import KEPT, NONFINITE, NORM, PAST_NORM, TRAINABLE
from tb_pastnet.format.description import Variable
from tb_pastnet.reader import notes
from tb_pastnet.reader.notes import Notes
from tb_pastnet.reader.overlap_reader import Layers, Reader
from tb_pastnet.reader.overlap_sets import Sets
from tb_pastnet.reader.series import Needs, Series
from tb_pastnet.reader.state_series import measured_in
from tb_pastnet.reader.store import UNKEPT

NEEDS = Needs((NORM, PAST_NORM, NONFINITE, KEPT, TRAINABLE))
"""The statistics that tell which channels are pruned or frozen."""

_OBJECT_BYTES = 1024
_SLAB = 1 << 18

Integers = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class ChannelSets:
    """The sets of channels of one variable, a row where one of them changed.

    They don't depend on a threshold: that tells settled channels from moving ones.

    Attributes:
        steps: int64 (changes,), increasing: the record from which each row stands.
        kept: uint64 (changes, words), the channels that aren't pruned.
        trainable: uint64 (changes, words), those that aren't frozen either.
        channels: how many there are.
        notes: what could not be read of the records, and why.
    """

    steps: Integers
    kept: Words
    trainable: Words
    channels: int
    notes: Notes

    @property
    def size(self) -> int:
        """Bytes that it holds, about."""
        return _OBJECT_BYTES + self.steps.nbytes + self.kept.nbytes + self.trainable.nbytes

    def sets(self, mask: str, steps: Integers) -> Sets:
        """The sets at some steps.

        Args:
            mask: "kept" or "trainable".
            steps: int64 (columns,).
        """
        rows = self.kept if mask == "kept" else self.trainable
        which = np.searchsorted(self.steps, steps, side="right") - 1
        sizes = overlap.count(rows).astype(np.float64)
        return Sets(which, sizes, rows.__getitem__, self.channels)

    def held(self, steps: Integers) -> npt.NDArray[np.bool_]:
        """Where all channels are held and some aren't pruned: no update changes the variable.

        Args:
            steps: int64 (columns,).

        Returns:
            bool (columns,): False before the first record.
        """
        still = self.kept.any(axis=1) & ~self.trainable.any(axis=1)
        return np.append(still, False)[np.searchsorted(self.steps, steps, side="right") - 1]


def make_channel_sets(series: Series, variable: Variable) -> ChannelSets:
    """Tells the sets of channels from records.

    Args:
        series: the records; of their statistics those of `NEEDS` are looked at.
        variable: whose. In kernels alone channels of zeros count as pruned without a mask.
    """
    _, records, channels = series.codes.shape
    both = np.empty((records, 2, channels), bool)
    measured = measured_in(series, variable)
    # In slabs of channels: what is computed in between stays small.
    wide = max(_SLAB // max(records, 1), 1)
    for at in range(0, channels, wide):
        some = slice(at, at + wide)
        state = states.STATE & states.unsettled_states(
            series.codes[:, :, some],
            series.steps,
            series.past_steps,
            measured=measured,
            audited=True,
        )
        both[:, 0, some] = state != states.PRUNED
        both[:, 1, some] = both[:, 0, some] & (state != states.FROZEN)
    changed = np.ones(records, bool)
    changed[1:] = (both[1:] != both[:-1]).any(axis=(1, 2))
    rows = overlap.words(np.packbits(both[changed], axis=2))
    return ChannelSets(
        series.steps[changed],
        np.ascontiguousarray(rows[:, 0]),
        np.ascontiguousarray(rows[:, 1]),
        channels,
        series.notes,
    )


def read_channel_sets(reader: Reader, at: int, layers: Layers) -> Mapping[str, ChannelSets]:
    """The sets of channels of one run, read in few calls and kept.

    Args:
        reader: of which runs.
        at: the position of the run.
        layers: what to read.

    Returns:
        By variable.
    """
    store, caller, run = reader.store, reader.caller, reader.runs[at]
    keys = {
        layer[at].id: ("channel sets", caller.experiment, run.name, layer[at].id)
        for layer in layers
        if at in layer
    }
    missing = [one for one, key in keys.items() if not store.holds_small(key, run.version)]

    def sets_of(name: str, records: Series) -> ChannelSets:
        return make_channel_sets(records, run.variables[name])

    sets = store.each(caller, run, missing, sets_of, NEEDS)
    read = dict(zip(missing, sets, strict=True))

    def made(variable: str) -> tuple[ChannelSets, int]:
        # None: it was held a moment ago and had to make room since.
        found = read.get(variable) or next(store.each(caller, run, [variable], sets_of, NEEDS))
        return found, UNKEPT if notes.WITHHELD in found.notes else found.size

    found = {
        one: store.kept_small(key, run.version, partial(made, one)) for one, key in keys.items()
    }
    reader.said.update(sum((one.notes for one in found.values()), Notes()))
    return found


def each_channels(reader: Reader, layers: Layers) -> Iterator[Mapping[int, Sets]]:
    """The sets of channels of many runs, layer by layer.

    Args:
        reader: of which runs, at which steps. "kept": channels that aren't pruned; "trainable":
            neither pruned nor frozen.
        layers: what to read.

    Yields:
        For each layer the sets of each run that has it.
    """
    found = [read_channel_sets(reader, at, layers) for at in range(len(reader.runs))]
    for layer in layers:
        yield {
            at: found[at][one.id].sets(reader.mask, reader.steps[at]) for at, one in layer.items()
        }
