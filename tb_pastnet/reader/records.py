"""The layers of a run and their variables: their records as arrays."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from tb_pastnet.core import statistics
from tb_pastnet.core.account import Account
from tb_pastnet.core.channel_states import NAMES, STATE, THRESHOLD, VIOLATED, States
from tb_pastnet.core.channel_states import relative_delta as delta_codes
from tb_pastnet.core.checks import check_step, check_threshold
from tb_pastnet.core.quantize import dequantize
from tb_pastnet.core.travel import Distance, Verdict
from tb_pastnet.errors import InvalidArgument
from tb_pastnet.format import description
from tb_pastnet.format.tags import MASKS
from tb_pastnet.reader.arrays import Flags, Floats, Integers
from tb_pastnet.reader.layer_view import record_columns
from tb_pastnet.reader.named import Named
from tb_pastnet.reader.notebook_html import records_html
from tb_pastnet.reader.series import RecordSeries
from tb_pastnet.reader.sketch_series import SketchSeries, Travel, between, travel
from tb_pastnet.reader.state_series import StateSeries
from tb_pastnet.reader.store import RunReader
from tb_pastnet.reader.tables import Columns, to_dataframe
from tb_pastnet.reader.verdicts import verdict_of
from tb_pastnet.reader.violation_list import Violation

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from pandas import DataFrame


_NAMES = np.array(NAMES)


@dataclass(frozen=True, eq=False)
class MasksAt:
    """The masks that were in force for the record of one step.

    Attributes:
        step: the step.
        kept: bool, of the variable's shape: False where a weight is pruned (held at zero). None if
            unknown: in a log of summary calls, if the change of a mask is lost, and for more than
            2²⁸ weights.
        trainable: the same for the trainable mask: False where it freezes a weight (holds it at its
            value). Weights held by `trainable=False` show in the records, not here.
    """

    step: int
    kept: Flags | None
    trainable: Flags | None


class Records:
    """The records of a variable, one row per record and one column per channel.

    Every array is read on access and belongs to the caller. Values are accurate to 2.2 %;
    the relative delta, a ratio of two, and shares to 4.5 %. Zeros, shares of one and counts are
    exact. NaN means unknown.

    Attributes:
        shape: the shape of the variable.
        axis: its channel axis in words, mostly a number such as "-1".
        channels: how many channels it has.
        elements: how many elements each channel has.
        role: "kernel", "bias", "scale", "statistic" or "other".
    """

    def __init__(self, reader: RunReader, variable: description.VariableEntry) -> None:
        self._reader = reader
        self._name = variable.id
        self.shape = variable.shape
        self.axis = variable.axis
        self.channels = variable.channels
        self.elements = variable.elements
        self.role = variable.role

    @property
    def steps(self) -> Integers:
        """int64 (records,), increasing: the step of each record."""
        return self._series().steps.copy()

    @property
    def past_steps(self) -> Integers:
        """int64 (records,), the step of the past value that each record compares with."""
        return self._series().past_steps.copy()

    @property
    def wall_times(self) -> Floats:
        """float64 (records,), seconds since 1970."""
        return self._series().wall_times.copy()

    @property
    def learning_rates(self) -> Floats:
        """float64 (records,), of the optimizer."""
        return self._series().learning_rates.copy()

    @property
    def norm(self) -> Floats:
        """float64 (records, channels), ‖w‖₂ over the finite elements; NaN if there are none."""
        return self._statistic(statistics.NORM)

    @property
    def past_norm(self) -> Floats:
        """float64 (records, channels), ‖w_past‖₂."""
        return self._statistic(statistics.PAST_NORM)

    @property
    def delta_norm(self) -> Floats:
        """float64 (records, channels), ‖w − w_past‖₂."""
        return self._statistic(statistics.DELTA_NORM)

    @property
    def delta_max(self) -> Floats:
        """float64 (records, channels), the largest `|w − w_past|`."""
        return self._statistic(statistics.DELTA_MAX)

    @property
    def changed(self) -> Floats:
        """float64 (records, channels), the share of elements that changed at all."""
        return self._statistic(statistics.CHANGED)

    @property
    def nonfinite(self) -> Floats:
        """float64 (records, channels), how many elements are NaN or infinite."""
        return self._statistic(statistics.NONFINITE)

    @property
    def kept(self) -> Floats:
        """float64 (records, channels), the share of elements that the kept mask lets through."""
        return self._statistic(statistics.KEPT)

    @property
    def trainable(self) -> Floats:
        """float64 (records, channels), the share of elements that an update may change."""
        return self._statistic(statistics.TRAINABLE)

    @property
    def moved(self) -> Floats:
        """float64 (records, channels): 1 if any bit has changed since the record before, else 0.

        NaN if unknown: in the first record, after a restart, and in logs of earlier versions.
        """
        return self._statistic(statistics.MOVED)

    @property
    def relative_delta(self) -> Floats:
        """float64 (records, channels), ‖w − w_past‖₂ / ‖w_past‖₂: 0/0 is 0, x/0 infinite."""
        return dequantize(delta_codes(self._series().codes))

    @property
    def violated(self) -> Flags:
        """Whether held weights had changed: bool (records, channels)."""
        flags: Flags = (self._codes(THRESHOLD) & np.uint8(VIOLATED)) != 0
        return flags

    def states(self, threshold: float = THRESHOLD) -> npt.NDArray[np.str_]:
        """Returns the state of each channel at each record.

        Args:
            threshold: the relative delta under which a channel is quiet, after five records in
                a row; with 0 none ever is.

        Returns:
            str (records, channels): "moving", "reactivated", "quiet", "frozen", "pruned",
            "following" or "nonfinite".
        """
        names: npt.NDArray[np.str_] = _NAMES[self._codes(threshold) & np.uint8(STATE)]
        return names

    def masks(self, step: int | None = None) -> MasksAt:
        """Returns the masks of single weights in force for the record of a step.

        Args:
            step: any step; None: that of the last record, or 0 without records.

        Raises:
            InvalidArgument: `step` is no whole number of 64 bits.
        """
        check_step(step, "read masks")
        if step is None:
            step = max(self._series().steps.tolist(), default=0)
        kept, trainable = (self._reader.mask_in_force(self._name, mask, step) for mask in MASKS)
        return MasksAt(step, kept, trainable)

    @property
    def violations(self) -> tuple[Violation, ...]:
        """Held weights of it that moved, by first step and channel."""
        return tuple(item for item in self._reader.violations if item.variable == self._name)

    @property
    def account(self) -> Account:
        """What became of its records: `offered` is the sum of the other numbers."""
        return self._series().account

    @property
    def notes(self) -> Mapping[str, int]:
        """What could not be read, and how often, the most frequent first."""
        return dict(self._series().notes.most_common())

    def to_dataframe(self, threshold: float = THRESHOLD) -> DataFrame:
        """Returns all values, one row per record and channel, with the columns of the CSV export.

        Args:
            threshold: as for `states`.

        Returns:
            Columns step, past_step, channel, state (categorical), violated (bool), relative_delta
            and one for each statistic.

        Raises:
            ImportError: pandas isn't installed.
        """
        return to_dataframe(self.columns(threshold))

    def columns(self, threshold: float = THRESHOLD) -> Columns:
        """The columns of `to_dataframe` as arrays, without pandas; texts as `Labels`."""
        return record_columns(self._series(), self._codes(threshold))

    def plot(
        self,
        threshold: float = THRESHOLD,
        *,
        mode: str = "both",
        dark: bool = False,
        axes: Axes | None = None,
    ) -> Figure:
        """Draws the channels over the steps, as the Layer view does; needs Matplotlib.

        A pixel with several records or channels shows their largest change and most frequent
        state; reactivated, violated and nonfinite channels always keep a pixel.

        Args:
            threshold: as for `states`; the scale of relative changes begins there.
            mode: "both" draws states, with relative changes where channels move; "state" only
                states, "delta" only relative changes.
            dark: whether to take the colours of the dark theme.
            axes: where to draw; None: a new figure.

        Returns:
            The figure: notebooks show it, and `savefig` writes it.

        Raises:
            ImportError: Matplotlib isn't installed.
            InvalidArgument: nothing is recorded, or the mode is unknown.
        """
        from tb_pastnet.reader.plots import plot_channels  # only here: it imports Matplotlib

        check_threshold(threshold)
        series, states = self._marked(threshold)
        run, data = self._reader.run.name, (series.steps, states, series.delta)
        return plot_channels(run, self._name, *data, threshold, mode, dark, axes)

    def _marked(self, threshold: float) -> tuple[StateSeries, States]:
        """Read once for both: a wide one isn't cached."""
        series = self._reader.state_series(self._name)
        return series, self._reader.marked(series, self._name, threshold)

    def _codes(self, threshold: float) -> States:
        return self._reader.states(self._name, threshold)

    def _series(self) -> RecordSeries:
        return self._reader.series(self._name)

    def _statistic(self, row: int) -> Floats:
        return statistics.dequantize_statistic(row, self._series().codes)


