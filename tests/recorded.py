"""Reads what the sink wrote, as a server would, with nothing but `core`."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from tb_pastnet.core.compared import Compared
from tb_pastnet.core.quantize import dequantize
from tb_pastnet.core.violation import Violation
from tb_pastnet.format.block import Block, decode_block
from tb_pastnet.format.compared import decode_compared
from tb_pastnet.format.description import Description, decode_description
from tb_pastnet.format.follows import Follows, decode_follows
from tb_pastnet.format.function_change import FunctionChange, decode_function_change
from tb_pastnet.format.mask_bits import MaskBits, decode_mask
from tb_pastnet.format.mask_log import MaskChange, decode_mask_log
from tb_pastnet.format.overhead import Overhead, decode_overhead
from tb_pastnet.format.sketches import Sketches, decode_sketches
from tb_pastnet.format.standing import StandingChange, decode_standing
from tb_pastnet.format.tags import (
    DESCRIPTIONS,
    TAG_COMPARED,
    TAG_FOLLOWS,
    TAG_FUNCTION,
    TAG_MASKS,
    TAG_OVERHEAD,
    TAG_SKETCHES,
    TAG_STANDING,
    TAG_TIMELINE,
    TAG_VIOLATIONS,
    mask_of,
    parse_run,
)
from tb_pastnet.format.timeline import Timeline, decode_timeline
from tb_pastnet.format.together import stored_channels
from tb_pastnet.format.violations import decode_violations
from tb_pastnet.record.messages import read_messages


@dataclass
class Recorded:
    """A lineage. `codes`, `steps` and `past_steps` are by variable; a record may stand twice.

    `changes` and `masks` are by number, `violations` by variable, channel and first step;
    `functions` are the messages of a probe, `follows` those of weights that follow others, and
    `overheads` those of the cost, and `sketches` those of layers, in their order.
    """

    ordinal: int
    lineage: int
    descriptions: list[Description] = field(default_factory=list)
    timelines: list[Timeline] = field(default_factory=list)
    codes: dict[str, dict[int, np.ndarray]] = field(default_factory=dict)
    steps: dict[int, int] = field(default_factory=dict)
    past_steps: dict[int, int] = field(default_factory=dict)
    changes: dict[int, MaskChange] = field(default_factory=dict)
    masks: dict[int, MaskBits] = field(default_factory=dict)
    violations: dict[tuple[str, int, int], Violation] = field(default_factory=dict)
    standing: list[StandingChange] = field(default_factory=list)
    compared: list[Compared] = field(default_factory=list)
    functions: list[FunctionChange] = field(default_factory=list)
    follows: list[Follows] = field(default_factory=list)
    overheads: list[Overhead] = field(default_factory=list)
    sketches: list[Sketches] = field(default_factory=list)
    tags: dict[str, list[int]] = field(default_factory=dict)
    segments: int = 0

    @property
    def description(self) -> Description:
        return self.descriptions[0]

    @property
    def last(self) -> Timeline:
        """The timeline that knows most: also after a retry it is the last one."""
        return self.timelines[-1]

    def values(self, variable: str) -> np.ndarray:
        """float64 (records, statistics, channels), in the order of the sequence."""
        by_sequence = self.codes[variable]
        return dequantize(np.stack([by_sequence[key] for key in sorted(by_sequence)]))

    def record_steps(self) -> list[int]:
        return [self.steps[key] for key in sorted(self.steps)]

    def record_past_steps(self) -> list[int]:
        return [self.past_steps[key] for key in sorted(self.past_steps)]


def read_lineages(logdir: Path) -> list[Recorded]:
    """All lineages of a log directory, in order; those without a record too."""
    found = []
    for directory in sorted(Path(logdir).glob("pastnet.*")):
        run = parse_run(directory.name)
        assert run is not None, directory
        recorded = Recorded(run.ordinal, run.lineage)
        for file in sorted(directory.iterdir()):
            _read_segment(file, recorded)
        found.append(recorded)
    return found


def read_one(logdir: Path) -> Recorded:
    """The only lineage of a log directory."""
    (recorded,) = read_lineages(logdir)
    return recorded


def _take_description(description: Description, copy: int, into: Recorded) -> None:
    if copy == 0:
        into.descriptions.append(description)
    assert into.descriptions[-1] == description


_MORE = {
    TAG_FUNCTION: ("functions", decode_function_change),
    TAG_FOLLOWS: ("follows", decode_follows),
    TAG_COMPARED: ("compared", decode_compared),
    TAG_OVERHEAD: ("overheads", decode_overhead),
    TAG_SKETCHES: ("sketches", decode_sketches),
}
"""By tag the messages that are listed as they are."""


def _read_segment(file: Path, into: Recorded) -> None:
    into.segments += 1
    with file.open("rb") as stream:
        for number, message in enumerate(read_messages(stream)):
            place = {"tag": message.tag, "step": message.step, "lineage": into.lineage}
            into.tags.setdefault(message.tag, []).append(message.step)
            if number < len(DESCRIPTIONS):
                assert message.tag == DESCRIPTIONS[number], "descriptions come first"
                _take_description(decode_description(message.payload, **place), number, into)
            elif message.tag == TAG_TIMELINE:
                into.timelines.append(decode_timeline(message.payload, **place))
            elif message.tag == TAG_MASKS:
                found = decode_mask_log(message.payload, **place)
                into.changes.update({change.number: change for change in found})
            elif message.tag == TAG_VIOLATIONS:
                for one in decode_violations(message.payload, **place):
                    into.violations[one.variable, one.channel, one.first_step] = one
            elif message.tag in _MORE:
                name, decode = _MORE[message.tag]
                getattr(into, name).append(decode(message.payload, **place))
            elif message.tag in (TAG_FUNCTION, TAG_STANDING, TAG_OVERHEAD):
                _take_other(message, place, into)
            elif mask_of(message.tag) is not None:
                bits = decode_mask(message.payload, **place)
                into.masks[bits.number] = bits
            else:
                _take_block(decode_block(message.payload, **place), message.tag, into)


def _take_other(message: Any, place: dict[str, Any], into: Recorded) -> None:
    if message.tag == TAG_FUNCTION:
        into.functions.append(decode_function_change(message.payload, **place))
    elif message.tag == TAG_STANDING:
        into.standing += decode_standing(message.payload, **place)
    else:
        into.overheads.append(decode_overhead(message.payload, **place))


def _take_block(block: Block, tag: str, into: Recorded) -> None:
    sizes = [(variable.id, variable.channels) for variable in into.description.variables]
    found = stored_channels(sizes, into.description.together)
    own = [
        (id_, slice(place.first, place.first + channels))
        for (id_, channels), place in zip(sizes, found, strict=True)
        if place.tag == tag
    ] or [(tag.removeprefix("channels/"), slice(0, block.channels))]
    assert own[-1][1].stop == block.channels
    for at, key in enumerate(block.sequence.tolist()):
        for variable, columns in own:
            into.codes.setdefault(variable, {})[key] = block.codes[:, at, columns]
        into.steps[key] = int(block.steps[at])
        into.past_steps[key] = int(block.past_steps[at])
