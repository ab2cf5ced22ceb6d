"""Runs that were recorded by summary calls into a user's own writer.

There is no description and no timeline: what is known comes from the tags and from the plugin
content of each. There is no account of what was offered either, only of what was found.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace

from tb_pastnet.core.account import Account
from tb_pastnet.errors import UnreadableRecord
from tb_pastnet.format.description import Layer, Series, Variable, decode_series
from tb_pastnet.reader.runs import SUMMARY, Axis, Place, Run
from tb_pastnet.reader.series import make_series
from tb_pastnet.reader.source import Message, Stamp

_TYPE = "tf.summary"
_ROLES = {
    "kernel": "kernel",
    "embeddings": "kernel",
    "bias": "bias",
    "beta": "bias",
    "gamma": "scale",
    "moving_mean": "statistic",
    "moving_variance": "statistic",
}


@dataclass(frozen=True)
class Described:
    """A run whose variables are known and whose time axis isn't yet.

    Attributes:
        run: without time axis and account.
        thinnest: the tag of the variable with the fewest channels: the cheapest to date it by.
    """

    run: Run
    thinnest: str


def version_of(tb_run: str, stamps: Mapping[str, Stamp]) -> Hashable:
    """Changes when anything of the run does."""
    return tb_run, tuple(sorted(stamps.items()))


def foreign(stamps: Mapping[str, Stamp]) -> int:
    """How many series under our name are not ours."""
    return len(stamps) - len(_series(stamps))


def describe(tb_run: str, stamps: Mapping[str, Stamp]) -> Described | None:
    """Makes a run of the tags of a user's own writer.

    Args:
        tb_run: TensorBoard's name of the run.
        stamps: its series under our name.

    Returns:
        The run, or None where none of the series is ours.
    """
    found = _series(stamps)
    if not found:
        return None
    variables = {tag: _variable(tag, one) for tag, one in found.items()}
    groups: dict[str, list[str]] = {}
    for tag, variable in variables.items():
        groups.setdefault(variable.layer, []).append(tag)
    run = Run(
        tb_run,
        SUMMARY,
        (tb_run,),
        (),
        tuple(_layer(id_, tags, variables) for id_, tags in groups.items()),
        variables,
        {tag: (Place(tb_run, tag, None),) for tag in found},
        Axis(),
        Account(),
        Counter(),
        version_of(tb_run, stamps),
    )
    return Described(run, min(found, key=lambda tag: found[tag].channels))


def date(
    described: Described,
    readings: Mapping[tuple[str, str], Sequence[Message]],
    withheld: Sequence[tuple[str, str]],
) -> Run:
    """Gives a run the time axis of one of its variables.

    Args:
        described: the run.
        readings: events of its thinnest series.
        withheld: series that TensorBoard could not hand out.
    """
    run, tag = described.run, described.thinnest
    series = make_series(run.places[tag], readings, run.variables[tag].channels, withheld=withheld)
    axis = Axis(series.steps, series.wall_times, series.learning_rates)
    return replace(run, axis=axis, account=series.account, notes=series.notes)


def _series(stamps: Mapping[str, Stamp]) -> dict[str, Series]:
    found = {}
    # Sorted: the two loaders list them in different orders.
    for tag, stamp in sorted(stamps.items()):
        try:
            found[tag] = decode_series(stamp.content)
        except UnreadableRecord:
            continue
    return found


def _variable(tag: str, series: Series) -> Variable:
    parent, _, name = tag.rpartition("/")
    elements = 1
    for size in series.shape:
        elements *= size
    return Variable(
        id=tag,
        layer=parent or tag,
        name=name,
        role=_ROLES.get(name, "kernel" if len(series.shape) > 1 else "other"),
        shape=series.shape,
        dtype="",
        axis=series.axis,
        verified=True,
        channels=series.channels,
        elements=elements // max(series.channels, 1),
    )


def _layer(id_: str, tags: Sequence[str], variables: Mapping[str, Variable]) -> Layer:
    group, _, name = id_.rpartition("/")
    kernels = [tag for tag in tags if variables[tag].role == "kernel"]
    return Layer(id_, group, name, _TYPE, tuple(tags), (kernels or list(tags))[0])
