"""Event files as the sink writes them, made without TensorFlow and without `tb_pastnet.keras`."""

from __future__ import annotations

import struct
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import google_crc32c
import numpy as np
import pytest
from tensorboard.compat.proto import event_pb2, summary_pb2, tensor_pb2

from tb_pastnet.core.quantize import ZERO, quantize, quantize_shares
from tb_pastnet.core.statistics import (
    CHANGED,
    KEPT,
    MOVED,
    NONFINITE,
    STATISTICS,
    TRAINABLE,
)
from tb_pastnet.core.violation import Violation
from tb_pastnet.format.block import Block, encode_block
from tb_pastnet.format.description import Description, LayerEntry, VariableEntry, encode_description
from tb_pastnet.format.mask_bits import MaskBits, encode_mask
from tb_pastnet.format.mask_log import MaskChange, encode_mask_log
from tb_pastnet.format.overhead import Overhead, encode_overhead
from tb_pastnet.format.tags import (
    DESCRIPTIONS,
    PLUGIN,
    TAG_MASKS,
    TAG_OVERHEAD,
    TAG_TIMELINE,
    TAG_VIOLATIONS,
    mask_tag,
)
from tb_pastnet.format.tags import lineage_directory as directory_name
from tb_pastnet.format.timeline import Timeline, encode_timeline
from tb_pastnet.format.together import Together, stored_channels
from tb_pastnet.format.violations import encode_violations

DT_UINT8 = 4
CREATED, LATER = 1_700_000_000, 100_000


def frame(data: bytes) -> bytes:
    """A TFRecord."""
    head = struct.pack("<Q", len(data))
    return head + _masked_crc(head) + data + _masked_crc(data)


def _masked_crc(data: bytes) -> bytes:
    crc = google_crc32c.value(data)
    return struct.pack("<I", (((crc >> 15) | (crc << 17)) + 0xA282EAD8) & 0xFFFFFFFF)


def event(
    tag: str,
    step: int,
    message: bytes | None,
    *,
    wall_time: float = CREATED,
    plugin: str = PLUGIN,
    content: bytes = b"",
    tensor: tensor_pb2.TensorProto | None = None,
) -> bytes:
    """An event of one value, serialised. With no message and no tensor it has metadata alone."""
    value = summary_pb2.Summary.Value(
        tag=tag,
        metadata=summary_pb2.SummaryMetadata(
            plugin_data=summary_pb2.SummaryMetadata.PluginData(plugin_name=plugin, content=content),
            data_class=summary_pb2.DATA_CLASS_TENSOR,
        ),
    )
    if message is not None:
        tensor = tensor_pb2.TensorProto(dtype=DT_UINT8, tensor_content=message)
        tensor.tensor_shape.dim.add(size=len(message))
    if tensor is not None:
        value.tensor.CopyFrom(tensor)
    summary = summary_pb2.Summary(value=[value])
    return event_pb2.Event(step=step, wall_time=wall_time, summary=summary).SerializeToString()


def scalar_event(tag: str, step: int, number: float) -> bytes:
    """What the Scalars tab shows: a neighbour that must not suffer."""
    tensor = tensor_pb2.TensorProto(dtype=1, float_val=[number])
    value = summary_pb2.Summary.Value(tag=tag, tensor=tensor)
    value.metadata.plugin_data.plugin_name = "scalars"
    value.metadata.data_class = summary_pb2.DATA_CLASS_SCALAR
    summary = summary_pb2.Summary(value=[value])
    return event_pb2.Event(step=step, wall_time=CREATED, summary=summary).SerializeToString()


def codes(steps: Sequence[int], channels: int, seed: int = 0) -> np.ndarray:
    """int16 (statistics, records, channels) of a training that calms down, each a function of its step."""
    step = np.asarray(steps, np.float64)[:, None]
    index = np.arange(channels)[None, :]
    rng = np.random.default_rng(seed)
    size = rng.uniform(0.5, 2.0, (1, channels))
    norm = size * (1 + 0.1 * np.sin(step / 50 + index))
    past = size * (1 + 0.1 * np.sin((step - 1) / 50 + index))
    delta = size * 10.0 ** -(1 + 4 * np.minimum(step, 2000) / 2000 * (index + 1) / channels)
    rows = dict.fromkeys(STATISTICS, np.zeros_like(norm))
    rows |= dict.fromkeys(("changed", "kept", "trainable", "moved"), np.ones_like(norm))
    rows |= {"norm": norm, "past_norm": past, "delta_norm": delta, "delta_max": delta / 2}
    return quantize(np.stack([rows[name] for name in STATISTICS]))


