"""Logs read back: runs, layers and their records as arrays and DataFrames.

```
log = pastnet.read("runs")                  Log: runs by name
run = log["a"]                              Run: steps, layers, overview(), violations, account, …
layer = run["conv1"]                        Layer: norm, relative_delta, states(), masks(), …
bias = layer.variables["bias"]              Variable: the same of any variable
```
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from tb_pastnet.core.account import Account
from tb_pastnet.core.arguments import answered
from tb_pastnet.core.channel_states import THRESHOLD
from tb_pastnet.core.checks import check_threshold, is_whole
from tb_pastnet.core.counted import counted
from tb_pastnet.core.expected import Expectation, Outcome
from tb_pastnet.core.finding_kinds import Finding
from tb_pastnet.core.verified import Verified
from tb_pastnet.errors import InvalidArgument
from tb_pastnet.format.overhead import Overhead
from tb_pastnet.reader.arrays import Floats, Integers
from tb_pastnet.reader.figures import figures_of
from tb_pastnet.reader.file_source import FileSource
from tb_pastnet.reader.function_series import Function
from tb_pastnet.reader.isolation import alone, each_alone, reading
from tb_pastnet.reader.lineage_heads import Lineage
from tb_pastnet.reader.mask_overlap import Overlap, overlap_of
from tb_pastnet.reader.named import Named
from tb_pastnet.reader.notebook_html import log_html, run_html
from tb_pastnet.reader.overview import Overview
from tb_pastnet.reader.records import Layer, Variable, variables_of
from tb_pastnet.reader.run_findings import findings_of
from tb_pastnet.reader.series_source import LOCAL
from tb_pastnet.reader.sketch_series import Travel, travel
from tb_pastnet.reader.store import RunReader, Store
from tb_pastnet.reader.tables import stacked, to_dataframe
from tb_pastnet.reader.threads import Progress, unseen
from tb_pastnet.reader.verified import outcomes_of, verified_in
from tb_pastnet.reader.violation_list import Violation

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from pandas import DataFrame

Value = TypeVar("Value")

_NO_RUNS = (
    "expected a log with runs, got none. Pass the directory that training wrote to. While "
    "it trains, records come within two seconds, or when you call flush."
)


class Run:
    """One run. Small facts are read at once, the records when they are accessed.

    `run["conv1"]` is `run.layers["conv1"]`.

    Attributes:
        name: its directory below the log directory, `.` for that itself.
        source: "sink", or "summary" for a user's own writer: then lost records, the origin, and
            masks of single weights are unknown.
        past: what "past" means: "previous", "record", "epoch", "initial", a number of steps, or ""
            if unknown.
        every: the number of steps from one due record to the next; None if unknown.
        origin: equal in runs that started from the same weights; "" if unknown.
        closed: whether training ended normally.
        lineages: its writers, in order; a later one supersedes from its first step on.
        skipped: variables that were not recorded, and why.
        config: the hyperparameters that the training noted by `config=`, of its newest lineage.
        account: what became of its due records: `offered` is the sum of the other numbers.
        problem: why it could not be read, "" if it was; then it is empty.
        overhead: the recording overhead, all lineages together; None if not recorded, as in a log
            of summary calls. See
            https://tb-pastnet.github.io/tb_pastnet/benchmarks/overhead.html.

    Example:
        >>> import tempfile
        >>> import numpy as np
        >>> import tb_pastnet as pastnet
        >>> logdir, weight = tempfile.mkdtemp(), np.ones((2, 3))
        >>> with pastnet.numpy.Recorder(logdir, {"dense/kernel": weight.copy}, every=1) as recorder:
        ...     for step in range(1, 4):
        ...         weight[:, 0] *= 2
        ...         recorder.record(step)
        >>> run = pastnet.read(logdir).runs["."]
        >>> run
        Run('.', 3 records, steps 1 to 3, 1 layer)
        >>> run.account.offered, run.violations
        (3, ())
    """

    def __init__(self, reader: RunReader) -> None:
        run = reader.run
        self._reader = reader
        self.name = run.name
        self.source = run.source
        self.past = run.past
        self.every = run.every
        self.origin = run.origin
        self.closed = run.closed
        self.lineages: tuple[Lineage, ...] = tuple(lineage.public for lineage in run.lineages)
        self.skipped: Mapping[str, str] = dict(run.skipped)
        self.config: Mapping[str, str | int | float | bool | None] = dict(run.config)
        self.account: Account = run.account
        self.problem: str = run.problem
        self.overhead: Overhead | None = run.overhead

    @cached_property
    def layers(self) -> Named[Layer]:
        """The layers in forward order, by id; any unique end of an id finds its layer.

        So does the path of another place of a shared variable.
        """
        layers = {layer.id: Layer(self._reader, layer) for layer in self._reader.run.layers}
        variables = self._reader.run.variables.values()
        also = {name.rpartition("/")[0]: own.layer for own in variables for name in own.also}
        return Named(layers, "layer", "the model", also=also)

    def __getitem__(self, layer: str) -> Layer:
        return self.layers[layer]

    def __contains__(self, layer: object) -> bool:
        return layer in self.layers

    def __iter__(self) -> Iterator[str]:
        return iter(self.layers)

    def _ipython_key_completions_(self) -> list[str]:
        return list(self.layers)

    @cached_property
    def variables(self) -> Named[Variable]:
        """All recorded variables, by id; any unique end of an id finds its variable."""
        return variables_of(self._reader, tuple(self._reader.run.variables))

    @property
    def steps(self) -> Integers:
        """int64 (records,), increasing: the step of each record."""
        return self._reader.run.axis.steps.copy()

    @property
    def wall_times(self) -> Floats:
        """float64 (records,), seconds since 1970, NaN where unknown."""
        return self._reader.run.axis.wall_times.copy()

    @property
    def learning_rates(self) -> Floats:
        """float64 (records,), of the optimizer, NaN where unknown.

        If groups of weights have different ones, the highest; a layer has its own.
        """
        return self._reader.run.axis.learning_rates.copy()

    @property
    def notes(self) -> Mapping[str, int]:
        """The writer's notes and unreadable data, with counts; the most frequent first."""
        reader = self._reader
        notes = reader.run.notes + reader.masks.notes + reader.standing.notes
        return dict(notes.most_common())

    @property
    def violations(self) -> tuple[Violation, ...]:
        """Held weights that moved, by first step, then in the order of layers and channels."""
        return self._reader.violations

    @property
    def verified(self) -> Verified:
        """What was frozen or pruned, compared with its earlier values: `str` makes a sentence."""
        return verified_in(self._reader.run)

    @property
    @reading
    def sparsity(self) -> Floats:
        """float64 (records,), the share of prunable weights that kept masks hold at zero.

        NaN if unknown, or if no weight can be pruned. Reads all layers.
        """
        overview = self.overview()
        # If a timeline is lost, the records have more steps.
        return overview.sparsity[np.isin(overview.steps, self.steps)]

    @property
    @reading
    def travel(self) -> Travel:
        """How far all of its layers together were from their first records: see `Layer.travel`."""
        return travel(self._reader.sketches())

    @cached_property
    @reading
    def function(self) -> Function:
        """How far the outputs moved on the probe; without records if there was no probe."""
        return Function(self._reader.function())

    @reading
    def overview(self, threshold: float = THRESHOLD, latest: int | None = None) -> Overview:
        """Counts the channels of each layer in each state, record by record. Reads all layers.

        Args:
            threshold: the relative delta under which a channel is quiet, after five records in
                a row; with 0 none ever is.
            latest: only this many of the last records, which takes less time; None: all.

        Raises:
            InvalidArgument: `latest` is no whole number, or less than 1.
        """
        if latest is not None and not (is_whole(latest) and latest > 0):
            raise InvalidArgument(
                f"Could not make an overview of {self.name!r}: expected latest= a whole number "
                f"from 1 on, got {latest!r:.60}. Leave it out for all records."
            )
        figures = figures_of(self._reader, threshold)
        return Overview(figures.among(slice(-latest if latest else None, None)))

    @reading
    def findings(self) -> tuple[Finding, ...]:
        """Finds what is worth knowing about the run, what does most harm first. Reads all layers.

        These are violations, NaN, lost records, weights that could train and don't change, and
        layers that are frozen or pruned. There is one finding for each kind and cause.
        """
        return tuple(findings_of([self._reader]))

    def plot(
        self,
        threshold: float = THRESHOLD,
        *,
        layers: Sequence[str] | None = None,
        dark: bool = False,
        axes: Axes | None = None,
    ) -> Figure:
        """Draws the states of channels over the steps, a strip a layer; needs Matplotlib.

        The strips are those of the Network view: the height of a colour is a share of channels,
        and reactivated, violated and nonfinite channels always keep a pixel. Reads all layers.

        Args:
            threshold: as for `overview`; the scale of relative changes begins there.
            layers: names of those to draw, from the top; None: all.
            dark: whether to take the colours of the dark theme.
            axes: where to draw; None: a new figure.

        Returns:
            The figure: notebooks show it, and `savefig` writes it.

        Raises:
            ImportError: Matplotlib isn't installed.
            InvalidArgument: nothing is recorded, or `layers` is empty.
            UnknownName: a name in `layers` fits no layer, or several.
        """
        from tb_pastnet.reader.plots import plot_run  # only here: it imports Matplotlib

        chosen = None if layers is None else [layer.id for layer in self.layers.chosen(layers)]
        return plot_run(figures_of(self._reader, threshold), chosen, dark, axes)

    def to_dataframe(self, threshold: float = THRESHOLD) -> DataFrame:
        """Returns the overview, one row per record and layer. See `Overview.to_dataframe`.

        Args:
            threshold: as for `overview`.

        Raises:
            ImportError: pandas isn't installed.
        """
        return self.overview(threshold).to_dataframe()

    def __repr__(self) -> str:
        if self.problem:
            return f"Run({self.name!r}, not readable)"
        steps = self._reader.run.axis.steps
        span = f", steps {steps[0]:,} to {steps[-1]:,}" if len(steps) else ""
        layers = counted(len(self._reader.run.layers), "layer")
        return f"Run({self.name!r}, {counted(len(steps), 'record')}{span}, {layers})"

    def _repr_html_(self) -> str:
        return run_html(self, lambda: states_at_end(self))


