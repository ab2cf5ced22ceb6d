"""Which variables of a model are recorded: their names, channels and trainable flags."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import replace
from operator import attrgetter
from typing import Any

from tb_pastnet.core.axes import ChannelAxis, channel_axis, explicit_axis
from tb_pastnet.core.names import Called, Names
from tb_pastnet.keras.model.walk import Found, find_variables, tf_variable
from tb_pastnet.keras.strategies import differs
from tb_pastnet.keras.types import Model, Variable
from tb_pastnet.record.weight import Array, Network, OwnMasks, Weight

AxisOverrides = Mapping[Any, int | tuple[int, ...]]

_TRAINABLE = attrgetter("trainable")


class TFWeight(Weight):
    """A weight that a variable of TensorFlow holds, or a `GraphWeight`."""

    def __init__(
        self, name: str, entry: Found, axis: ChannelAxis, *, follows: bool = False
    ) -> None:
        super().__init__(
            name,
            [int(size) for size in entry.variable.shape],
            entry.variable.dtype.name,
            axis,
            layer=entry.layer,
            own_name=entry.name,
            kind=entry.type,
            statistic=entry.statistic,
            follows=follows,
            aliases=entry.paths,
            handles=_handles(entry),
        )
        # What follows is held by no flag, as what no gradient trains.
        self.found = replace(entry, statistic=True) if follows else entry
        self.variable = entry.variable

    def read(self) -> Array:
        """See `Weight`. Of a layer that owns its masks, the effective value."""
        value: Array = self.variable.numpy()
        return value

    def trainable(self) -> bool:
        """See `Weight`."""
        return all(map(_TRAINABLE, self.found.flags))

    def masks(self) -> OwnMasks | None:
        """See `Weight`."""
        return self.found.masks


class TrainableFlags:
    """The `trainable` flags that concern some weights, each asked for once for all of them."""

    def __init__(self, entries: Sequence[Found]) -> None:
        unique = {id(holder): holder for entry in entries for holder in entry.flags}
        self._holders = list(unique.values())
        numbers = {key: number for number, key in enumerate(unique)}
        self._heard = [[numbers[id(holder)] for holder in entry.flags] for entry in entries]
        # A layer tells its variables.
        heard = (entry for entry in entries if entry.flags)
        layers = {id(layer): layer for entry in heard for layer in entry.around[-1:]}
        self._layers = list(layers.values())

    def quick_key(self) -> tuple[bool, ...]:
        """The flags of the layers that have weights, not of these: quick enough for each step."""
        return tuple(map(_TRAINABLE, self._layers))

    def read(self) -> list[bool]:
        """Of each weight, whether updates may change it now."""
        flags = list(map(_TRAINABLE, self._holders))
        if all(flags):
            return [True] * len(self._heard)
        return [all(flags[number] for number in numbers) for numbers in self._heard]


def network(
    model: Model,
    variables: Iterable[Any] | None = None,
    channel_axes: AxisOverrides | None = None,
) -> Network[TFWeight]:
    """Lists what is recorded of a model."""
    return network_of(find_variables(model), shown(model), variables, channel_axes)


def network_of(
    entries: Sequence[Found],
    subject: str,
    variables: Iterable[Any] | None = None,
    channel_axes: AxisOverrides | None = None,
    follows: Iterable[Any] = (),
) -> Network[TFWeight]:
    """Lists what is recorded of variables that were found."""
    usable: dict[str, Found] = {}
    names: set[str] = set()
    skipped = []
    for entry in entries:
        name = free_name(entry.id, names)
        names.add(name)
        reason = _unusable(entry.variable)
        if reason is None:
            usable[name] = entry
        else:
            skipped.append((name, reason))
    named = names_in(usable)
    moved = {*named.all(follows)}
    axes = {named.one(name): axis for name, axis in (channel_axes or {}).items()}
    return Network.of(
        [
            TFWeight(name, entry, _axis(name, entry, axes.get(name)), follows=name in moved)
            for name, entry in usable.items()
        ],
        variables,
        skipped=skipped,
        shown=subject,
    )


def names_in(found: Mapping[str, Found]) -> Names:
    """Looks up what a user calls variables that were found, by their names."""
    return Names({name: _called(entry) for name, entry in found.items()})


def _called(entry: Found) -> Called:
    shape = tuple(int(size) for size in entry.variable.shape)
    return Called(shape, entry.paths, _handles(entry))


def _handles(entry: Found) -> tuple[object, ...]:
    # Of a layer that owns its masks the variable lies inside.
    inner = getattr(entry.variable, "variable", None)
    variables = [entry.given, entry.variable, inner, tf_variable(entry.given)]
    return (*entry.around, *(each for each in variables if each is not None))


def free_name(name: str, taken: Container[str]) -> str:
    """The name, numbered where it is taken."""
    number, free = 0, name
    while free in taken:
        number += 1
        free = f"{name}_{number}"
    return free


def _unusable(variable: Variable) -> str | None:
    if not variable.dtype.is_floating:
        return f"its dtype {variable.dtype.name} isn't a floating one"
    if not variable.shape.is_fully_defined():
        return f"its shape {variable.shape} isn't fixed"
    if variable.shape.num_elements() == 0:
        return "it has no elements"
    if differs(variable):
        return "it has another value in each replica"
    return None


def _axis(name: str, entry: Found, override: int | tuple[int, ...] | None) -> ChannelAxis:
    shape = tuple(int(size) for size in entry.variable.shape)
    if override is not None:
        return explicit_axis(override, shape, name)
    return channel_axis(
        entry.types,
        entry.rule or entry.name,
        shape,
        parent_types=entry.parent_types,
        layer_name=entry.local_name,
        equation=entry.equation,
    )


def shown(model: Model) -> str:
    """What errors call a model."""
    name = getattr(model, "name", None)
    return f"model {name!r}" if isinstance(name, str) else f"a {type(model).__name__}"
