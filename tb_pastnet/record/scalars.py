"""A record as a dictionary of plain numbers, for other loggers."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from tb_pastnet.core import channel_states
from tb_pastnet.core.channel_states import LatestStates
from tb_pastnet.core.quantize import dequantize
from tb_pastnet.core.statistics import quantize_statistics
from tb_pastnet.errors import InvalidArgument
from tb_pastnet.format.overhead import Overhead
from tb_pastnet.record.batch import Record, spans_of
from tb_pastnet.record.failures import Failures, noted
from tb_pastnet.record.mask_tracker import MaskTracker
from tb_pastnet.record.weight import Network, Weight

LogFunction = Callable[[dict[str, float], int], object]
"""A function that gets the numbers of a record, by name, and its step."""

_STEP = "pastnet/step"

_STATES = channel_states.NAMES[1:]


class Scalars:
    """Passes on the share of channels in each state, for the network and each layer.

    A layer is represented by its main weight, and states are those that the tab shows. Unknown
    numbers are left out, and a layer's state until it occurs.
    """

    def __init__(self, log: LogFunction, network: Network[Weight], failures: Failures) -> None:
        self._log = _WandbLog(log) if _is_wandb(log) else log
        self._failures = failures
        spans = {span.variable: span for span in spans_of(network.weights)}
        mains = [spans[layer.main] for layer in network.layers]
        self._channels = np.concatenate([np.arange(main.start, main.stop) for main in mains])
        self._layers = [layer.id for layer in network.layers]
        self._widths = np.array([main.stop - main.start for main in mains])
        self._starts = np.cumsum(self._widths) - self._widths
        follows = {weight.name: weight.text.follows for weight in network.weights}
        self._states = LatestStates(
            self._widths,
            np.array([main.kernel for main in mains]),
            np.array([follows[main.variable] for main in mains]),
        )
        self._occurred = np.zeros((len(_STATES), len(mains)), bool)

    @noted("Could not call the function of log=")
    def tell(self, record: Record, tracker: MaskTracker, cost: Overhead) -> None:
        """Passes on a record with what is known of masks, and its cost so far."""
        others = {"violations": tracker.violations, "sparsity": tracker.sparsity}
        known = _known(others | {"overhead": cost.share})
        self._log(self._numbers(record) | known, record.step)

    def _numbers(self, record: Record) -> dict[str, float]:
        states, codes = self._states.add(quantize_statistics(record.values[:, self._channels]))
        plain = states & np.uint8(channel_states.STATE)
        flags = [plain == code for code in range(1, len(channel_states.NAMES))]
        counts = np.stack([self._by_layer(flag) for flag in flags])
        self._occurred |= counts > 0
        # As the tab has it: each taken as 1 at most.
        deltas = np.minimum(dequantize(codes), 1.0)
        moving = flags[channel_states.MOVING - 1] & ~np.isnan(deltas)
        moved, number = self._by_layer(np.where(moving, deltas, 0.0)), self._by_layer(moving)

        totals = counts.sum(axis=1) / len(self._channels)
        numbers = dict(zip(_STATES, totals.tolist(), strict=True))
        numbers["delta"] = _ratio(moved.sum(), number.sum())
        for row, layer in enumerate(self._layers):
            for share in np.flatnonzero(self._occurred[:, row]):
                numbers[f"layers/{layer}/{_STATES[share]}"] = counts[share, row] / self._widths[row]
            numbers[f"layers/{layer}/delta"] = _ratio(moved[row], number[row])
        return _known(numbers)

    def _by_layer(self, values: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
        sums: npt.NDArray[np.float64] = np.add.reduceat(values, self._starts, dtype=np.float64)
        return sums


class _WandbLog:
    """Logs to W&B so that no call is behind its step.

    W&B drops such a call. A loop that itself logs twice a step is far ahead of training's step. Our
    numbers join the row at W&B's step then; charts have training's step as their x-axis.
    """

    def __init__(self, log: LogFunction) -> None:
        self._log = log
        self._run: Any = None
        self._latest = -1

    def __call__(self, numbers: dict[str, float], step: int) -> None:
        # `wandb.log` may have been taken before `wandb.init`.
        run = getattr(self._log, "__self__", None) or getattr(sys.modules.get("wandb"), "run", None)
        if run is None:
            self._log(numbers, step)  # W&B raises its own error
            return
        if run is not self._run:
            self._run, self._latest = run, -1
            run.define_metric(_STEP, hidden=True)
            run.define_metric("pastnet/*", step_metric=_STEP)
        begun = int(run.step)
        # The row at that step may still have our former numbers: the same names would replace them.
        row = max(step, begun + (begun == self._latest))
        run.log({**numbers, _STEP: step}, step=row)
        self._latest = row


def _is_wandb(log: Any) -> bool:
    """Whether it is `wandb.log`, or the `log` of a run."""
    return str(getattr(log, "__module__", "")).partition(".")[0] == "wandb"


def check(log: object) -> None:
    """Raises InvalidArgument if it can't be called."""
    if log is not None and not callable(log):
        raise InvalidArgument(
            f"Could not use log=: expected a function, got {log!r:.60}. It is called with a "
            "dictionary and a step, like wandb.log."
        )


def _ratio(total: float, count: float) -> float:
    return float(total / count) if count else math.nan


def _known(numbers: dict[str, float]) -> dict[str, float]:
    """By the name in the log, as Python floats."""
    return {f"pastnet/{name}": float(x) for name, x in numbers.items() if not math.isnan(x)}