def runs_alone(
    runs: Iterable[Run],
    make: Callable[[Sequence[Run]], Value],
    passed: tuple[type[Exception], ...] = (),
) -> Value:
    """Makes a value of some runs; those that can't be read are empty. See `isolation`."""
    own = {run._reader: run for run in runs}

    def made(readers: Sequence[RunReader]) -> Value:
        return make([own[reader] if reader in own else Run(reader) for reader in readers])

    return each_alone(list(own), made, passed)


def runs_findings(runs: Iterable[Run]) -> list[Finding]:
    """The findings of some runs together."""
    return each_alone([run._reader for run in runs], findings_of)


def states_at_end(run: Run, threshold: float = THRESHOLD) -> tuple[Overview, Integers]:
    """An overview of the last record, with each layer's newest states, and the steps of these."""
    figures, steps = figures_of(run._reader, threshold).at_end()
    return Overview(figures), steps


def run_outcomes(
    run: Run, expectations: Sequence[Expectation], *, at_end: bool = False
) -> list[Outcome]:
    """Whether what should have happened in a run did."""
    return outcomes_of(run._reader, expectations, at_end=at_end)


def run_alone(run: Run, make: Callable[[Run], Value]) -> Value:
    """The same of one run."""
    return runs_alone([run], lambda runs: make(runs[0]))


