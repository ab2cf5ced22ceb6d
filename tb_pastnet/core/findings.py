"""Findings about some runs: each a sentence and where to see it.

All steps are those of records. A finding about a layer is about its newest record; its step is that
of the first record at which it held for any channel. If more of them hold it since later, the
sentence says when.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tb_pastnet.core.account import Account
from tb_pastnet.core.channel_states import FROZEN, Lasting
from tb_pastnet.core.counted import counted
from tb_pastnet.core.violation import CAUSES, between

KINDS = (
    "violations", "nonfinite", "stalled", "unreadable", "dropped", "silent",
    "frozen", "pruned", "freezes_first", "moves_most",
)  # fmt: skip
"""Kinds of findings, the most important first."""

_NAMED = 3
"""Layers that a sentence names; the others are counted."""


class LayerFacts(NamedTuple):
    """The facts of a layer of a run."""

    id: str
    channels: int
    steps: npt.NDArray[np.int64]  # int64 (records,), of its records
    counts: npt.NDArray[np.uint32]  # uint32 (records, 6), channels in each state
    mean_delta: npt.NDArray[np.float32]  # float32 (records,), the mean relative delta
    # since when channels are "nonfinite", "stalled" (see `channel_states.stalled`), "frozen" or
    # "pruned" at the newest record
    lasting: Mapping[str, Lasting] = {}


class Violated(NamedTuple):
    """A channel that changed while it was held, with the steps of its first and last record.

    The cause is a key of `CAUSES`, or one of a later version.
    """

    layer: str
    variable: str
    channel: int
    first_step: int
    last_step: int
    cause: str


class RunFacts(NamedTuple):
    """The facts of a run: its newest step, layers in forward order, violations, account."""

    name: str
    last_step: int | None
    layers: Sequence[LayerFacts]
    violated: Sequence[Violated] = ()
    account: Account = Account()
    problem: str = ""  # why it could not be read


@dataclass(frozen=True)
class Finding:
    """Something worth knowing about a run.

    Attributes:
        kind: one of `KINDS`.
        run: its name; None if runs are compared.
        layers: ids of all layers that it concerns.
        step: of the record since which, or at which, it is so; None if that isn't one step.
        channels: how many it concerns, None if it isn't about channels.
        value: another number in its text, such as the mean relative delta.
        text: the sentence.
        view: the view of the tab that shows it: "network" or "layer".
        shown_run: the run to look at.
        layer: the layer to look at, None for all.
        channel: the channel to look at, None for all.

    Example:
        >>> finding = Finding("frozen", "a", ("dense",), 50, 3, None, "dense frozen since step 50")
        >>> finding.layers, finding.step
        (('dense',), 50)
    """

    kind: str
    run: str | None
    layers: tuple[str, ...]
    step: int | None
    channels: int | None
    value: float | None
    text: str
    view: str = "network"
    shown_run: str | None = None
    layer: str | None = None
    channel: int | None = None


def findings(runs: Sequence[RunFacts]) -> list[Finding]:
    """Finds what is worth knowing: by kind in the order of `KINDS`, then by run, then by step."""
    listed = [
        finding
        for run in runs
        for finding in sorted(_of_run(run), key=lambda f: math.inf if f.step is None else f.step)
    ]
    if len(runs) > 1:
        listed += _compared(runs)
    return sorted(listed, key=lambda finding: KINDS.index(finding.kind))


def _of_run(run: RunFacts) -> Iterator[Finding]:
    recorded = [layer for layer in run.layers if len(layer.steps)]
    yield from _violations(run)
    yield from _lost(run)
    yield from _silent(run)
    yield from _states(run, recorded)
    moving = [layer for layer in recorded if layer.mean_delta[-1] > 0]
    if len(moving) > 1:
        most = max(moving, key=lambda layer: float(layer.mean_delta[-1]))
        step, value = int(most.steps[-1]), float(most.mean_delta[-1])
        text = f"{most.id} moves the most at step {step:,}: mean relative delta {value:.2g}"
        yield _layers_finding("moves_most", run, [most], step, None, text, value)


def _violations(run: RunFacts) -> Iterator[Finding]:
    causes: dict[str, list[Violated]] = {}
    for violated in run.violated:
        causes.setdefault(violated.cause, []).append(violated)
    for cause, group in causes.items():
        first = min(group, key=lambda violated: violated.first_step)
        channels = len({(violated.layer, violated.channel) for violated in group})
        layers = tuple(dict.fromkeys(violated.layer for violated in group))
        since, until = first.first_step, max(violated.last_step for violated in group)
        when = f"since step {since:,}" if until == run.last_step else between(since, until)
        text = (
            f"{counted(channels, 'channel')} of {_named(layers)} changed while frozen or pruned, "
            f"{when}. Likely cause: {CAUSES.get(cause, cause)}"
        )
        yield Finding(
            "violations", run.name, layers, since, channels, None, text,
            "layer", run.name, first.layer, first.channel,
        )  # fmt: skip


def _lost(run: RunFacts) -> Iterator[Finding]:
    if run.problem:
        yield Finding("unreadable", run.name, (), None, None, None, run.problem, shown_run=run.name)
    account = run.account
    for kind, count, why in (
        ("unreadable", account.unreadable, "can't be read"),
        ("dropped", account.dropped, "were dropped before they were written"),
    ):
        if count:
            text = f"{count:,} of {counted(account.offered, 'record')} {why}"
            yield Finding(kind, run.name, (), None, None, count, text, shown_run=run.name)


def _silent(run: RunFacts) -> Iterator[Finding]:
    if run.last_step is None:
        return
    ends: dict[int | None, list[LayerFacts]] = {}
    for layer in run.layers:
        last = int(layer.steps[-1]) if len(layer.steps) else None
        if last != run.last_step:
            ends.setdefault(last, []).append(layer)
    for last, layers in ends.items():
        until = "no record" if last is None else f"no record after step {last:,}"
        text = f"{_named([layer.id for layer in layers])}: {until}; the run is at {run.last_step:,}"
        yield _layers_finding("silent", run, layers, last, None, text)


def _states(run: RunFacts, layers: Sequence[LayerFacts]) -> Iterator[Finding]:
    """Frozen, pruned, nonfinite and stalled layers, grouped by the steps at which that began."""
    groups: dict[tuple[str, bool, tuple[int, ...]], list[tuple[LayerFacts, Lasting]]] = {}
    for layer in layers:
        for kind, own in layer.lasting.items():
            times = own.first, own.since, own.records if kind == "stalled" else 0
            key = kind, own.channels == layer.channels, times
            groups.setdefault(key, []).append((layer, own))
    for (kind, _, (first, *_)), group in groups.items():
        members = [layer for layer, _ in group]
        channels = sum(own.channels for _, own in group)
        yield _layers_finding(kind, run, members, first, channels, _lasting_text(kind, group))


_STATES: Mapping[str, tuple[str, str]] = {
    "frozen": ("frozen", ""),
    "pruned": ("pruned", ""),
    "nonfinite": ("NaN or infinite", ""),
    "stalled": ("stalled", ": trainable, but unchanged at {records}"),
}
"""The state in words, and what a sentence adds."""


def _lasting_text(kind: str, group: Sequence[tuple[LayerFacts, Lasting]]) -> str:
    state, more = _STATES[kind]
    names = _named(layer.id for layer, _ in group)
    lasting = group[0][1]
    channels, of = sum(own.channels for _, own in group), sum(layer.channels for layer, _ in group)
    rest = more.format(records=counted(lasting.records, "recorded step"))
    if lasting.first == lasting.since:
        who = names if channels == of else f"{channels:,} of {counted(of, 'channel')} of {names}"
        return f"{who} {state} since step {lasting.since:,}{rest}"
    firsts = sum(own.first_channels for _, own in group)
    which = f"channel {lasting.channel:,}" if firsts == 1 else counted(firsts, "channel")
    who = f"{'all ' if channels == of else f'{channels:,} of '}{counted(of, 'channel')}"
    return (
        f"{names}: first {state} at step {lasting.first:,} ({which}); "
        f"{who} since step {lasting.since:,}{rest}"
    )


def _compared(runs: Sequence[RunFacts]) -> Iterator[Finding]:
    """Which run freezes earliest."""
    first: dict[str, tuple[int, LayerFacts]] = {}
    for run in runs:
        for layer in run.layers:
            frozen = layer.steps[layer.counts[:, FROZEN] > 0]
            if len(frozen) and (run.name not in first or frozen[0] < first[run.name][0]):
                first[run.name] = int(frozen[0]), layer
    if len(first) < 2:
        return
    step = min(start for start, _ in first.values())
    names = [name for name, (start, _) in first.items() if start == step]
    layer = first[names[0]][1]
    later = sorted(start for start, _ in first.values() if start > step)
    rest = f"; the next at step {later[0]:,}" if later else ""
    verb = "freezes" if len(names) == 1 else "freeze"
    text = f"{_named(names, 'run')} {verb} first: {layer.id} at step {step:,}{rest}"
    yield Finding("freezes_first", None, (layer.id,), step, None, None, text, "network", names[0])


def _layers_finding(
    kind: str,
    run: RunFacts,
    layers: Sequence[LayerFacts],
    step: int | None,
    channels: int | None,
    text: str,
    value: float | None = None,
) -> Finding:
    only = layers[0].id if len(layers) == 1 else None
    view = "layer" if only else "network"
    ids = tuple(layer.id for layer in layers)
    return Finding(kind, run.name, ids, step, channels, value, text, view, run.name, only)


def _named(names: Iterable[str], noun: str = "layer") -> str:
    """Names for a sentence: the first three, and how many more there are."""
    listed = list(names)
    shown = listed if len(listed) <= _NAMED + 1 else listed[:_NAMED]
    if len(shown) < len(listed):
        return f"{', '.join(shown)} and {len(listed) - len(shown)} more {noun}s"
    return " and ".join(filter(None, [", ".join(shown[:-1]), shown[-1]]))
