"""What the golden files hold, as formulas: independent of the codec that wrote them.

`python -m tests.golden.contents` writes what isn't there yet: files of a new version of a kind of
messages, or of messages that were added. Files that are there are never written again: readers have
to understand them for ever.
"""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np

from tb_pastnet.core.compared import Compared, HeldSpan, HeldValues
from tb_pastnet.core.statistics import STATISTICS
from tb_pastnet.core.violation import Violation
from tb_pastnet.format.block import Block, encode_block
from tb_pastnet.format.compared import encode_compared
from tb_pastnet.format.description import Description, LayerEntry, VariableEntry, encode_description
from tb_pastnet.format.envelope import NEWEST, Kind, version_of
from tb_pastnet.format.follows import FollowPair, Follows, encode_follows
from tb_pastnet.format.function_change import (
    FunctionChange,
    Input,
    Place,
    encode_function_change,
)
from tb_pastnet.format.mask_bits import MaskBits, encode_mask
from tb_pastnet.format.mask_log import MaskChange, encode_mask_log
from tb_pastnet.format.overhead import Overhead, encode_overhead
from tb_pastnet.format.sketches import Sketches, encode_sketches
from tb_pastnet.format.standing import StandingChange, encode_standing
from tb_pastnet.format.timeline import Timeline, encode_timeline
from tb_pastnet.format.violations import encode_violations
from tests import sealed

LINEAGE = 0x3F9A2C1B
LAST_STEP = 160
CHANNELS = "channels/block/conv/kernel"
MASK = "kept/block/conv/kernel"
MASK_STEPS = {"zeros": 10, "ones": 20, "packed": 30, "deflated": 40}


def block() -> Block:
    """Sixteen records of 24 channels, with zeros, infinity, NaN and both ends of the codes."""
    row, record, channel = np.ogrid[: len(STATISTICS), :16, :24]
    codes = (-37 * row + 3 * record * (row == 2) - 5 * channel + (record * channel) % 7).astype(
        np.int16
    )
    codes[4, :, 3] = -32768
    codes[2, 5, 0], codes[2, 6, 0] = 32767, 32766
    codes[0, 0, 1], codes[0, 1, 1] = -32768, 32765
    codes[6], codes[7] = 0, -16 * (channel[0] % 3)
    record = np.arange(16)
    return Block(3 + 2 * record, 10 + 10 * record, 9 + 10 * record, codes)


def moved() -> Block:
    """The same, and which channels have moved since the record before; of some it is unknown."""
    record, channel = np.ogrid[:16, :24]
    made = block()
    made.codes[8] = np.choose((record + channel) % 3, [0, -32768, 32766])
    return made


def sketches(*, whole: bool) -> Sketches:
    """Of two variables: whole at one step, or later differences, one of which isn't finite."""
    step, variable, bucket = np.ogrid[: 1 if whole else 3, :2, :64]
    values = (bucket - 40.0) * 2.0 ** (-7 * step) * (1 + variable)
    values[-1, 1] = np.nan
    number = step[:, 0, 0]
    none = np.zeros(values.shape[:2])
    return Sketches((0, 5), 3 + 2 * number, 140 + 10 * number, values, whole, none)


def later() -> dict[str, np.ndarray]:
    """Statistics as a later version may write them: some that aren't known, some that are gone."""
    record, channel = np.ogrid[:16, :24]
    codes = (7 * record - 5 * channel).astype(np.int16)
    return {
        "skewness": codes,
        "norm": codes * np.int16(2),
        "größe": codes * np.int16(2) + np.int16(1),
        "changed": codes - np.int16(30000),
        "number 42": codes * np.int16(0),
        "kept": codes * np.int16(0),
    }


def timeline() -> Timeline:
    """Three records after some that were thinned and dropped, with a clock that goes back.

    Version 1 has no rates of groups.
    """
    return Timeline(
        sequence=np.array([5, 6, 9]),
        steps=np.array([50, 60, 160]),
        wall_times=np.array([1.7e9, 1.7e9 + 0.5, 1.7e9 - 2]),
        learning_rates=np.array([0.125, np.nan, 0.0625]),
        offered=12,
        thinned=4,
        dropped=2,
        closed=True,
        notes={"No space left on device": 2},
        group_rates=np.array([[0.125, np.nan, 0.0625], [2.0**-70, 3.0, np.inf]]),
    )


