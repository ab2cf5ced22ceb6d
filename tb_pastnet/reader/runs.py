"""Runs as the user knows them: the writers of one run joined, its network, its time axis."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from tb_pastnet.core.account import Account, settle
from tb_pastnet.core.lineage import supersede
from tb_pastnet.core.names import TAG_FUNCTION, channels_tag
from tb_pastnet.format.description import Description, Layer, Variable
from tb_pastnet.format.overhead import Overhead
from tb_pastnet.reader.lineages import Lineage
from tb_pastnet.reader.notes import Notes

Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

SINK, SUMMARY = "sink", "summary"


@dataclass(frozen=True)
class Place:
    """Where TensorBoard keeps a part of a variable's records.

    Attributes:
        tb_run: TensorBoard's run.
        tag: its tag there.
        lineage: the lineage, None in a user's own writer.
    """

    tb_run: str
    tag: str
    lineage: Lineage | None


@dataclass(frozen=True, eq=False)
class Axis:
    """The time axis of a run.

    Attributes:
        steps: int64 (records,), increasing.
        wall_times: float64 (records,), seconds since 1970, NaN where unknown.
        learning_rates: float64 (records,), NaN where unknown.
    """

    steps: Integers = field(default_factory=lambda: np.zeros(0, np.int64))
    wall_times: Floats = field(default_factory=lambda: np.zeros(0))
    learning_rates: Floats = field(default_factory=lambda: np.zeros(0))


@dataclass(frozen=True, eq=False)
class Run:
    """One run.

    Attributes:
        name: as the user knows it.
        source: `SINK`, or `SUMMARY` for a user's own writer.
        tb_runs: TensorBoard's runs that it is made of.
        lineages: its writers in order; none in a user's own writer.
        layers: in forward order.
        variables: by id.
        places: where the records of each variable are, by id.
        axis: its time axis.
        account: of its time steps.
        notes: what could not be read.
        version: changes when anything of the run does.
    """

    name: str
    source: str
    tb_runs: tuple[str, ...]
    lineages: tuple[Lineage, ...]
    layers: tuple[Layer, ...]
    variables: Mapping[str, Variable]
    places: Mapping[str, tuple[Place, ...]]
    axis: Axis
    account: Account
    notes: Notes
    version: Hashable

    @property
    def description(self) -> Description | None:
        """The latest readable description."""
        known = [lineage.description for lineage in self.lineages if lineage.description]
        return known[-1] if known else None

    @property
    def past(self) -> str:
        """What "past" means in this run, "" where unknown."""
        return self.description.past if self.description else ""

    @property
    def overhead(self) -> Overhead | None:
        """What all of its writers cost that tell it; None where none does."""
        told = [one.overhead for one in self.lineages if one.overhead is not None]
        return sum(told, Overhead()) if told else None

    @property
    def probed(self) -> bool:
        """Whether any of its writers recorded a probe."""
        return any(TAG_FUNCTION in one.stamps for one in self.lineages)


def join(name: str, lineages: Sequence[Lineage]) -> Run:
    """Joins the lineages of one run.

    Args:
        name: the run.
        lineages: at least one, in any order.
    """
    ordered = tuple(sorted(lineages, key=lambda one: (one.name.ordinal, one.name.lineage)))
    layers, variables = _network([one.description for one in ordered if one.description])
    axis, account = _axis(ordered)
    places = {id_: _places(id_, ordered) for id_ in variables}
    return Run(
        name,
        SINK,
        tuple(one.tb_run for one in ordered),
        ordered,
        layers,
        variables,
        places,
        axis,
        account,
        sum((one.notes for one in ordered), Counter()),
        tuple((one.tb_run, tuple(sorted(one.stamps.items()))) for one in ordered),
    )


def _places(variable: str, lineages: Sequence[Lineage]) -> tuple[Place, ...]:
    """Where its records are, or should be: a series that is gone is missed, not forgotten."""
    tag = channels_tag(variable)
    return tuple(
        Place(one.tb_run, tag, one)
        for one in lineages
        if tag in one.stamps or variable in one.described
    )


def _network(found: Sequence[Description]) -> tuple[tuple[Layer, ...], dict[str, Variable]]:
    """The latest network, then what only earlier descriptions know."""
    layers: dict[str, Layer] = {}
    variables: dict[str, Variable] = {}
    for description in reversed(found):
        for variable in description.variables:
            variables.setdefault(variable.id, variable)
        for layer in description.layers:
            layers.setdefault(layer.id, layer)
    return tuple(filter(None, (_usable(one, variables) for one in layers.values()))), variables


def _usable(layer: Layer, variables: Mapping[str, Variable]) -> Layer | None:
    known = tuple(dict.fromkeys(one for one in layer.variables if one in variables))
    if not known:
        return None
    main = layer.main if layer.main in known else known[0]
    return Layer(layer.id, layer.group, layer.name, layer.type, known, main)


def _axis(lineages: Sequence[Lineage]) -> tuple[Axis, Account]:
    """Joins the timelines and settles the account of the run's time steps."""
    stand = supersede(
        [(one.name.ordinal, one.name.lineage, one.timeline.steps) for one in lineages],
        [one.start for one in lineages],
    )
    account = Account()
    for one, keep in zip(lineages, stand, strict=True):
        last = int(one.timeline.sequence[-1]) + 1 if len(keep) else 0
        account += settle(
            offered=max(one.timeline.offered, last),
            shown=int(keep.sum()),
            superseded=int((~keep).sum()),
            thinned=one.timeline.thinned,
            dropped=one.timeline.dropped,
            damaged=one.damaged,
        )
    parts = [(one.timeline, keep) for one, keep in zip(lineages, stand, strict=True)]
    if not parts:
        return Axis(), account
    steps = np.concatenate([line.steps[keep] for line, keep in parts])
    order = np.argsort(steps, kind="stable")
    return (
        Axis(
            steps[order],
            np.concatenate([line.wall_times[keep] for line, keep in parts])[order],
            np.concatenate([line.learning_rates[keep] for line, keep in parts])[order],
        ),
        account,
    )
