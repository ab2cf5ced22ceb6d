"""Logs, runs, layers and variables as notebooks show them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from tb_pastnet.core.channel_states import NAMES, STATE, States
from tb_pastnet.core.counted import counted
from tb_pastnet.core.html_table import Markup, html_table
from tb_pastnet.core.quantize import dequantize
from tb_pastnet.reader.arrays import Integers
from tb_pastnet.reader.colours import LIGHT
from tb_pastnet.reader.runs import SINK

if TYPE_CHECKING:
    from tb_pastnet.reader.log import Run
    from tb_pastnet.reader.overview import Overview
    from tb_pastnet.reader.records import Records
    from tb_pastnet.reader.state_series import StateSeries

MOST_CELLS = 4 << 20
"""Records times channels of a run that is read to be shown: half a second."""

_BAR = 120  # pixels


def log_html(logdir: str, runs: Sequence[Run], warnings: Sequence[str]) -> str:
    """A row for each run."""
    head = ("run", "records", "steps", "layers", "channels", "training")
    rows = [
        (run.name, len(run.steps), _span(run.steps), len(run.layers), _channels(run), _end(run))
        for run in runs
    ]
    return html_table(f"{logdir}: {counted(len(rows), 'run')}", head, rows, warnings)


def run_html(run: Run, at_end: Callable[[], tuple[Overview, Integers]]) -> str:
    """A row for each layer, with its newest states unless that takes long: `at_end` reads them."""
    head, layers = ["layer", "type", "channels", "drawn by"], list(run.layers.values())
    rows: list[tuple[object, ...]] = [
        (layer.id, layer.type, layer.channels, layer.variable) for layer in layers
    ]
    steps = run.steps
    if len(steps) and _channels(run) * len(steps) <= MOST_CELLS:
        last, own_steps = at_end()
        head.append(f"states at step {last.steps[-1]:,}")
        counts = np.stack([getattr(last, name)[-1] for name in NAMES[1:]], axis=1)
        ages = ["" if step == last.steps[-1] else f" at step {step:,}" for step in own_steps]
        states = [
            Markup(_states(own.tolist()) + age) for own, age in zip(counts, ages, strict=True)
        ]
        rows = [(*row, own) for row, own in zip(rows, states, strict=True)]
    title = f"Run {run.name}: {len(steps):,} records, steps {_span(steps)}, {_end(run)}"
    return html_table(title, head, rows, list(run.notes))


def records_html(title: str, records: Records, series: StateSeries, states: States) -> str:
    """What a variable is, and what it did at its last record, by its series and states."""
    steps = series.steps
    rows: list[tuple[object, ...]] = [
        ("shape", records.shape),
        ("channels", f"{records.channels:,} on axis {records.axis}, {records.elements:,} each"),
        ("records", f"{len(steps):,}, steps {_span(steps)}"),
    ]
    if len(steps):
        counts = np.bincount(states[-1] & np.uint8(STATE), minlength=len(NAMES))[1:]
        delta = dequantize(series.delta[-1])
        delta = delta[~np.isnan(delta)]  # a channel with NaN or infinity has none
        sizes = f"median {np.median(delta):.2g}, largest {delta.max():.2g}" if delta.size else "–"
        rows += [
            (f"states at step {steps[-1]:,}", _states(counts.tolist())),
            ("relative change Δ", sizes),
            ("violations", f"{len(records.violations):,}"),
        ]
    return html_table(title, (), rows)


def _states(counts: list[int]) -> Markup:
    """The states that channels are in, as a bar and in words."""
    named = [(name, count) for name, count in zip(NAMES[1:], counts, strict=True) if count]
    total = sum(counts)
    parts = "".join(
        f'<span style="display:inline-block;height:10px;width:{_BAR * count / total:.1f}px;'
        f'background:{LIGHT.states[NAMES.index(name)]}"></span>'
        for name, count in named
    )
    words = ", ".join(f"{count:,} {name}" for name, count in named) or "no record"
    frame = "display:inline-block;white-space:nowrap;line-height:0;vertical-align:middle"
    line = "outline:1px solid rgba(128,128,128,0.5);margin-right:8px"
    return Markup(f'<span style="{frame};{line}">{parts}</span>{words}')


def _channels(run: Run) -> int:
    return sum(layer.channels for layer in run.layers.values())


def _span(steps: Integers) -> str:
    return f"{steps[0]:,} to {steps[-1]:,}" if len(steps) else "none"


def _end(run: Run) -> str:
    if run.problem:
        return run.problem
    if run.source != SINK:
        return "written by tf.summary"
    return "ended normally" if run.closed else "killed, or still running"