def freeze(array: np.ndarray, records: slice, channels: slice) -> np.ndarray:
    """Holds channels: their trainable mask is 0 and nothing of them changes."""
    array[[2, 3, CHANGED, TRAINABLE, MOVED], records, channels] = ZERO
    return array


def prune(array: np.ndarray, records: slice, channels: slice) -> np.ndarray:
    """Holds channels at zero."""
    freeze(array, records, channels)
    array[[0, 1, KEPT], records, channels] = ZERO
    return array


def hold(
    array: np.ndarray, records: slice, kept: np.ndarray, trainable: np.ndarray | None = None
) -> np.ndarray:
    """Puts the shares of masks, bool (elements of a channel, channels), into records."""
    free = kept if trainable is None else kept & trainable
    for row, mask in ((KEPT, kept), (TRAINABLE, free)):
        array[row, records] = quantize_shares(mask.mean(axis=0))
    return array


def poison(array: np.ndarray, records: slice, channels: slice) -> np.ndarray:
    """Puts two NaNs into channels."""
    array[NONFINITE, records, channels] = ZERO + 2
    return array


def variable(id_: str, channels: int, role: str = "kernel") -> VariableEntry:
    layer, _, name = id_.rpartition("/")
    shape, elements = ((3, 3, 1, channels), 9) if role == "kernel" else ((channels,), 1)
    return VariableEntry(id_, layer, name, role, shape, "float32", "-1", True, channels, elements)


def network(layers: Mapping[str, int]) -> tuple[tuple[LayerEntry, ...], tuple[VariableEntry, ...]]:
    """Conv2D layers of a kernel and a bias each, by id and number of channels."""
    made, variables = [], []
    for id_, channels in layers.items():
        group, _, name = id_.rpartition("/")
        kernel, bias = (
            variable(f"{id_}/kernel", channels),
            variable(f"{id_}/bias", channels, "bias"),
        )
        variables += [kernel, bias]
        made.append(LayerEntry(id_, group, name, "Conv2D", (kernel.id, bias.id), kernel.id))
    return tuple(made), tuple(variables)


