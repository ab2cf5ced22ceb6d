"""What the golden files hold, as formulas: independent of the codec that wrote them.

`python -m tests.golden.contents` writes the files of a new format version. The files of a version
that was released are never written again: readers have to understand them for ever.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from tb_pastnet.core.block import Block, encode_block
from tb_pastnet.core.description import Description, Layer, Variable, encode_description
from tb_pastnet.core.envelope import VERSION
from tb_pastnet.core.timeline import Timeline, encode_timeline

LINEAGE = 0x3F9A2C1B
LAST_STEP = 160
CHANNELS = "channels/block/conv/kernel"


def block() -> Block:
    """Sixteen records of 24 channels, with zeros, infinity, NaN and both ends of the codes."""
    row, record, channel = np.ogrid[:8, :16, :24]
    codes = (-37 * row + 3 * record * (row == 2) - 5 * channel + (record * channel) % 7).astype(
        np.int16
    )
    codes[4, :, 3] = -32768
    codes[2, 5, 0], codes[2, 6, 0] = 32767, 32766
    codes[0, 0, 1], codes[0, 1, 1] = -32768, 32765
    codes[6], codes[7] = 0, -16 * (channel[0] % 3)
    record = np.arange(16)
    return Block(3 + 2 * record, 10 + 10 * record, 9 + 10 * record, codes)


def timeline() -> Timeline:
    """Three records after some that were thinned and dropped, with a clock that goes back."""
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
    )


def description() -> Description:
    """A layer with two variables, and one that was skipped."""
    kernel = Variable(
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
    bias = Variable(
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
        layers=(Layer("block/conv", "block", "conv", "Conv2D", (kernel.id, bias.id), kernel.id),),
        variables=(kernel, bias),
        skipped=(("seed", "expected a floating dtype, got int64"),),
    )


def messages() -> dict[str, bytes]:
    """Each golden file's name and its bytes, as today's codec writes them."""
    return {
        "channels.bin": encode_block(block(), tag=CHANNELS, lineage=LINEAGE),
        "timeline.bin": encode_timeline(
            timeline(), tag="timeline", step=LAST_STEP, lineage=LINEAGE
        ),
        "description.bin": encode_description(description(), tag="description", step=10),
    }


def folder(version: int = VERSION) -> Path:
    """Where the files of a format version lie."""
    return Path(__file__).parent / f"v{version}"


if __name__ == "__main__":
    folder().mkdir()
    for name, message in messages().items():
        (folder() / name).write_bytes(message)
