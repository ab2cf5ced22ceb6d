"""Logs that Hypothesis makes up: restarts, two writers, masks, violations, probes, and damage."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from hypothesis import strategies as st

from tb_pastnet.core.violation import CAUSES, Violation
from tests import event_files as files
from tests import probed
from tests.contract.test_own_writer import write_own

LAYERS = ({"conv1": 4, "block/conv2": 6}, {"conv1": 3, "head": 2}, {"=conv\u202e\0": 1})


@dataclass(frozen=True)
class Mask:
    """A mask that changes before the record at a position; of `share` of the weights through."""

    at: int
    mask: str
    layer: int
    share: float


@dataclass(frozen=True)
class Moved:
    """A violation from the record at a position on."""

    at: int
    records: int
    channel: int
    cause: str


@dataclass(frozen=True)
class Writer:
    """One lineage."""

    run: str
    ordinal: int
    first: int
    gaps: tuple[int, ...]
    block: int
    layers: int
    audited: bool
    closed: bool
    probe: bool
    lost: int
    masks: tuple[Mask, ...]
    moved: tuple[Moved, ...]
    segment_every: int

    def write(self, logdir: Path, lineage: int) -> None:
        steps = (self.first + np.cumsum((0, *self.gaps))).tolist()
        layers = LAYERS[self.layers]
        writer = files.LineageWriter(
            logdir, self.run, self.ordinal, lineage, layers, block=self.block, first_step=steps[0]
        )
        writer.describe(steps[0], audited=self.audited)
        values = {}
        for number, (layer, channels) in enumerate(layers.items()):
            codes = files.codes(steps, channels, seed=lineage)
            files.freeze(codes, slice(3 + number, 9), slice(0, 1))
            codes[3:5, 6:8, 0] = -40
            values[f"{layer}/kernel"] = codes
        for at in range(0, len(steps), self.segment_every):
            some = slice(at, at + self.segment_every)
            if at:
                writer.segment += 1
                writer.describe(steps[at], audited=self.audited)
            self._tell(writer, steps, range(len(steps))[some])
            if self.probe:
                probed.write(writer, probed.change(steps[some], at))
            parts = {name: codes[:, some] for name, codes in values.items()}
            writer.records(steps[some], parts, dropped=self.lost)
        if self.closed:
            writer.close(steps[-1])

    def _tell(self, writer: files.LineageWriter, steps: Sequence[int], now: range) -> None:
        kernels = [(f"{layer}/kernel", size) for layer, size in writer.layers.items()]
        for one in sorted(self.masks, key=lambda one: one.at):
            if one.at in now:
                name, channels = kernels[one.layer % len(kernels)]
                through = np.random.default_rng(one.at).random(9 * channels) < one.share
                writer.masks(steps[one.at], {(one.mask, name): through})
        found = [
            Violation(
                kernels[0][0],
                one.channel,
                steps[one.at],
                steps[min(one.at + one.records, len(steps) - 1)],
                2,
                9,
                0.25,
                one.cause,
            )
            for one in self.moved
            if one.at in now
        ]
        if found:
            writer.violations(steps[now[-1]], found)


@dataclass(frozen=True)
class Damage:
    """What befalls one file."""

    file: int
    kind: str
    place: float
    bit: int

    def befall(self, paths: Sequence[Path]) -> None:
        path = paths[self.file % len(paths)]
        data = bytearray(path.read_bytes())
        at = int(self.place * (len(data) - 1))
        if self.kind == "flip" and data:
            data[at] ^= 1 << self.bit
        elif self.kind == "cut":
            del data[at:]
        elif self.kind == "zeros":
            data[at : at + 40] = bytes(len(data[at : at + 40]))
        else:
            data += b"garbage" * self.bit
        path.write_bytes(bytes(data))


@dataclass(frozen=True)
class Made:
    """A whole log directory."""

    writers: tuple[Writer, ...]
    own: tuple[int, ...]
    damage: tuple[Damage, ...] = ()

    def write(self, logdir: Path) -> None:
        for number, writer in enumerate(self.writers):
            writer.write(logdir, number + 5)
        if self.own:
            write_own(logdir, "a", list(self.own))
        for one in self.damage:
            one.befall(sorted(logdir.rglob("*tfevents*")))


def _tuples(one: st.SearchStrategy, most: int, least: int = 0) -> st.SearchStrategy:
    return st.lists(one, min_size=least, max_size=most).map(tuple)


_POSITIONS = st.integers(0, 30)
_MASKS = st.builds(
    Mask,
    at=_POSITIONS,
    mask=st.sampled_from(["kept", "trainable"]),
    layer=st.integers(0, 1),
    share=st.sampled_from([0.0, 0.5, 0.9, 1.0]),
)
_MOVED = st.builds(
    Moved,
    at=_POSITIONS,
    records=st.integers(0, 9),
    channel=st.integers(0, 3),
    cause=st.sampled_from([*CAUSES, "=later"]),
)
_WRITERS = st.builds(
    Writer,
    run=st.sampled_from(["a", "b"]),
    ordinal=st.integers(1, 3),
    first=st.integers(0, 30),
    gaps=_tuples(st.integers(1, 5), 30),
    block=st.integers(1, 16),
    layers=st.integers(0, len(LAYERS) - 1),
    audited=st.booleans(),
    closed=st.booleans(),
    probe=st.booleans(),
    lost=st.integers(0, 2),
    masks=_tuples(_MASKS, 4),
    moved=_tuples(_MOVED, 3),
    segment_every=st.integers(7, 31),
)
_DAMAGE = st.builds(
    Damage,
    file=st.integers(0, 5),
    kind=st.sampled_from(["flip", "flip", "cut", "zeros", "garbage"]),
    place=st.floats(0, 1),
    bit=st.integers(0, 7),
)
WHOLE = st.builds(Made, writers=_tuples(_WRITERS, 3, 1), own=_tuples(st.integers(1, 9), 5))
DAMAGED = st.builds(
    Made,
    writers=_tuples(_WRITERS, 3, 1),
    own=_tuples(st.integers(1, 9), 5),
    damage=_tuples(_DAMAGE, 4, 1),
)
