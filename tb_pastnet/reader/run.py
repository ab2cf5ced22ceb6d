"""One run: its network, its time axis, what was recorded and what became of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from tb_pastnet.core.account import Account
from tb_pastnet.core.findings import Finding
from tb_pastnet.core.states import THRESHOLD
from tb_pastnet.errors import InvalidArgument
from tb_pastnet.format.overhead import Overhead
from tb_pastnet.reader import lineages
from tb_pastnet.reader.figures import figures_of
from tb_pastnet.reader.function import Function
from tb_pastnet.reader.named import Named
from tb_pastnet.reader.network import Layer, Variable, layers_of, variables_of
from tb_pastnet.reader.overview import Overview
from tb_pastnet.reader.run_findings import findings_of
from tb_pastnet.reader.run_reader import CALLER, Reader
from tb_pastnet.reader.violation import Violation

if TYPE_CHECKING:
    from pandas import DataFrame

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Lineage:
    """One unbroken sequence of steps by one writer: a restart begins another.

    Attributes:
        id: eight hexadecimal digits, random.
        ordinal: its place among the lineages of the run, from 1.
        first_step: the step of its first record, None where there is none.
        last_step: of its last one.
        closed: whether training ended there in order.
    """

    id: str
    ordinal: int
    first_step: int | None
    last_step: int | None
    closed: bool


class Run:
    """One run. What is small is there at once, the records are read when they are asked for.

    Args:
        reader: of the run.

    Attributes:
        name: its directory below the log directory, `.` for that itself.
        source: "sink", or "summary" for a user's own writer: then nothing is known of what was
            offered, of the origin, and of single weights in masks.
        past: what "past" means: "previous", "record", "epoch", "initial", a number of steps, or ""
            where that isn't known.
        every: records were due each so many steps; None where that isn't known.
        origin: equal in runs that started from the same weights; "" where that isn't known.
        closed: whether training ended in order.
        lineages: its writers, in order; a later one supersedes from its first step on.
        skipped: variables that were not recorded, and why.
        layers: in forward order, by id. Any end of an id that fits only one finds it.
        variables: all of the network, by id, likewise.
        account: what became of its time steps: offered is the sum of the other numbers.
        overhead: what recording cost its training, all lineages together; None where the log
            doesn't tell, as one of summary calls. See `docs/overhead.md`.
    """

    def __init__(self, reader: Reader) -> None:
        run = reader.run
        described = run.description
        self._reader = reader
        self.name = run.name
        self.source = run.source
        self.past = run.past
        self.every: int | None = described.every if described else None
        self.origin = described.origin if described else ""
        self.closed = bool(run.lineages) and run.lineages[-1].timeline.closed
        self.lineages: tuple[Lineage, ...] = tuple(map(_lineage, run.lineages))
        self.skipped: Mapping[str, str] = dict(described.skipped if described else ())
        self.account: Account = run.account
        self.overhead: Overhead | None = run.overhead

    @cached_property
    def layers(self) -> Named[Layer]:
        """The layers in forward order, by id; any end of an id that fits only one finds it."""
        return layers_of(self._reader)

    @cached_property
    def variables(self) -> Named[Variable]:
        """All variables that were recorded, by id, likewise."""
        return variables_of(self._reader, tuple(self._reader.run.variables))

    @property
    def steps(self) -> Integers:
        """int64 (records,), increasing: the step of each record."""
        return self._reader.run.axis.steps.copy()

    @property
    def wall_times(self) -> Floats:
        """float64 (records,), seconds since 1970, NaN where that isn't known."""
        return self._reader.run.axis.wall_times.copy()

    @property
    def learning_rates(self) -> Floats:
        """float64 (records,), of the optimizer, NaN where that isn't known."""
        return self._reader.run.axis.learning_rates.copy()

    @property
    def notes(self) -> Mapping[str, int]:
        """What the writer noted and what can't be read, how often; the most frequent first."""
        return dict((self._reader.run.notes + self._reader.held.notes).most_common())

    @property
    def violations(self) -> tuple[Violation, ...]:
        """Held weights that moved, by first step, then in the order of layers and channels."""
        return self._reader.violations

    @property
    def sparsity(self) -> Floats:
        """float64 (records,), the share of prunable weights that kept masks hold at zero.

        NaN where that isn't known, and where no weight can be pruned. Reads all layers.
        """
        made = self.overview()
        # Where a timeline is lost the records know more steps.
        return made.sparsity[np.isin(made.steps, self.steps)]

    @cached_property
    def function(self) -> Function:
        """How far the outputs moved on the probe; without records where there was none."""
        return Function(self._reader.store.function(CALLER, self._reader.run))

    def overview(self, threshold: float = THRESHOLD, latest: int | None = None) -> Overview:
        """How many channels of each layer are in which state, record by record. Reads all layers.

        Args:
            threshold: the relative delta under which a channel is quiet. After five quiet records
                it is settled; with 0 none ever is.
            latest: how many of the last records are asked for, which takes less time; None: all.

        Raises:
            InvalidArgument: none are asked for.
        """
        if latest is not None and latest < 1:
            raise InvalidArgument(
                f"Could not make an overview of {self.name!r}: expected at least 1 as latest, got "
                f"{latest}. Leave it out for all records."
            )
        figures = figures_of(self._reader.store, CALLER, self._reader.run, threshold)
        return Overview(figures.among(slice(-latest if latest else None, None)))

    def findings(self, threshold: float = THRESHOLD) -> tuple[Finding, ...]:
        """What there is to know of the run, what matters most first. Reads all layers.

        Violations, NaN, weights that stand still though meant to train, lost records; layers that
        are frozen, pruned or settled, and since when. `Log.findings` compares runs, too.

        Args:
            threshold: as for `overview`.
        """
        return tuple(findings_of(self._reader.store, CALLER, [self._reader.run], threshold))

    def to_dataframe(self, threshold: float = THRESHOLD) -> DataFrame:
        """The overview, a row for each record and layer. See `Overview.to_dataframe`.

        Args:
            threshold: as for `overview`.

        Raises:
            ImportError: pandas isn't installed.
        """
        return self.overview(threshold).to_dataframe()

    def __repr__(self) -> str:
        steps = self._reader.run.axis.steps
        span = f", steps {steps[0]:,} to {steps[-1]:,}" if len(steps) else ""
        layers = len(self._reader.run.layers)
        return f"Run({self.name!r}, {len(steps):,} records{span}, {layers:,} layers)"


def _lineage(lineage: lineages.Lineage) -> Lineage:
    steps = lineage.timeline.steps
    return Lineage(
        f"{lineage.name.lineage:08x}",
        lineage.name.ordinal,
        int(steps[0]) if len(steps) else None,
        int(steps[-1]) if len(steps) else None,
        lineage.timeline.closed,
    )
