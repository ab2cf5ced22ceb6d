"""A log with masks and an audit: a ticket that is pruned step by step and leaks, and a calm run."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from tb_pastnet.core.quantize import quantize
from tb_pastnet.core.statistics import KEPT
from tb_pastnet.core.violation import CAUSES, Violation
from tb_pastnet.format.mask_bits import MaskBits, encode_mask
from tb_pastnet.format.mask_log import MaskChange, encode_mask_log
from tb_pastnet.format.tags import TAG_MASKS, TAG_VIOLATIONS, mask_tag
from tb_pastnet.format.violations import encode_violations
from tests.event_files import LineageWriter, codes, freeze, write_run

HOSTILE = "<img src=x onerror=alert(1)>"
LAYERS = {"conv1": 8, "block/conv2": 16, HOSTILE: 2}
STEPS = range(1, 41)
RUNS, RECORDS = 2, 2 * len(STEPS)
PER_CHANNEL = 9
PRUNABLE = PER_CHANNEL * sum(LAYERS.values())

KEPT_OF_NINE = {"conv1/kernel": {10: 5, 30: 2}, "block/conv2/kernel": {20: 3}}
"""Kept weights of each channel, of 9, from a step on."""
FROZEN_BIAS, FROZEN_FROM = "block/conv2/bias", 25


def pruned(step: int) -> int:
    """Pruned weights at a step."""
    return sum(
        (PER_CHANNEL - kept_at(variable, step)) * LAYERS[variable.rpartition("/")[0]]
        for variable in KEPT_OF_NINE
    )


def kept_at(variable: str, step: int) -> int:
    """Kept weights of each channel of a kernel."""
    reached = [kept for since, kept in KEPT_OF_NINE[variable].items() if since <= step]
    return reached[-1] if reached else PER_CHANNEL


def violations() -> list[Violation]:
    """Single weights of partly pruned channels, a bias, a value that isn't finite; every cause."""
    found = [
        Violation("block/conv2/bias", 7, 27, 40, 1, 1, 0.5, "momentum"),
        Violation("block/conv2/kernel", 5, 28, 30, 6, 6, np.inf, "loaded"),
        Violation("conv1/kernel", 2, 33, 40, 3, 7, 1.25e-3, "weight_decay"),
        Violation(f"{HOSTILE}/kernel", 1, 34, 34, 1, 4, 2.0, "solar_flare"),
    ]
    found += [
        Violation("block/conv2/kernel", channel, 35, 40, at + 1, 14, 1e-4 * (at + 1), cause)
        for at, (channel, cause) in enumerate(zip([1, 2, 3, 4, *range(6, 16)], CAUSES, strict=True))
    ]
    return found


def changes() -> list[MaskChange]:
    """What the log of masks says, oldest first."""
    made = [
        (since, variable, "kept", kept * LAYERS[variable.rpartition("/")[0]])
        for variable, steps in KEPT_OF_NINE.items()
        for since, kept in steps.items()
    ]
    made.append((FROZEN_FROM, FROZEN_BIAS, "trainable", 0))
    return [
        MaskChange(number, step, variable, mask, through, _elements(variable))
        for number, (step, variable, mask, through) in enumerate(sorted(made))
    ]


def held_story(logdir: Path) -> None:
    """Writes both runs."""
    write_run(logdir, "calm", STEPS, lineage=0x4000, layers=LAYERS)
    writer = LineageWriter(logdir, "ticket", lineage=0x4001, layers=LAYERS)
    writer.describe(0)
    for change in changes():
        _put_change(writer, change)
    writer.records(STEPS, _values())
    audit = encode_violations(violations(), tag=TAG_VIOLATIONS, step=40, lineage=writer.lineage)
    writer.put(TAG_VIOLATIONS, 40, audit)
    writer.close(40)


def _elements(variable: str) -> int:
    layer, _, name = variable.rpartition("/")
    return LAYERS[layer] * (PER_CHANNEL if name == "kernel" else 1)


def _put_change(writer: LineageWriter, change: MaskChange) -> None:
    tag, lineage = mask_tag(change.mask, change.variable), writer.lineage
    flags = np.arange(change.elements) < change.through
    bits = MaskBits(change.number, change.step, change.elements, np.packbits(flags))
    message = encode_mask(bits, tag=tag, step=change.step, lineage=lineage)
    writer.put(tag, change.step, message)
    log = encode_mask_log([change], tag=TAG_MASKS, step=change.step, lineage=lineage)
    writer.put(TAG_MASKS, change.step, log)


def _values() -> Mapping[str, np.ndarray]:
    values = {}
    for variable in KEPT_OF_NINE:
        array = codes(STEPS, LAYERS[variable.rpartition("/")[0]])
        for record, step in enumerate(STEPS):
            array[KEPT, record] = quantize(kept_at(variable, step) / PER_CHANNEL)
        values[variable] = array
    frozen = slice(FROZEN_FROM - 1, None)
    values[FROZEN_BIAS] = freeze(codes(STEPS, 16), frozen, slice(None))
    return values
