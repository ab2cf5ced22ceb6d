"""Runs as the user knows them: the writers of one run joined, its network, its time axis."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import accumulate, compress, islice
from typing import Any

import numpy as np
import numpy.typing as npt

from tb_pastnet.core.account import NO_OPTIMIZER_STEP, Account, settle
from tb_pastnet.core.lineage import supersede, writers_of
from tb_pastnet.format.budget import MAX_CHANNELS, MAX_NAMES
from tb_pastnet.format.description import Description, LayerEntry, VariableEntry
from tb_pastnet.format.overhead import Overhead
from tb_pastnet.format.tags import TAG_FUNCTION
from tb_pastnet.reader.arrays import NO_FLOATS, NO_INTEGERS, Floats, Integers
from tb_pastnet.reader.bundles import Bundle, bundles_of
from tb_pastnet.reader.lineage_heads import LineageHead
from tb_pastnet.reader.notes import AT_ONCE, IN_PART, Notes

SINK, SUMMARY = "sink", "summary"
"""The source of a run: our own writer, or a user's own (`tf.summary`)."""


@dataclass(frozen=True, eq=False)
class TimeAxis:
    """The time axis of a run."""

    steps: Integers  # (records,), increasing
    wall_times: Floats  # (records,), seconds since 1970, NaN where unknown
    learning_rates: Floats  # (records,), the highest if there are several, NaN where unknown
    # (series, records), those that all weights share, then those of each group by itself
    separate_rates: Floats

    @cached_property
    def several_rates(self) -> bool:
        """Whether groups of weights have different learning rates at any record."""
        rates = self.separate_rates
        return bool((np.fmin.reduce(rates, axis=0) < np.fmax.reduce(rates, axis=0)).any())

    def facts(self) -> dict[str, bool]:
        """What the header of an answer says of its learning rates: nothing if they are one."""
        return {"several_rates": True} if self.several_rates else {}


NO_AXIS = TimeAxis(NO_INTEGERS, NO_FLOATS, NO_FLOATS, NO_FLOATS[None])


@dataclass(frozen=True, eq=False)
class CatalogRun:
    """One run as the catalog has it."""

    name: str  # as the user knows it
    source: str  # `SINK`, or `SUMMARY` for a user's own writer
    tb_runs: tuple[str, ...]  # TensorBoard's runs that it is made of
    lineages: tuple[LineageHead, ...]  # its writers in order; none in a user's own writer
    layers: tuple[LayerEntry, ...]  # in forward order
    variables: Mapping[str, VariableEntry]  # by id
    bundles: Mapping[str, Bundle]  # of each variable, by id: the series of its records
    axis: TimeAxis
    account: Account  # of its due records
    notes: Notes  # what could not be read
    version: Hashable  # changes when anything of the run does
    shared: bool = False  # others recorded into its directory at the same time
    # as in the latest readable description
    past: str = ""
    every: int | None = None
    origin: str = ""
    skipped: tuple[tuple[str, str], ...] = ()
    config: Mapping[str, Any] = field(default_factory=dict)
    problem: str = ""  # why it could not be read; then it is empty

    # A page of a large network asks for each of its layers by itself: no list is searched then.

    @cached_property
    def layers_by_id(self) -> Mapping[str, LayerEntry]:
        """Its layers by their ids."""
        return {layer.id: layer for layer in self.layers}

    @cached_property
    def names(self) -> frozenset[str]:
        """The ids of its variables."""
        return frozenset(self.variables)

    @cached_property
    def channels(self) -> int:
        """Those of all variables."""
        return sum(variable.channels for variable in self.variables.values())

    def emptied(self, problem: str) -> CatalogRun:
        """The same run without data: it could not be read."""
        version = self.version, problem
        return unread_run(self.name, self.source, self.tb_runs, version, problem)

    @property
    def closed(self) -> bool:
        """Whether training ended normally."""
        return bool(self.lineages) and self.lineages[-1].timeline.closed

    @property
    def stepless_calls(self) -> int:
        """How often its newest writer called `record`, if no optimizer ever made a step."""
        return self.lineages[-1].notes[NO_OPTIMIZER_STEP] if self.lineages else 0

    @property
    def overhead(self) -> Overhead | None:
        """The sum of its writers' recording overheads; None if none recorded it."""
        costs = [lineage.overhead for lineage in self.lineages if lineage.overhead is not None]
        return sum(costs, Overhead()) if costs else None

    @property
    def probed(self) -> bool:
        """Whether any of its writers recorded a probe."""
        return any(TAG_FUNCTION in lineage.versions for lineage in self.lineages)

    @property
    def can_probe(self) -> bool:
        """Whether its newest writer takes `probe=`: only Keras on TensorFlow does."""
        described = [head.description for head in self.lineages if head.description]
        packages = described[-1].versions if described else {}
        return "keras" in packages and packages.keys().isdisjoint(("torch", "jax"))


def unread_run(
    name: str, source: str, tb_runs: tuple[str, ...], version: Hashable, problem: str
) -> CatalogRun:
    """A run that could not be read: a name and a note."""
    return CatalogRun(
        name, source, tb_runs, (), (), {}, {}, NO_AXIS, Account(), Counter({problem: 1}), version,
        problem=problem,
    )  # fmt: skip


