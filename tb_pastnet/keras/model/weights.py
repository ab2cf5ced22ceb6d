"""The recorded variables of a model: their names, channels and trainable flags."""

from __future__ import annotations

import math
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import replace
from operator import attrgetter
from typing import Any, TypeVar

from tb_pastnet.core.axes import ChannelAxis, channel_axis, explicit_axis
from tb_pastnet.core.follow_pairs import Follows, follow_pairs
from tb_pastnet.core.names import Called, Names
from tb_pastnet.keras.model.walk import Found, held_by
from tb_pastnet.keras.types import Model, Variable
from tb_pastnet.record.weight import Network, OwnMasks, Weight

AxisOverrides = Mapping[Any, int | tuple[int, ...]]

_TRAINABLE = attrgetter("trainable")

W = TypeVar("W", bound="FoundWeight")


class FoundWeight(Weight):
    """A weight in a variable of a model, on any backend of Keras."""

    def __init__(
        self, name: str, entry: Found, axis: ChannelAxis, *, follows: bool = False
    ) -> None:
        super().__init__(
            name,
            _shape(entry.variable),
            _dtype(entry.variable),
            axis,
            layer=entry.layer,
            own_name=entry.name,
            kind=entry.type,
            statistic=entry.statistic,
            follows=follows,
            aliases=entry.paths,
            handles=_handles(entry),
        )
        # No flag holds following weights, nor statistics.
        self.found = replace(entry, statistic=True) if follows else entry
        self.variable = entry.variable

    @staticmethod
    def refusal(variable: Variable) -> str | None:
        """Why it can't be recorded; None if it can."""
        if not _dtype(variable).startswith(("float", "bfloat")):
            return f"its dtype {_dtype(variable)} isn't a floating one"
        if getattr(variable.shape, "rank", 0) is None or None in tuple(variable.shape):
            return f"its shape {variable.shape} isn't fixed"
        if math.prod(_shape(variable)) == 0:
            return "it has no elements"
        return None

    @property
    def computed(self) -> bool:
        """See `Weight`."""
        return self.found.computed

    def trainable(self) -> bool:
        """See `Weight`."""
        return all(map(_TRAINABLE, self.found.flags))

    def masks(self) -> OwnMasks | None:
        """See `Weight`."""
        return self.found.masks


class TrainableFlags:
    """The `trainable` flags for some weights, each read once for all of them."""

    def __init__(self, entries: Sequence[Found]) -> None:
        unique = {id(holder): holder for entry in entries for holder in entry.flags}
        self._holders = list(unique.values())
        numbers = {key: number for number, key in enumerate(unique)}
        self._heard = [[numbers[id(holder)] for holder in entry.flags] for entry in entries]
        # Setting a layer sets its variables.
        heard = (entry for entry in entries if entry.flags)
        layers = {id(layer): layer for entry in heard for layer in entry.around[-1:]}
        self._layers = list(layers.values())

    def quick_key(self) -> tuple[bool, ...]:
        """The flags of layers with weights, not of the weights: quick enough for each step."""
        return tuple(map(_TRAINABLE, self._layers))

    def read(self) -> list[bool]:
        """For each weight, whether updates may change it now."""
        flags = list(map(_TRAINABLE, self._holders))
        if all(flags):
            return [True] * len(self._heard)
        return [all(flags[number] for number in numbers) for numbers in self._heard]


def network_of(
    weight: type[W],
    entries: Iterable[Found],
    subject: str,
    variables: Iterable[Any] | None = None,
    channel_axes: AxisOverrides | None = None,
    follows: Follows = None,
) -> Network[W]:
    """Lists what is recorded of found variables, each as a `weight`."""
    usable: dict[str, Found] = {}
    names: set[str] = set()
    skipped = []
    for entry in entries:
        name = free_name(entry.id, names)
        names.add(name)
        reason = weight.refusal(entry.variable)
        if reason is None:
            usable[name] = entry
        else:
            skipped.append((name, reason))
    named = names_in(usable)
    moved = follow_pairs(named, follows, named.following)
    axes = named.keyed(channel_axes, "channel_axis")
    return Network.of(
        [
            weight(name, entry, axis_of(name, entry, axes.get(name)), follows=name in moved)
            for name, entry in usable.items()
        ],
        variables,
        skipped=skipped,
        shown=subject,
        follows=moved,
    )


def names_in(found: Mapping[str, Found]) -> Names:
    """Looks up found variables by a user's names."""
    return Names({name: called(entry) for name, entry in found.items()})


def called(entry: Found) -> Called:
    """What a user may call a found variable."""
    return Called(_shape(entry.variable), entry.paths, _handles(entry))


def _handles(entry: Found) -> tuple[object, ...]:
    # In a layer that owns its masks, the variable is inside.
    inner = getattr(entry.variable, "variable", None)
    parts = getattr(inner, "parts", ())  # of a graph's
    variables = [entry.given, entry.variable, inner, held_by(entry.given), *parts]
    return (*entry.around, *(each for each in variables if each is not None))


def free_name(name: str, taken: Container[str]) -> str:
    """The name, numbered if it is taken."""
    number, free = 0, name
    while free in taken:
        number += 1
        free = f"{name}_{number}"
    return free


def _shape(variable: Variable) -> tuple[int, ...]:
    return tuple(int(size) for size in variable.shape)


def _dtype(variable: Variable) -> str:
    # TensorFlow has an object, Keras its name.
    return str(getattr(variable.dtype, "name", variable.dtype))


def axis_of(name: str, entry: Found, override: int | tuple[int, ...] | None = None) -> ChannelAxis:
    """How a found variable splits into channels, if the user doesn't say it."""
    shape = _shape(entry.variable)
    if override is not None:
        return explicit_axis(override, shape, name)
    return channel_axis(
        entry.types,
        entry.rule or entry.name,
        shape,
        parent_types=entry.parent_types,
        layer_name=entry.local_name,
        equation=getattr(entry.owner, "equation", None),
    )


def shown(model: Model) -> str:
    """The name of a model in errors."""
    name = getattr(model, "name", None)
    return f"model {name!r}" if isinstance(name, str) else f"a {type(model).__name__}"
