"""The description of the recorded network: layers in forward order, shapes, axes.

Stored as deflated JSON at the head of every segment of a lineage: each file of a run is
self-contained. Unknown keys are ignored: a later version may add some.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from tb_pastnet.format import json_payload, limits
from tb_pastnet.format.envelope import Kind, seal, unseal
from tb_pastnet.format.json_payload import natural, shape, text
from tb_pastnet.format.together import Together


@dataclass(frozen=True)
class VariableEntry:
    """A recorded variable."""

    id: str  # its path below the model, such as "block1/conv1/kernel"
    layer: str  # the id of its layer
    name: str
    role: str  # "kernel", "bias", "scale", "statistic" or "other"
    shape: tuple[int, ...]
    dtype: str
    axis: str  # the channel axis in words, see `axes.ChannelAxis.text`
    verified: bool  # whether that axis is known to fit
    channels: int
    elements: int  # elements of each channel
    # the one of the description's `groups` that has its learning rate; None: the common rate
    group: int | None = None
    follows: bool = False  # whether anything but an optimizer moves it on purpose
    also: tuple[str, ...] = ()  # its paths in other places, if it is shared


@dataclass(frozen=True)
class LayerEntry:
    """A layer with at least one recorded variable."""

    id: str  # its path below the model, such as "block1/conv1"
    group: str  # the path of its parent, "" at the top
    name: str
    type: str
    variables: tuple[str, ...]  # ids of its variables
    main: str  # the id of the variable that it is drawn by


@dataclass(frozen=True)
class Description:
    """What a lineage records, and how."""

    lineage: int  # the writer's 32-bit id
    ordinal: int  # its place among the lineages of the run
    origin: str  # equal in runs whose weights come from the same initial values
    every: int  # records are due when step // every grows
    past: str  # what "past" means: "previous", "record", "epoch", "initial" or a number of steps
    first_step: int  # the step of the first record, or of a change of a mask before it
    created: float  # seconds since 1970
    versions: Mapping[str, str] = field(default_factory=dict)  # of tb_pastnet, keras, tensorflow
    layers: tuple[LayerEntry, ...] = ()  # in forward order
    variables: tuple[VariableEntry, ...] = ()  # in the order of their layers
    # name and reason of each variable that can't be recorded
    skipped: tuple[tuple[str, str], ...] = ()
    # whether the writer compared held weights bitwise at each record: then its violations list what
    # moved, and the records aren't searched for it
    audited: bool = False
    # with a probe, it was evaluated at the records whose number is a multiple of this
    probe_every: int = 1
    groups: tuple[str, ...] = ()  # names of the groups of weights that have their own learning rate
    # what should happen: patterns of names with the words for each, as in `expect=`
    expect: tuple[tuple[str, str], ...] = ()
    config: Mapping[str, Any] = field(default_factory=dict)  # the user's `config=`
    # the numbers of variables that share a series of records; each of the others has its own
    together: Together = ()

    @property
    def names(self) -> int:
        """How many layers, variables and others it names."""
        layers = len(self.layers) + sum(len(layer.variables) for layer in self.layers)
        rest = len(self.skipped) + len(self.groups) + len(self.versions) + len(self.config)
        rest += len(self.expect) + sum(len(variable.also) for variable in self.variables)
        return layers + len(self.variables) + rest


@dataclass(frozen=True)
class Series:
    """A variable, as a summary call into a user's own writer describes it; the axis is text."""

    shape: tuple[int, ...]
    axis: str
    channels: int


def encode_description(description: Description, *, tag: str, step: int) -> bytes:
    """Packs and seals a description under its own lineage.

    Raises InvalidArgument if a reader would refuse it: `fitting` finds out what fits before.
    """
    data = asdict(description)
    with json_payload.encoding("a complete description"):
        _description(data)
    optional = [(data, name) for name in ("config", "expect", "together")]
    optional += [(each, "also") for each in data["variables"]]
    for values, name in optional:
        if not values[name]:  # logs that have none stay as they were
            del values[name]
    payload = json_payload.pack(data)
    return seal(payload, Kind.DESCRIPTION, tag=tag, step=step, lineage=description.lineage)


