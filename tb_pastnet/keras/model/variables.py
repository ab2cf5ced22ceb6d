"""Which variables of a model are recorded, under which names and with which channels."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any, NamedTuple

from tb_pastnet.core.axes import (
    ChannelAxis,
    channel_axis,
    explicit_axis,
    main_variable,
    variable_role,
)
from tb_pastnet.core.names import resolve
from tb_pastnet.errors import InvalidArgument
from tb_pastnet.format import description, limits
from tb_pastnet.keras.model.walk import Found, find_variables, tf_variable
from tb_pastnet.keras.past.replicas import differs

AxisOverrides = Mapping[str, int | tuple[int, ...]]


class Recorded(NamedTuple):
    """A variable that is recorded.

    Attributes:
        found: where it is in the model.
        axis: how it splits into channels.
        text: what the log says of it.
    """

    found: Found
    axis: ChannelAxis
    text: description.Variable

    @property
    def name(self) -> str:
        """Its id."""
        return self.text.id

    @property
    def role(self) -> str:
        """As in the log."""
        return self.text.role

    @property
    def shape(self) -> tuple[int, ...]:
        """Of the variable."""
        return self.text.shape

    @property
    def statistic(self) -> bool:
        """Whether it isn't trained by gradients."""
        return self.found.statistic

    @property
    def variable(self) -> Any:
        """The framework's own."""
        return self.found.variable

    def effective(self) -> Any:
        """What the network computes with."""
        return self.found.variable.numpy()

    def masks(self) -> Any:
        """Its masks, where its layer owns them."""
        return self.found.variable if hasattr(self.found.variable, "stored") else None


class Network(NamedTuple):
    """What is recorded of a model.

    Attributes:
        variables: in forward order.
        layers: the layers that have any of them.
        skipped: name and reason of each variable that can't be recorded.
        everything: all variables that could be, also those that weren't chosen.
    """

    variables: tuple[Recorded, ...]
    layers: tuple[description.Layer, ...]
    skipped: tuple[tuple[str, str], ...]
    everything: tuple[Recorded, ...]


def network(
    model: Any,
    variables: Iterable[Any] | None = None,
    channel_axes: AxisOverrides | None = None,
) -> Network:
    """Lists what is recorded of a model.

    Args:
        model: a built keras.Model or layer, a tf.Module, or a mapping of names to variables.
        variables: those to record: names (a whole path, the end of one, or a pattern such as
            `"*/kernel"`) or the variables themselves. None: all.
        channel_axes: corrections by name: an axis, or several to be numbered together.

    Returns:
        The variables with their names and channels, and their layers.

    Raises:
        InvalidArgument: the model isn't built, nothing is left to record, or an axis is out of
            range.
        UnknownName: a name fits no variable, or several.
        UnsupportedBackend: Keras doesn't run on TensorFlow.

    Example:
        >>> import tensorflow as tf
        >>> net = network({"dense/kernel": tf.Variable(tf.ones((2, 3)))})
        >>> [(r.text.id, r.text.channels) for r in net.variables]
        [('dense/kernel', 3)]
    """
    return network_of(find_variables(model), _shown(model), variables, channel_axes)


def network_of(
    found: Sequence[Found],
    shown: str,
    variables: Iterable[Any] | None = None,
    channel_axes: AxisOverrides | None = None,
) -> Network:
    """Lists what is recorded of variables that were found.

    Args:
        found: where they are, in forward order.
        shown: what they are of, for errors.
        variables: as of `network`.
        channel_axes: as of `network`.

    Raises:
        InvalidArgument: nothing is left to record, or an axis is out of range.
        UnknownName: a name fits no variable, or several.
    """
    usable: dict[str, Found] = {}
    skipped = []
    for name, entry in _named(found):
        reason = _unusable(entry.variable)
        if reason is None:
            usable[name] = entry
        else:
            skipped.append((name, reason))
    chosen = set(usable) if variables is None else choose(variables, usable)
    axes = _overrides(channel_axes or {}, usable)
    everything = tuple(_recorded(name, entry, axes.get(name)) for name, entry in usable.items())
    kept = tuple(record for record in everything if record.text.id in chosen)
    if not kept:
        raise InvalidArgument(
            f"Could not record {shown}: expected at least one variable of floating dtype, "
            f"got none of {len(usable) + len(skipped)}. Build the model, or choose others with "
            f"variables=."
        )
    return Network(kept, _layers(kept), tuple(skipped), everything)