class Log(Named[Run]):
    """All runs of a log directory by name, as they were when it was opened.

    `log["a"]` is `log.runs["a"]`.

    Attributes:
        logdir: the directory.
        runs: by name. Any unique end of a name finds its run.
        unopened: how many files, objects, and directories below it, can't be opened.
        warnings: about no single run, such as `unopened`.

    Raises:
        UnreadableLog: it isn't a directory, or the store can't be used.

    Example:
        >>> import tempfile
        >>> import numpy as np
        >>> import tb_pastnet as pastnet
        >>> logdir, weight = tempfile.mkdtemp(), np.ones((2, 3))
        >>> with pastnet.numpy.Recorder(logdir, {"dense/kernel": weight.copy}, every=1) as recorder:
        ...     for step in range(1, 4):
        ...         weight[:, 0] *= 2
        ...         recorder.record(step)
        >>> print(pastnet.read(logdir))
        Log('...', 1 run)
          Run('.', 3 records, steps 1 to 3, 1 layer)
    """

    def __init__(self, logdir: str | os.PathLike[str], progress: Progress = unseen) -> None:
        if not isinstance(logdir, str | os.PathLike):
            raise InvalidArgument(
                f"Could not read a log: expected logdir= a path, got {logdir!r:.60}. Give the "
                f"directory that training wrote to, or one above it."
            )
        self.logdir = os.fspath(logdir)
        source = FileSource(logdir)
        store = Store(source, fresh_for=math.inf, progress=progress)
        catalog = store.catalog(LOCAL)
        self.store = store
        runs = {name: alone(store.reader(LOCAL, run), Run) for name, run in catalog.runs.items()}
        self._readers = {name: run._reader for name, run in runs.items()}
        super().__init__(runs, "run", "the log directory", _NO_RUNS)
        self.runs: Named[Run] = Named(runs, "run", "the log directory", _NO_RUNS)
        self.unopened = source.unopened + source.left_out
        lost = (
            (source.unopened, "Files and directories that can't be opened"),
            (
                source.left_out,
                "Objects left out: no file can have their names, or they can't be read",
            ),
        )
        self.warnings: tuple[str, ...] = (
            *catalog.warnings,
            *(f"{text}: {count}" for count, text in lost if count),
        )

    def findings(self) -> tuple[Finding, ...]:
        """Finds what is worth knowing about all runs, what does most harm first. Reads all layers.

        Returns:
            One finding for each kind and cause, see `Run.findings`, however many runs and layers it
            is about. Each has a kind, a sentence as `text`, and the step of its first record.
        """
        return tuple(runs_findings(self.runs.values()))

    def overlap(
        self,
        first: str,
        second: str,
        *,
        unit: str = "weights",
        kind: str = "kept",
        step: int | None = None,
    ) -> Overlap:
        """Compares the masks of two runs, in all layers that both have, as the Compare view does.

        Args:
            first: the name of a run, or a unique end of it.
            second: that of another one.
            unit: "weights", those that can be pruned, or "channels".
            kind: "kept" for what isn't pruned, "trainable" for what an update may change.
            step: each run is taken at its last record at or before it; None: at its last record.

        Returns:
            The overlap, the overlap by chance, the same of each layer, and the reason if the runs
            aren't comparable: then the numbers are NaN.

        Raises:
            UnknownName: a name fits no run, or several.
            InvalidArgument: an argument has another value.
        """
        chosen = [self._readers[self.runs[name].name] for name in (first, second)]

        def make(pair: Sequence[RunReader]) -> Overlap:
            return overlap_of(pair[0], pair[-1], unit, kind, step)

        return each_alone(chosen, make, (InvalidArgument,))

    def to_dataframe(self, threshold: float = THRESHOLD) -> DataFrame:
        """Returns the overviews of all runs, one row per run, record and layer.

        Args:
            threshold: the relative delta under which a channel is quiet.

        Returns:
            Column run (categorical), then those of `Overview.to_dataframe`. Empty without runs.

        Raises:
            ImportError: pandas isn't installed.
        """
        check_threshold(threshold)

        def make(runs: Sequence[Run]) -> DataFrame:
            tables = {run.name: run.overview(threshold).columns() for run in runs}
            return to_dataframe(stacked(tables, "run"))

        return runs_alone(self.runs.values(), make, (ImportError,))

    def __repr__(self) -> str:
        lines = [f"Log({self.logdir!r}, {counted(len(self.runs), 'run')})"]
        lines += [f"  {run_alone(run, repr)}" for run in self.runs.values()]
        if not (self.runs or self.warnings):
            lines.append("  no run: give the directory that training wrote to, or one above it")
        return "\n".join([*lines, *(f"  warning: {warning}" for warning in self.warnings)])

    def _repr_html_(self) -> str:
        return runs_alone(
            self.runs.values(), lambda runs: log_html(self.logdir, runs, self.warnings)
        )


@answered
def read(logdir: str | os.PathLike[str]) -> Log:
    """Opens a log directory, or one above several. It needs neither TensorFlow nor TensorBoard.

    Everything that the tab shows is available as arrays, with the same account of records: damaged
    ones are counted and left out. Opening reads every file once and keeps no records in memory;
    open the log again to see later records.

    Args:
        logdir: a local directory, or one in a store such as "s3://bucket/runs", which is copied to
            a temporary directory first. See
            https://tb-pastnet.github.io/tb_pastnet/how_to/stores.html.

    Returns:
        The log.

    Raises:
        UnreadableLog: it isn't a directory, or the store can't be used.

    Example:
        >>> import tempfile
        >>> import tb_pastnet as pastnet
        >>> with tempfile.TemporaryDirectory() as logdir:
        ...     len(pastnet.read(logdir))
        0
    """
    return Log(logdir)
