"""Writes logs of many runs without training anything: for benchmarks of TensorBoard and the page.

    python -m benchmarks._logs FOLDER --runs 20 --layers 300 --channels 50000 --steps 1000

Every message goes through the codecs and the files of the recorder; TensorFlow is not needed. The
values look like training: each channel's delta is noisy and falls at a rate of its own, some layers
settle early, are pruned in channels or weight by weight, or are frozen and thawed again. Packing is
what takes the time, so the layers of a series are made in a few variants and each run is a mixture
of its own.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks._layers import ELEMENTS, INPUTS, Masks, codes_of, hold, masks_of
from tb_pastnet.core.violation import Violation
from tb_pastnet.format.block import Block, encode_block
from tb_pastnet.format.description import Description, LayerEntry, VariableEntry, encode_description
from tb_pastnet.format.envelope import Kind, seal, unseal
from tb_pastnet.format.mask_bits import MaskBits, encode_mask
from tb_pastnet.format.mask_log import MaskChange, encode_mask_log
from tb_pastnet.format.tags import (
    TAG_DESCRIPTION,
    TAG_MASKS,
    TAG_TIMELINE,
    TAG_VIOLATIONS,
    lineage_directory,
    mask_tag,
)
from tb_pastnet.format.timeline import Timeline, encode_timeline
from tb_pastnet.format.together import put_together, stored_channels
from tb_pastnet.format.violations import encode_violations
from tb_pastnet.record.batch import BLOCK_RECORDS
from tb_pastnet.record.messages import Message, message_event
from tb_pastnet.record.segments import LocalSegments

WIDEST = 4096
"""Channels of the one wide layer; less where a quarter of all channels is less."""

VARIANTS = 3
_WORTH_A_POOL = 500_000  # channels and records: fewer are made sooner than a process begins
CREATED = 1_700_000_000
Steps = NDArray[np.int64]


class Size(NamedTuple):
    """How much is written.

    Attributes:
        runs: number of runs.
        layers: of each run, one kernel each.
        channels: of all layers of a run together.
        steps: records of each run, one a step.
    """

    runs: int = 20
    layers: int = 300
    channels: int = 50_000
    steps: int = 1_000


TINY = Size(runs=2, layers=5, channels=40, steps=20)
"""Only to see that a benchmark works."""


class Made(NamedTuple):
    """One variant of the layers that share a series.

    Attributes:
        layers: their numbers.
        payloads: a block of records each, without their envelope.
        masks: of each layer the changes of its masks, in order.
    """

    layers: tuple[int, ...]
    payloads: list[bytes]
    masks: list[list[Masks]]


def widths(size: Size) -> list[int]:
    """The channels of each layer: one wide one, the others small ones of several sizes."""
    wide = min(WIDEST, size.channels // 4)
    shares = np.array([1.0, 1.0, 2.0, 4.0])[np.arange(size.layers - 1) * 4 // max(size.layers, 1)]
    edges = np.cumsum([0, *shares]) / shares.sum() * (size.channels - wide)
    others = np.maximum(np.diff(np.rint(edges).astype(int)), 1).tolist()
    return [*others[: size.layers // 2], wide, *others[size.layers // 2 :]]


def network(channels: Sequence[int]) -> tuple[tuple[LayerEntry, ...], tuple[VariableEntry, ...]]:
    """Convolutions in stages and blocks, a kernel each."""
    layers, variables = [], []
    for at, width in enumerate(channels):
        group = f"stage{at // 40 + 1}/block{at % 40 // 4 + 1}"
        id_ = f"{group}/conv{at % 4 + 1}"
        kernel = f"{id_}/kernel"
        shape = (3, 3, INPUTS, width)
        variables.append(
            VariableEntry(
                kernel, id_, "kernel", "kernel", shape, "float32", "-1", True, width, ELEMENTS
            )
        )
        layers.append(LayerEntry(id_, group, f"conv{at % 4 + 1}", "Conv2D", (kernel,), kernel))
    return tuple(layers), tuple(variables)


def series_of(channels: Sequence[int]) -> list[tuple[int, ...]]:
    """The layers of each series, as a recorder puts them together."""
    together = put_together(channels, [True] * len(channels))
    shared = {number for numbers in together for number in numbers}
    alone = [(number,) for number in range(len(channels)) if number not in shared]
    return sorted([*together, *alone])


def make(job: tuple[int, tuple[int, ...]], channels: Sequence[int], steps: int) -> Made:
    """Makes one variant of the layers of a series, seeded by their numbers and the variant's."""
    variant, layers = job
    every, masks_of_each = [], []
    for number in layers:
        at, width = variant * len(channels) + number, channels[number]
        rng = np.random.default_rng(at)
        kind = at % 5
        own, masks = codes_of(width, steps, kind, rng), masks_of(width, steps, kind, rng)
        hold(own, masks)
        every.append(own)
        masks_of_each.append(masks)
    codes = np.concatenate(every, axis=2)
    tag, payloads = "", []
    for some in blocks(steps):
        numbers = np.arange(some.start, some.stop)
        block = Block(numbers, numbers + 1, numbers, np.ascontiguousarray(codes[:, some]))
        sealed = encode_block(block, tag=tag, lineage=0)
        payloads.append(unseal(sealed, Kind.CHANNELS, tag=tag, step=some.stop, lineage=0))
    return Made(layers, payloads, masks_of_each)


def blocks(steps: int) -> list[slice]:
    """The records of each block; record i is that of step i + 1."""
    return [slice(at, min(at + BLOCK_RECORDS, steps)) for at in range(0, steps, BLOCK_RECORDS)]