class Variable(Records):
    """A recorded variable.

    Attributes:
        id: its path below the model, such as "block/conv1/kernel".
        name: its own name, such as "kernel".
        layer: the id of its layer.
        dtype: its dtype's name, empty in a log of summary calls.

    Example:
        >>> import tempfile
        >>> import numpy as np
        >>> import tb_pastnet as pastnet
        >>> logdir, weight = tempfile.mkdtemp(), np.ones((2, 3))
        >>> with pastnet.numpy.Recorder(logdir, {"dense/kernel": weight.copy}, every=1) as recorder:
        ...     for step in range(1, 4):
        ...         weight[:, 0] *= 2
        ...         recorder.record(step)
        >>> kernel = pastnet.read(logdir).runs["."].variables["kernel"]
        >>> kernel
        Variable('dense/kernel', shape (2, 3), 3 channels)
        >>> kernel.changed[-1].tolist()  # the share of the weights of each channel
        [1.0, 0.0, 0.0]
    """

    def __init__(self, reader: RunReader, variable: description.VariableEntry) -> None:
        super().__init__(reader, variable)
        self.id = variable.id
        self.name = variable.name
        self.layer = variable.layer
        self.dtype = variable.dtype

    def __repr__(self) -> str:
        return f"Variable({self.id!r}, shape {self.shape}, {self.channels:,} channels)"

    def _repr_html_(self) -> str:
        title = f"Variable {self.id} of run {self._reader.run.name}"
        return records_html(title, self, *self._marked(THRESHOLD))