def description() -> Description:
    """A layer with two variables, and one that was skipped."""
    kernel = VariableEntry(
        "block/conv/kernel",
        "block/conv",
        "kernel",
        "kernel",
        (3, 3, 4, 24),
        "float32",
        "-1",
        True,
        24,
        36,
    )
    bias = VariableEntry(
        "block/conv/bias", "block/conv", "bias", "bias", (24,), "float32", "-1", True, 24, 1
    )
    return Description(
        lineage=LINEAGE,
        ordinal=2,
        origin="9c1e5f0a",
        every=10,
        past="previous",
        first_step=10,
        created=1700000000.5,
        versions={"tb_pastnet": "0.1.0"},
        layers=(
            LayerEntry("block/conv", "block", "conv", "Conv2D", (kernel.id, bias.id), kernel.id),
        ),
        variables=(kernel, bias),
        skipped=(("seed", "expected a floating dtype, got int64"),),
    )


def masks() -> dict[str, MaskBits]:
    """A mask of each coding, by its name; the flags are a formula of the element's index."""
    index = np.arange(9 * 4 * 24)
    flags = {
        "zeros": index < 0,
        "ones": index >= 0,
        "packed": (index * index * 2654435761 >> 16) % 2 == 0,
        "deflated": index % 24 >= 12,
    }
    return {
        name: MaskBits(number, MASK_STEPS[name] - number, index.size, np.packbits(flags[name]))
        for number, name in enumerate(flags)
    }


def mask_log() -> tuple[MaskChange, ...]:
    """Changes of two variables, with a number that is missing."""
    return (
        MaskChange(0, 10, "block/conv/kernel", "kept", 0, 864),
        MaskChange(1, 19, "block/conv/kernel", "kept", 864, 864),
        MaskChange(3, 160, "block/conv/bias", "trainable", 12, 24),
    )


def violations() -> tuple[Violation, ...]:
    """Two channels that began together, one of which isn't finite, and one of a later cause."""
    conv, bias = "block/conv/kernel", "block/conv/bias"
    return (
        Violation(conv, 3, 40, 160, 12, 36, 0.00125, "weight_decay"),
        Violation(conv, 5, 40, 160, 36, 36, math.inf, "weight_decay"),
        Violation(bias, 0, 160, 160, 1, 1, 2.0**-149, "of a later version"),
    )


def standing() -> tuple[StandingChange, ...]:
    """Two variables that begin together, one that moves again, and a cause of a later version."""
    conv, bias = "block/conv/kernel", "block/conv/bias"
    return (
        StandingChange(10, conv, "no_gradient"),
        StandingChange(10, bias, "no_gradient"),
        StandingChange(40, bias, ""),
        StandingChange(160, bias, "of a later version"),
    )


def compared() -> Compared:
    """A weight held from the beginning, one that was thawed and frozen in part, one that changed."""
    spans = HeldSpan(10, 60, 6, 60, True), HeldSpan(110, 160, 6, 1 << 40, False)
    return Compared(
        records=16,
        failed=1,
        known=15,
        first_step=10,
        last_step=160,
        moved={1: 70, 4: 10, 300: 20},
        computed=frozenset({2, 3}),
        pruned={1: 5},
        held={
            0: HeldValues(432, "64-bit fingerprint", (HeldSpan(10, 160, 16, 6912, True),)),
            1: HeldValues(10, "value", spans),
            300: HeldValues(7, "value", (HeldSpan(0, 0, 1, 7, True),), 3, 20),
        },
    )


def overhead() -> Overhead:
    """A number of each length, and a time that is no whole number of milliseconds."""
    return Overhead(
        steps=160,
        training=3600.000001,
        records=30.5,
        copies=0.000127,
        masks=0.0,
        probe=0.000128,
        other=1.25,
        writer=12.345678,
        bytes=1 << 33,
    )


DIGESTS = {"function": ("", ""), "function_digest": ("0f1e2d3c4b5a6978", "")}