def by_writer(lineages: Iterable[LineageHead]) -> list[list[LineageHead]]:
    """The lineages in one directory, in order, by process, if several recorded at the same time."""
    ordered = sorted(lineages, key=lambda head: (head.name.ordinal, head.name.lineage))
    writers: dict[int, list[LineageHead]] = {}
    for head, writer in zip(ordered, writers_of([head.recorded for head in ordered]), strict=True):
        writers.setdefault(writer, []).append(head)
    return list(writers.values())


def join_lineages(name: str, ordered: Sequence[LineageHead], *, shared: bool = False) -> CatalogRun:
    """Joins the lineages of one writer, in order, at least one.

    `shared` says that others recorded into its directory at the same time.
    """
    descriptions = [head.description for head in ordered if head.description]
    layers, variables, beyond = _network(descriptions)
    axis, account = _axis(ordered)
    run = CatalogRun(
        name,
        SINK,
        tuple(head.tb_run for head in ordered),
        tuple(ordered),
        layers,
        variables,
        bundles_of(variables, ordered),
        axis,
        account,
        sum(
            (head.notes for head in ordered),
            +Counter({AT_ONCE: int(shared), IN_PART: beyond}),
        ),
        (shared, *((head.tb_run, tuple(sorted(head.versions.items()))) for head in ordered)),
        shared=shared,
    )
    if not descriptions:
        return run
    latest = descriptions[-1]
    fields = "past", "every", "origin", "skipped", "config"
    return replace(run, **{name: getattr(latest, name) for name in fields})


def _network(
    descriptions: Sequence[Description],
) -> tuple[tuple[LayerEntry, ...], dict[str, VariableEntry], int]:
    """The latest network, then layers that only earlier descriptions have.

    Variables beyond the budget of channels are left out, and counted.
    """
    layers: dict[str, LayerEntry] = {}
    variables: dict[str, VariableEntry] = {}
    for description in reversed(descriptions):
        for variable in description.variables:
            variables.setdefault(variable.id, variable)
        for layer in description.layers:
            layers.setdefault(layer.id, layer)
    within = within_channels(variables)
    usable = (_usable(layer, within) for layer in layers.values())
    return tuple(filter(None, usable)), within, len(variables) - len(within)


def within_channels(variables: Mapping[str, VariableEntry]) -> dict[str, VariableEntry]:
    """The first variables of a run, as many as the budget of channels and names goes."""
    channels = accumulate(variable.channels for variable in variables.values())
    fits = (each <= MAX_CHANNELS for each in channels)
    return dict(islice(compress(variables.items(), fits), MAX_NAMES))


def _usable(layer: LayerEntry, variables: Mapping[str, VariableEntry]) -> LayerEntry | None:
    described = tuple(dict.fromkeys(name for name in layer.variables if name in variables))
    if not described:
        return None
    main = layer.main if layer.main in described else described[0]
    return LayerEntry(layer.id, layer.group, layer.name, layer.type, described, main)


def _axis(lineages: Sequence[LineageHead]) -> tuple[TimeAxis, Account]:
    """Joins the timelines and settles the account of the run's time steps."""
    stand = supersede([head.timeline.steps for head in lineages], [head.start for head in lineages])
    account = Account()
    for head, keep in zip(lineages, stand, strict=True):
        last = int(head.timeline.sequence[-1]) + 1 if len(keep) else 0
        account += settle(
            offered=max(head.timeline.offered, last),
            shown=int(keep.sum()),
            superseded=int((~keep).sum()),
            thinned=head.timeline.thinned,
            dropped=head.timeline.dropped,
            damaged=head.damaged,
        )

    def standing(name: str) -> npt.NDArray[Any]:
        columns = [getattr(head.timeline, name) for head in lineages]
        return np.concatenate([own[keep] for own, keep in zip(columns, stand, strict=True)])

    order = np.argsort(standing("steps"), kind="stable")
    steps, times, shared = (
        standing(name)[order] for name in ("steps", "wall_times", "learning_rates")
    )
    names = dict.fromkeys(name for head in lineages for name in head.rates_by_group)
    groups = [
        np.concatenate([
            head.rates_by_group.get(name, np.full(len(keep), np.nan))[keep]
            for head, keep in zip(lineages, stand, strict=True)
        ])[order]
        for name in names
    ]  # fmt: skip
    separate: Floats = np.stack([shared, *groups])
    # A place in the network has one rate; for all of it, the highest one says most.
    highest = np.fmax.reduce(separate, axis=0)
    rates = np.where(np.isnan(shared), highest, shared)
    return TimeAxis(steps, times, rates, separate), account


def variable_facts(variable: VariableEntry) -> dict[str, Any]:
    """The facts about a variable in answers."""
    return {
        "role": variable.role,
        "shape": variable.shape,
        "axis": variable.axis,
        "verified": variable.verified,
        "channels": variable.channels,
        "follows": variable.follows,
    }
