"""Runs that were recorded by summary calls into a user's own writer.

There is no description and no timeline: all facts come from the tags and their plugin content. Lost
records can't be counted.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from tb_pastnet.core.account import Account
from tb_pastnet.errors import UnreadableRecord
from tb_pastnet.format.description import LayerEntry, Series, VariableEntry, decode_series
from tb_pastnet.reader.bundles import Bundle, SeriesPart
from tb_pastnet.reader.notes import IN_PART
from tb_pastnet.reader.runs import (
    NO_AXIS,
    SUMMARY,
    CatalogRun,
    TimeAxis,
    within_channels,
)
from tb_pastnet.reader.series import make_series
from tb_pastnet.reader.series_source import Reading, SeriesVersion

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


def foreign(versions: Mapping[str, SeriesVersion]) -> int:
    """How many series under our name aren't ours."""
    return len(versions) - len(_series(versions))


def describe(tb_run: str, versions: Mapping[str, SeriesVersion]) -> CatalogRun | None:
    """Makes a run from the tags of a user's own writer, without time axis and account.

    None if none of the series is ours.
    """
    series = _series(versions)
    if not series:
        return None
    described = {tag: _variable(tag, each) for tag, each in series.items()}
    variables = within_channels(described)
    groups: dict[str, list[str]] = {}
    for tag, variable in variables.items():
        groups.setdefault(variable.layer, []).append(tag)
    return CatalogRun(
        tb_run,
        SUMMARY,
        (tb_run,),
        (),
        tuple(_layer(id_, tags, variables) for id_, tags in groups.items()),
        variables,
        {tag: _bundle(tb_run, variable) for tag, variable in variables.items()},
        NO_AXIS,
        Account(),
        +Counter({IN_PART: len(described) - len(variables)}),
        (tb_run, tuple(sorted(versions.items()))),
    )


def thinnest(run: CatalogRun) -> str:
    """The variable with the fewest channels: the cheapest one to read for a run's time axis."""
    return min(run.variables, key=lambda tag: run.variables[tag].channels)


def date(run: CatalogRun, reading: Reading) -> CatalogRun:
    """Gives a run the time axis of its thinnest variable."""
    variable = run.variables[thinnest(run)]
    series = make_series(run.bundles[variable.id], reading[0], withheld=reading[1])
    axis = TimeAxis(
        series.steps, series.wall_times, series.learning_rates, series.learning_rates[None]
    )
    # Not its notes: they are counted where the variable is read.
    return replace(run, axis=axis, account=series.account)


def _series(versions: Mapping[str, SeriesVersion]) -> dict[str, Series]:
    described = {}
    # Sorted: the two loaders list them in different orders.
    for tag, version in sorted(versions.items()):
        try:
            described[tag] = decode_series(version.content)
        except UnreadableRecord:
            continue
    return described


def _bundle(tb_run: str, variable: VariableEntry) -> Bundle:
    part = SeriesPart(tb_run, variable.id, None, variable.channels, columns=None)
    return Bundle((variable.id,), (variable.channels,), (part,), variable.channels)


def _variable(tag: str, series: Series) -> VariableEntry:
    parent, _, name = tag.rpartition("/")
    return VariableEntry(
        id=tag,
        layer=parent or tag,
        name=name,
        role=_ROLES.get(name, "kernel" if len(series.shape) > 1 else "other"),
        shape=series.shape,
        dtype="",
        axis=series.axis,
        verified=True,
        channels=series.channels,
        elements=math.prod(series.shape) // max(series.channels, 1),
    )


def _layer(id_: str, tags: Sequence[str], variables: Mapping[str, VariableEntry]) -> LayerEntry:
    group, _, name = id_.rpartition("/")
    kernels = [tag for tag in tags if variables[tag].role == "kernel"]
    return LayerEntry(id_, group, name, _TYPE, tuple(tags), (kernels or list(tags))[0])