def _named(found: Sequence[Found]) -> Iterable[tuple[str, Found]]:
    names: set[str] = set()
    for entry in found:
        name, number = entry.id, 1
        while name in names:
            name, number = f"{entry.id}_{number}", number + 1
        names.add(name)
        yield name, entry


def _unusable(variable: Any) -> str | None:
    if not variable.dtype.is_floating:
        return f"its dtype {variable.dtype.name} isn't a floating one"
    if not variable.shape.is_fully_defined():
        return f"its shape {variable.shape} isn't fixed"
    if variable.shape.num_elements() == 0:
        return "it has no elements"
    if differs(variable):
        return "it has another value in each replica"
    return None


def choose(wanted: Iterable[Any], usable: Mapping[str, Found]) -> set[str]:
    """The names of chosen variables.

    Args:
        wanted: names, ends of names, patterns such as `"*/kernel"`, or variables.
        usable: what there is to choose from, by name.

    Raises:
        InvalidArgument: a variable is none of these.
        UnknownName: a name fits none, or several.
    """
    if isinstance(wanted, str):
        wanted = (wanted,)
    # Of a layer that owns its masks the variable lies inside.
    by_object = {
        id(variable): name
        for name, found in usable.items()
        for variable in (found.variable, getattr(found.variable, "variable", None))
        if variable is not None
    }
    chosen: set[str] = set()
    for want in wanted:
        if not isinstance(want, str):
            name = by_object.get(id(tf_variable(want))) or by_object.get(id(want))
            if name is None:
                raise InvalidArgument(
                    f"Could not choose {getattr(want, 'name', want)!r:.80}: expected a variable "
                    f"of the model, or a name, got another one. Correct variables=."
                )
            chosen.add(name)
        elif any(mark in want for mark in "*?["):
            chosen.update(name for name in usable if fnmatchcase(name, want))
        else:
            chosen.add(resolve(want, usable))
    return chosen


def _overrides(
    axes: AxisOverrides, usable: Mapping[str, Found]
) -> dict[str, int | tuple[int, ...]]:
    return {resolve(name, usable): axis for name, axis in axes.items()}


def _recorded(name: str, found: Found, override: int | tuple[int, ...] | None) -> Recorded:
    shape = tuple(int(n) for n in found.variable.shape)
    if override is not None:
        axis = explicit_axis(override, shape, name)
    else:
        axis = channel_axis(
            found.types,
            found.rule or found.name,
            shape,
            parent_types=found.parent_types,
            layer_name=found.local_name,
            equation=found.equation,
        )
    if axis.channels > limits.MAX_CHANNELS:
        raise InvalidArgument(
            f"Could not record {name!r}: expected at most {limits.MAX_CHANNELS} channels, got "
            f"{axis.channels}. Correct channel_axis=, or leave it out with variables=."
        )
    text = description.Variable(
        id=name,
        layer=found.layer,
        name=found.name,
        role=variable_role(found.name, shape, statistic=found.statistic),
        shape=shape,
        dtype=found.variable.dtype.name,
        axis=axis.text,
        verified=axis.verified,
        channels=axis.channels,
        elements=axis.elements,
    )
    return Recorded(found, axis, text)


def _layers(records: Sequence[Recorded]) -> tuple[description.Layer, ...]:
    rows: dict[str, list[Recorded]] = {}
    for record in records:
        rows.setdefault(record.text.layer, []).append(record)
    layers = []
    for path, row in rows.items():
        group, _, name = path.rpartition("/")
        main = row[main_variable([(r.text.name, r.text.shape) for r in row])]
        layers.append(
            description.Layer(
                id=path,
                group=group,
                name=name,
                type=row[0].found.type,
                variables=tuple(r.text.id for r in row),
                main=main.text.id,
            )
        )
    return tuple(layers)


def _shown(model: Any) -> str:
    name = getattr(model, "name", None)
    return f"model {name!r}" if isinstance(name, str) else f"a {type(model).__name__}"