def decode_description(message: bytes, *, tag: str, step: int, lineage: int) -> Description:
    """Opens a message and restores its description; raises UnreadableRecord."""
    payload = unseal(message, Kind.DESCRIPTION, tag=tag, step=step, lineage=lineage)
    data = json_payload.unpack(payload)
    with json_payload.expecting("a complete description"):
        return _description(data)


def encode_series(series: Series) -> bytes:
    """Writes the plugin content of a user's own series: tiny, as TensorFlow repeats it."""
    return json.dumps({"v": 1, **asdict(series)}, separators=(",", ":")).encode()


def decode_series(content: bytes) -> Series:
    """Reads what `encode_series` wrote; raises DamagedRecord if it isn't that."""
    data = json_payload.parse(content[: limits.MAX_NAME])
    with json_payload.expecting("shape, axis and channels"):
        channels = natural(data["channels"], limits.MAX_CHANNELS)
        return Series(shape(data["shape"]), text(data["axis"]), channels)


def _description(data: Mapping[str, Any]) -> Description:
    """The description in an untrusted object; raises ValueError and others if it isn't one."""
    shared = _sharing()
    variables = tuple(_variable(entry, shared) for entry in data["variables"])
    return Description(
        lineage=natural(data["lineage"]),
        ordinal=natural(data["ordinal"]),
        origin=text(data["origin"]),
        every=natural(data["every"]),
        past=text(data["past"]),
        first_step=natural(data["first_step"]),
        created=_seconds(data["created"]),
        versions={text(k): text(v) for k, v in data["versions"].items()},
        layers=tuple(_layer(entry, shared) for entry in data["layers"]),
        variables=variables,
        skipped=tuple((text(name), text(why)) for name, why in data["skipped"]),
        audited=data.get("audited") is True,
        probe_every=max(1, natural(data.get("probe_every", 1))),
        groups=tuple(text(name) for name in data.get("groups", ())),
        expect=tuple((text(name), text(words)) for name, words in data.get("expect", ())),
        config={text(name): _setting(value) for name, value in data.get("config", {}).items()},
        together=_together(data.get("together", ()), variables),
    )


def _together(series: Sequence[Sequence[Any]], variables: Sequence[VariableEntry]) -> Together:
    """The variables of each series: each of several, of which no other one has any."""
    together = tuple(tuple(map(natural, numbers)) for numbers in series)
    numbers = [number for own in together for number in own]
    widest = max((sum(variables[n].channels for n in own) for own in together), default=0)
    if len({*numbers}) < len(numbers) or not all(own[1:] for own in together):
        raise ValueError("a series of a single variable, or two of one")
    if widest > limits.MAX_TOGETHER:
        raise ValueError(f"a series of {widest} channels")
    return together


def _sharing() -> Callable[[Any], str]:
    """As `text`; equal texts are one object, because layers and variables repeat most texts."""
    texts: dict[str, str] = {}

    def shared(value: Any) -> str:
        checked = text(value)
        return texts.setdefault(checked, checked)

    return shared


def _layer(data: Mapping[str, Any], shared: Callable[[Any], str]) -> LayerEntry:
    names = {key: shared(data[key]) for key in ("id", "group", "name", "type", "main")}
    return LayerEntry(**names, variables=tuple(map(shared, data["variables"])))


def _variable(data: Mapping[str, Any], shared: Callable[[Any], str]) -> VariableEntry:
    names = {key: shared(data[key]) for key in ("id", "layer", "name", "role", "dtype", "axis")}
    return VariableEntry(
        **names,
        shape=shape(data["shape"]),
        verified=data["verified"] is True,
        channels=natural(data["channels"], limits.MAX_CHANNELS),
        elements=natural(data["elements"], limits.MAX_WEIGHTS),
        group=None if data.get("group") is None else natural(data["group"]),
        follows=data.get("follows") is True,
        also=tuple(map(shared, data.get("also", ()))),
    )


def _setting(value: Any) -> str | int | float | bool | None:
    if isinstance(value, str):
        return text(value)
    if not (value is None or isinstance(value, bool | int | float)):
        raise ValueError("a setting that is neither a number nor a text")
    return value


def _seconds(value: Any) -> float:
    if not isinstance(value, (int, float)) or not math.isfinite(value):
        raise ValueError("a finite number of seconds is missing")
    return float(value)