def function_change(name: str) -> FunctionChange:
    """Three records of two layers and an output, with every odd value in its own place."""
    measure, record, place = np.ogrid[:4, :3, :3]
    values = (2.0 ** (-measure * record) + place / 8).astype(np.float32)
    values[2:, :, :2] = np.nan
    values[0, 0, 0], values[0, 1, 1] = 0, np.inf
    values[1, 2, 0], values[0, 2, 2], values[3, 0, 2] = -1, 2.0**-149, -0.0
    return FunctionChange(
        (
            Input("image", (64, 8, 8, 4), "float32", DIGESTS[name][0]),
            Input("", (64,), "int64", DIGESTS[name][1]),
        ),
        (
            Place("layer", "block/conv", 1536),
            Place("layer", "größe", 10),
            Place("output", "größe", 10),
        ),
        sequence=np.array([0, 6, 9]),
        steps=np.array([0, 60, 160]),
        past_steps=np.array([-1, 59, 100]),
        values=values,
    )


def follows() -> Follows:
    """Two records of two pairs, with every odd value in its own place."""
    measure, record, channel = np.ogrid[:3, :2, :5]
    values = (2.0 ** (-measure - record) + channel / 8).astype(np.float32)
    values[1, 0, 1], values[:, 1, 4], values[1, 1, 0] = np.nan, np.nan, -0.05
    values[2, 0, 2], values[0, 1, 3] = 0, 2.0**-149
    return Follows(
        (
            FollowPair("target/0/kernel", "online/0/kernel", 3, 0),
            FollowPair("größe", "block/conv/kernel", 2, None),
        ),
        sequence=np.array([0, 6]),
        steps=np.array([1, 160]),
        past_steps=np.array([0, 60]),
        values=values,
    )


def messages() -> dict[str, bytes]:
    """Each golden file's name and its bytes, as today's codec writes them."""
    return {
        "channels_counts.bin": encode_block(block(), tag=CHANNELS, lineage=LINEAGE),
        "channels_moved.bin": encode_block(moved(), tag=CHANNELS, lineage=LINEAGE),
        **{
            f"sketches_{name}.bin": encode_sketches(
                sketches(whole=name == "whole"), tag="sketches", step=LAST_STEP, lineage=LINEAGE
            )
            for name in ("whole", "apart")
        },
        "channels_later.bin": sealed.block(
            later(), near={"größe": "norm"}, tag=CHANNELS, step=LAST_STEP, lineage=LINEAGE
        ),
        "timeline.bin": encode_timeline(
            timeline(), tag="timeline", step=LAST_STEP, lineage=LINEAGE
        ),
        "description.bin": encode_description(description(), tag="description", step=10),
        "masks.bin": encode_mask_log(mask_log(), tag="masks", step=LAST_STEP, lineage=LINEAGE),
        "violations.bin": encode_violations(
            violations(), tag="violations", step=LAST_STEP, lineage=LINEAGE
        ),
        "standing.bin": encode_standing(
            standing(), tag="standing", step=LAST_STEP, lineage=LINEAGE
        ),
        "compared.bin": encode_compared(
            compared(), tag="compared", step=LAST_STEP, lineage=LINEAGE
        ),
        "overhead.bin": encode_overhead(
            overhead(), tag="overhead", step=LAST_STEP, lineage=LINEAGE
        ),
        "follows.bin": encode_follows(follows(), tag="follows", step=LAST_STEP, lineage=LINEAGE),
        **{
            f"{name}.bin": encode_function_change(
                function_change(name), tag="function", step=LAST_STEP, lineage=LINEAGE
            )
            for name in DIGESTS
        },
        **{
            f"mask_{name}.bin": encode_mask(mask, tag=MASK, step=MASK_STEPS[name], lineage=LINEAGE)
            for name, mask in masks().items()
        },
    }


def path(name: str, version: int) -> Path:
    """Where a file lies."""
    return Path(__file__).parent / f"v{version}" / name


def stored(name: str, kind: Kind) -> list[tuple[int, bytes]]:
    """A message in every version of its kind that has it."""
    paths = [(version, path(name, version)) for version in range(1, NEWEST[kind] + 1)]
    return [(version, file.read_bytes()) for version, file in paths if file.exists()]


def files() -> list[Path]:
    """All golden files, of every version."""
    return sorted(Path(__file__).parent.glob("v*/*.bin"))


if __name__ == "__main__":
    for name, message in messages().items():
        file = path(name, version_of(message))
        file.parent.mkdir(exist_ok=True)
        if not file.exists():
            file.write_bytes(message)