def write_run(folder: Path, number: int, size: Size, made: Sequence[Made], origin: str) -> None:
    """Writes one run of layers that are made."""
    lineage = 0x51000001 + number
    channels = widths(size)
    layers, variables = network(channels)
    together = put_together(channels, [True] * len(channels))
    where = stored_channels([(each.id, each.channels) for each in variables], together)
    versions = {"tb-pastnet": "0"}
    described = Description(
        lineage, 1, origin, 1, "previous", 1, CREATED, versions, layers, variables, audited=True,
        together=together,
    )  # fmt: skip
    sealed = encode_description(described, tag=TAG_DESCRIPTION, step=0)
    head = message_event(Message(TAG_DESCRIPTION, 0, sealed), CREATED)
    directory = folder / f"run_{number:02d}" / lineage_directory(1, lineage)
    files, changes = LocalSegments(str(directory), CREATED), _Changes(lineage)
    for position, some in enumerate(blocks(size.steps)):
        messages: list[Message] = []
        for one in made:
            tag = where[one.layers[0]].tag
            sealed = seal(
                one.payloads[position], Kind.CHANNELS, tag=tag, step=some.stop, lineage=lineage
            )
            messages.append(Message(tag, some.stop, sealed))
        messages += changes.messages(variables, made, some)
        messages.append(_timeline(some, size.steps, lineage))
        wall = CREATED + 0.1 * some.stop
        files.write(lambda: head, _as_is(b"".join(message_event(one, wall) for one in messages)))
    if size.layers > 4:
        files.write(lambda: head, _as_is(_leak(variables[4], size.steps, lineage)))
    files.close()


def _as_is(body: bytes) -> Callable[[int], bytes]:
    return lambda _: body


class _Changes:
    """Numbers the changes of a run's masks and packs them."""

    def __init__(self, lineage: int) -> None:
        self._lineage = lineage
        self._number = 0

    def messages(
        self, variables: Sequence[VariableEntry], made: Sequence[Made], some: slice
    ) -> Iterator[Message]:
        """What changed in a block of records: each mask, then the log."""
        log: list[MaskChange] = []
        pairs = [
            (masks, variables[number].id)
            for one in made
            for number, own in zip(one.layers, one.masks, strict=True)
            for masks in own
        ]
        due = [pair for pair in pairs if some.start < pair[0].step <= some.stop]
        for (step, name, through), id_ in sorted(due, key=lambda pair: pair[0].step):
            tag, flat = mask_tag(name, id_), through.ravel()
            bits = MaskBits(self._number, step, flat.size, np.packbits(flat))
            sealed = encode_mask(bits, tag=tag, step=step, lineage=self._lineage)
            yield Message(tag, step, sealed)
            log.append(MaskChange(self._number, step, id_, name, int(flat.sum()), flat.size))
            self._number += 1
        if log:
            sealed = encode_mask_log(log, tag=TAG_MASKS, step=some.stop, lineage=self._lineage)
            yield Message(TAG_MASKS, some.stop, sealed)


def _timeline(some: slice, steps: int, lineage: int) -> Message:
    numbers = np.arange(some.start, some.stop)
    rates = 0.1 * 0.5 ** (numbers * 4 // steps)
    line = Timeline(
        numbers,
        numbers + 1,
        CREATED + 0.1 * (numbers + 1),
        rates,
        offered=some.stop,
        closed=some.stop == steps,
    )
    sealed = encode_timeline(line, tag=TAG_TIMELINE, step=some.stop, lineage=lineage)
    return Message(TAG_TIMELINE, some.stop, sealed)


def _leak(variable: VariableEntry, steps: int, lineage: int) -> bytes:
    """A frozen channel that moved."""
    first = max(int(0.6 * steps), 1)
    found = Violation(variable.id, 0, first, steps, ELEMENTS // 3, ELEMENTS, 1e-3, "weight_decay")
    sealed = encode_violations([found], tag=TAG_VIOLATIONS, step=steps, lineage=lineage)
    return message_event(Message(TAG_VIOLATIONS, steps, sealed), CREATED + 0.1 * steps)


def write_logs(folder: Path, size: Size, variants: int = VARIANTS) -> None:
    """Writes all runs: every fourth one of another origin than the others.

    Args:
        folder: the log directory, made where it is missing.
        size: how much.
        variants: how many of each layer are made; more take longer.
    """
    channels = widths(size)
    series = series_of(channels)
    jobs = [(variant, numbers) for variant in range(variants) for numbers in series]
    made = _made(jobs, channels, size)
    runs = range(size.runs)
    mixtures = [
        [made[(at * 7 + run) % variants * len(series) + at] for at in range(len(series))]
        for run in runs
    ]
    for run, mixture in zip(runs, mixtures, strict=True):
        write_run(folder, run, size, mixture, "other" if run % 4 == 3 else "first")


def _made(
    jobs: Sequence[tuple[int, tuple[int, ...]]], channels: Sequence[int], size: Size
) -> list[Made]:
    own = partial(make, channels=channels, steps=size.steps)
    if size.channels * size.steps < _WORTH_A_POOL:
        return list(map(own, jobs))
    # Not by fork, which whoever calls this may have threads against.
    with ProcessPoolExecutor(mp_context=get_context("spawn")) as pool:
        return list(pool.map(own, jobs, chunksize=4))


def main(argv: Sequence[str]) -> int:
    """Writes logs as the command line says."""
    parser = argparse.ArgumentParser(prog="_logs", description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    for name, default in zip(Size._fields, Size(), strict=True):
        parser.add_argument(f"--{name}", type=int, default=default)
    arguments = vars(parser.parse_args(argv))
    folder, start = arguments.pop("folder"), time.monotonic()
    write_logs(folder, Size(**arguments))
    written = sum(path.stat().st_size for path in folder.rglob("*.pastnet"))
    print(f"{folder}: {written / 2**20:,.0f} MiB in {time.monotonic() - start:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