@dataclass
class LineageWriter:
    """Writes one lineage's directory as the sink does, block by block."""

    logdir: Path
    run: str = "a"
    ordinal: int = 1
    lineage: int = 0x3F9A2C1B
    layers: Mapping[str, int] = field(default_factory=lambda: {"conv1": 4, "block/conv2": 6})
    origin: str = "9c1e"
    past: str = "previous"
    every: int = 1
    first_step: int = 1
    created: float = 0
    block: int = 16
    segment: int = 0
    offered: int = 0
    written: int = 0
    changes: int = 0
    follows: Collection[str] = ()
    together: Together = ()
    versions: Mapping[str, str] = field(default_factory=lambda: {"tb_pastnet": "0.1.0"})
    event_steps: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        # A restart comes after what it goes on with; two writers at once have one `created`.
        self.created = self.created or CREATED + (self.ordinal - 1) * LATER

    @property
    def directory(self) -> Path:
        return self.logdir / self.run / directory_name(self.ordinal, self.lineage)

    @property
    def tb_run(self) -> str:
        """TensorBoard's name of it."""
        return str(self.directory.relative_to(self.logdir))

    @property
    def path(self) -> Path:
        name = f"events.out.tfevents.{CREATED:010d}.{self.segment:06d}.pastnet"
        return self.directory / name

    def describe(self, step: int, *, audited: bool = False, copied: bool = False) -> None:
        layers, found = network(self.layers)
        variables = tuple(replace(one, follows=one.layer in self.follows) for one in found)
        description = Description(
            self.lineage,
            self.ordinal,
            self.origin,
            self.every,
            self.past,
            self.first_step,
            float(self.created),
            self.versions,
            layers,
            variables,
            (("count", "dtype int32"),),
            audited=audited,
            together=self.together,
        )
        for tag in DESCRIPTIONS if copied else DESCRIPTIONS[:1]:
            self.put(tag, step, encode_description(description, tag=tag, step=step))

    def put(self, tag: str, step: int, message: bytes | None, **more: Any) -> None:
        self.raw(event(tag, step, message, wall_time=self.created + self.written, **more))

    def raw(self, data: bytes) -> None:
        self.directory.mkdir(parents=True, exist_ok=True)
        with self.path.open("ab") as file:
            file.write(frame(data))
        self.written += 1

    def records(
        self,
        steps: Sequence[int],
        values: Mapping[str, np.ndarray] | None = None,
        **timeline: Any,
    ) -> None:
        """Appends records of all variables and their timeline, in blocks.

        Args:
            steps: increasing.
            values: codes (statistics, records, channels) by variable, `codes` for those left out.
            timeline: fields of the timeline: thinned, dropped, notes, learning_rates (a list).
        """
        steps = np.asarray(steps, np.int64)
        sequence = np.arange(self.offered, self.offered + len(steps))
        rates = np.asarray(timeline.pop("learning_rates", [0.1] * len(steps)), np.float64)
        extra = int(timeline.get("thinned", 0)) + int(timeline.get("dropped", 0))
        for at in range(0, len(steps), self.block):
            some = slice(at, min(at + self.block, len(steps)))
            last = int(steps[some][-1])
            of_tag: dict[str, list[np.ndarray]] = {}
            variables = network(self.layers)[1]
            where = stored_channels([(one.id, one.channels) for one in variables], self.together)
            for number in sorted(range(len(where)), key=lambda n: where[n].first):
                one = variables[number]
                array = (values or {}).get(one.id)
                part = codes(steps[some], one.channels) if array is None else array[:, some]
                of_tag.setdefault(where[number].tag, []).append(part)
            for tag in dict.fromkeys(place.tag for place in where):
                beside = np.concatenate(of_tag[tag], axis=2)
                block = Block(sequence[some], steps[some], steps[some] - 1, beside)
                self.put(tag, last, encode_block(block, tag=tag, lineage=self.lineage))
            line = Timeline(
                sequence[some],
                steps[some],
                self.created + steps[some].astype(np.float64),
                rates[some],
                offered=int(sequence[some][-1]) + 1 + extra,
                **timeline,
            )
            self.put(TAG_TIMELINE, last, self.sealed(line, last))
        self.offered += len(steps)

    def masks(self, step: int, masks: Mapping[tuple[str, str], np.ndarray]) -> None:
        """Writes masks that changed, bool arrays by mask and variable: their bits and the log."""
        log = []
        for (mask, variable), array in masks.items():
            flags, tag = np.ravel(array).astype(bool), mask_tag(mask, variable)
            bits = MaskBits(self.changes, step, flags.size, np.packbits(flags))
            at = self.event_step(tag, step)
            self.put(tag, at, encode_mask(bits, tag=tag, step=at, lineage=self.lineage))
            count = int(flags.sum())
            log.append(MaskChange(self.changes, step, variable, mask, count, flags.size))
            self.changes += 1
        at = self.event_step(TAG_MASKS, step)
        sealed = encode_mask_log(log, tag=TAG_MASKS, step=at, lineage=self.lineage)
        self.put(TAG_MASKS, at, sealed)

    def violations(self, step: int, found: Sequence[Violation]) -> None:
        """Writes what an audit found."""
        at = self.event_step(TAG_VIOLATIONS, step)
        sealed = encode_violations(found, tag=TAG_VIOLATIONS, step=at, lineage=self.lineage)
        self.put(TAG_VIOLATIONS, at, sealed)

    def overhead(self, step: int, cost: Overhead) -> None:
        """Writes what recording has cost so far."""
        tag, at = TAG_OVERHEAD, self.event_step(TAG_OVERHEAD, step)
        self.put(tag, at, encode_overhead(cost, tag=tag, step=at, lineage=self.lineage))

    def event_step(self, tag: str, step: int) -> int:
        """Event steps increase within a tag, whatever the steps are that it tells of."""
        self.event_steps[tag] = at = max(step, self.event_steps.get(tag, -1) + 1)
        return at

    def close(self, step: int, **timeline: Any) -> None:
        offered = self.offered + sum(int(timeline.get(x, 0)) for x in ("thinned", "dropped"))
        line = Timeline(offered=offered, closed=True, **timeline)
        self.put(TAG_TIMELINE, step + 1, self.sealed(line, step + 1))

    def sealed(self, line: Timeline, step: int) -> bytes:
        return encode_timeline(line, tag=TAG_TIMELINE, step=step, lineage=self.lineage)


def write_run(
    logdir: Path, run: str = "a", steps: Sequence[int] = range(1, 41), **more: Any
) -> LineageWriter:
    """A whole run that ended normally."""
    writer = LineageWriter(logdir, run, **more)
    writer.first_step = int(steps[0])
    writer.describe(int(steps[0]) - 1)
    writer.records(steps)
    writer.close(int(steps[-1]))
    return writer


def forbid(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets no file below a folder be opened, not even by root."""
    opened = Path.open

    def refuse(path: Path, *arguments: Any, **more: Any) -> Any:
        if path.is_relative_to(folder):
            raise PermissionError(13, "Permission denied")
        return opened(path, *arguments, **more)

    monkeypatch.setattr(Path, "open", refuse)
