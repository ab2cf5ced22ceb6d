"""Writes trainings as logs, in the project's own format and by its own statistics."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from tb_pastnet.core.axes import ChannelAxis
from tb_pastnet.core.statistics import channel_statistics, quantize_statistics
from tb_pastnet.core.violation import Violation
from tb_pastnet.format.block import Block, encode_block
from tb_pastnet.format.description import Description, LayerEntry, VariableEntry, encode_description
from tb_pastnet.format.tags import TAG_DESCRIPTION, TAG_TIMELINE, channels_tag
from tb_pastnet.format.timeline import Timeline
from tests.event_files import CREATED, LineageWriter
from tests.oracle.plain import Recorded
from tests.oracle.weights import Tensor, Training


@dataclass
class Writer(LineageWriter):
    """Writes one training."""

    training: Training = field(default_factory=lambda: Training("", "", "", False, [], 0, []))

    def describe(self, step: int, *, audited: bool = False) -> None:
        made = self.training
        layers, variables = [], []
        for main in made.layers:
            own = made.of(main.layer)
            variables += [_variable(one) for one in own]
            group, _, name = main.layer.rpartition("/")
            ids = tuple(one.id for one in own)
            layers.append(LayerEntry(main.layer, group, name, "Conv2D", ids, main.id))
        description = Description(
            self.lineage, self.ordinal, made.origin, 1, made.past, made.records[0], float(CREATED),
            {"tb_pastnet": "0.1.0"}, tuple(layers), tuple(variables), (), audited=audited,
        )  # fmt: skip
        message = encode_description(description, tag=TAG_DESCRIPTION, step=step)
        self.put(TAG_DESCRIPTION, step, message)

    def write(self) -> None:
        made = self.training
        self.describe(0, audited=made.audited)
        changes: dict[int, dict[tuple[str, str], np.ndarray]] = {}
        for one in made.layers:
            for mask, flags in (("kept", one.kept), ("trainable", one.trainable)):
                for step in range(1, len(flags)):
                    if (flags[step] != flags[step - 1]).any():
                        changes.setdefault(step, {})[mask, one.id] = flags[step]
        for step in sorted(changes):
            self.masks(step, changes[step])
        if made.audited:
            for one in (*made.layers, *made.others):
                for violation in audit(made, one):
                    self.violations(violation.last_step, [violation])
        for one in (*made.layers, *made.others):
            self._records(one)
        self._times()

    def _records(self, one: Tensor) -> None:
        steps = np.array(one.records)
        places = np.searchsorted(self.training.records, steps)
        past = np.array(self.training.past_of(one))
        pairs = zip(steps.tolist(), past.tolist(), strict=True)
        codes = np.stack([_codes(one, *pair) for pair in pairs], axis=1)
        for at in range(0, len(steps), self.block):
            some = slice(at, at + self.block)
            block = Block(places[some], steps[some], past[some], codes[:, some])
            tag = channels_tag(one.id)
            self.put(tag, int(steps[some][-1]), encode_block(block, tag=tag, lineage=self.lineage))

    def _times(self) -> None:
        steps = np.array(self.training.records)
        rates, dropped = np.full(len(steps), 0.1), self.training.dropped
        line = Timeline(
            np.arange(len(steps)), steps, CREATED + steps.astype(np.float64), rates,
            offered=len(steps) + dropped, dropped=dropped, closed=self.training.closed,
        )  # fmt: skip
        self.put(TAG_TIMELINE, int(steps[-1]), self.sealed(line, int(steps[-1])))


def write_log(logdir: Path, trainings: Sequence[Training]) -> None:
    """Writes all runs of a log."""
    for at, made in enumerate(trainings):
        Writer(logdir, made.run, lineage=0x0AC1E + at, training=made).write()


def audit(made: Training, one: Tensor) -> list[Violation]:
    """What the audit of the writer finds: each stretch of records in which a channel moved."""
    recorded = Recorded(made, one)
    found = []
    for channel, moved in enumerate(recorded.violated.T):
        edges = np.flatnonzero(np.diff(np.concatenate([[False], moved, [False]])))
        for first, end in edges.reshape(-1, 2).tolist():
            steps = int(recorded.steps[first]), int(recorded.steps[end - 1])
            found.append(Violation(one.id, channel, *steps, 1, 9, 0.25, "momentum"))
    return found


def _codes(one: Tensor, now: int, before: int) -> np.ndarray:
    axis = ChannelAxis(one.shape, tuple(axis % len(one.shape) for axis in one.axes), "", True)
    free = one.trainable[now] & ~one.still[now]
    return quantize_statistics(
        channel_statistics(one.weights[now], one.weights[before], axis, one.kept[now], free)
    )


def _variable(one: Tensor) -> VariableEntry:
    name, text = one.id.rpartition("/")[2], ", ".join(map(str, one.axes))
    axis = f"({text})" if len(one.axes) > 1 else text
    each = one.size // one.channels
    return VariableEntry(
        one.id, one.layer, name, one.role, one.shape, "float32", axis, True, one.channels, each
    )