class Layer(Records):
    """A layer; its records are those of its main variable, mostly its kernel.

    Attributes:
        id: its path below the model, such as "block/conv1".
        name: its own name.
        group: the path of its parent, empty at the top.
        type: its class, such as "Conv2D".
        variable: the id of its main variable, by which the tab draws it.
        variables: all its recorded variables, by id.

    Example:
        >>> import tempfile
        >>> import numpy as np
        >>> import tb_pastnet as pastnet
        >>> logdir, weight = tempfile.mkdtemp(), np.ones((2, 3))
        >>> with pastnet.numpy.Recorder(logdir, {"dense/kernel": weight.copy}, every=1) as recorder:
        ...     for step in range(1, 4):
        ...         weight[:, 0] *= 2
        ...         recorder.record(step)
        >>> layer = pastnet.read(logdir).runs["."].layers["dense"]
        >>> layer.relative_delta[-1].tolist()
        [1.0, 0.0, 0.0]
        >>> layer.states()[-1].tolist()
        ['moving', 'quiet', 'quiet']
    """

    def __init__(self, reader: RunReader, layer: description.LayerEntry) -> None:
        super().__init__(reader, reader.run.variables[layer.main])
        self.id = layer.id
        self.name = layer.name
        self.group = layer.group
        self.type = layer.type
        self.variable = layer.main
        self.variables = variables_of(reader, layer.variables)

    @property
    def travel(self) -> Travel:
        """How far it was from its first records: steps, estimated distances, their errors.

        Empty for layers of at most 64 weights, and in logs of earlier versions.
        """
        return travel(self._sketches())

    def distance(self, step: int, other_step: int, other: Layer | None = None) -> Distance:
        """Estimates how far its weights at one step are from those at another.

        Args:
            step: of this layer: the last sketch up to it is taken.
            other_step: the same of the other layer.
            other: a layer of the same shape, as in another run; None: itself.

        Returns:
            The estimated Euclidean distance, and its error: in 19 of 20 cases the distance is at
            most so far from the estimate. NaN if there is no sketch, as of at most 64 weights.

        Raises:
            InvalidArgument: a step is no whole number, or `other` has another shape.

        Example:
            >>> import tempfile
            >>> import numpy as np
            >>> import tb_pastnet as pastnet
            >>> logdir, weight = tempfile.mkdtemp(), np.zeros((65, 3))
            >>> weights = {"dense/kernel": weight.copy}
            >>> with pastnet.numpy.Recorder(logdir, weights, every=1) as recorder:
            ...     for step in range(1, 4):
            ...         weight[0, 0] += 2
            ...         recorder.record(step)
            >>> layer = pastnet.read(logdir).runs["."].layers["dense"]
            >>> round(layer.distance(1, 3).value, 3)
            4.0
        """
        other = self if other is None else other
        for each in (step, other_step):
            check_step(each, "estimate a distance")
        if not isinstance(other, Layer) or other.shape != self.shape:
            raise InvalidArgument(
                f"Could not estimate a distance from {self.id!r}: expected other= a layer of shape "
                f"{self.shape}, got {other!r:.100}. Pass the same layer of another run."
            )
        own = self._sketches()
        return between(own, step, own if other is self else other._sketches(), other_step)

    @property
    def verdict(self) -> Verdict | None:
        """What the last half of the records proves: it moves in place, has arrived, or travels.

        None if too little is known: at least 8 sketches in the last half, the learning rate, which
        is above a tenth of its highest, and no change of its masks, and no restart since then.
        """
        return verdict_of(self._reader, self.variable)

    def _sketches(self) -> SketchSeries:
        return self._reader.sketches().of([self.variable])

    def __repr__(self) -> str:
        return f"Layer({self.id!r}, {self.type}, {self.channels:,} channels of {self.variable!r})"

    def _repr_html_(self) -> str:
        kind = f", {self.type}" if self.type else ""
        title = f"Layer {self.id}{kind}, by {self.variable}, of run {self._reader.run.name}"
        return records_html(title, self, *self._marked(THRESHOLD))


def variables_of(reader: RunReader, names: tuple[str, ...]) -> Named[Variable]:
    """Variables of a run by their ids."""
    variables = {name: Variable(reader, reader.run.variables[name]) for name in names}
    # Those of a shared one find it, too.
    also = {other: name for name in names for other in reader.run.variables[name].also}
    return Named(variables, "variable", "the model", also=also)
