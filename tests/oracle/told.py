"""What is said of trainings: the findings, as sentences, from the oracle's figures alone."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from tests.oracle.plain import FROZEN, NONFINITE, PRUNED, Figures, Oracle, Recorded

KINDS = (
    "violations", "nonfinite", "stalled", "unreadable", "dropped", "silent",
    "frozen", "pruned", "freezes_first", "moves_most",
)  # fmt: skip
CAUSES = {"momentum": "momentum left in the optimizer's slots", "unknown": "unknown"}


class Said(NamedTuple):
    """One finding."""

    kind: str
    run: str | None
    layers: tuple[str, ...]
    step: int | None
    channels: int | None
    text: str


def named(names: Sequence[str], what: str = "layer") -> str:
    if len(names) > 4:
        return f"{', '.join(names[:3])} and {len(names) - 3} more {what}s"
    return " and ".join(part for part in (", ".join(names[:-1]), names[-1]) if part)


def plural(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def findings(oracles: Sequence[Oracle], threshold: float) -> list[Said]:
    """Of some runs, what matters most first."""
    found = [said for oracle in oracles for said in _of(oracle, threshold)]
    firsts = [one for one in (_first_frozen(oracle) for oracle in oracles) if one]
    if len(firsts) > 1:
        step = min(one[0] for one in firsts)
        names = [run for at, run, _ in firsts if at == step]
        layer = next(layer for at, _, layer in firsts if at == step)
        later = sorted(at for at, _, _ in firsts if at > step)
        verb = "freezes" if len(names) == 1 else "freeze"
        rest = f"; the next at step {later[0]:,}" if later else ""
        text = f"{named(names, 'run')} {verb} first: {layer} at step {step:,}{rest}"
        found.append(Said("freezes_first", None, (layer,), step, None, text))
    return ranked(found, [oracle.training.run for oracle in oracles])


def ranked(found: Sequence[Said], runs: Sequence[str]) -> list[Said]:
    """By kind, run and step."""
    places = {run: place for place, run in enumerate(runs)}

    def rank(one: Said) -> tuple[int, int, float, str]:
        step = math.inf if one.step is None else one.step
        return KINDS.index(one.kind), places.get(one.run or "", -1), step, one.text

    return sorted(found, key=rank)


def _first_frozen(oracle: Oracle) -> tuple[int, str, str] | None:
    found = [
        (int(own.steps[at]), layer)
        for layer, own in oracle.layers.items()
        for at in range(len(own.steps))
        if own.held[1][at].any()
    ]
    if not found:
        return None
    step = min(at for at, _ in found)
    return step, oracle.training.run, next(layer for at, layer in found if at == step)


def _of(oracle: Oracle, threshold: float) -> list[Said]:
    run, made = oracle.training.run, oracle.training
    found = _violations(oracle)
    if made.dropped:
        count = plural(len(made.records) + made.dropped, "record")
        text = f"{made.dropped:,} of {count} were dropped before they were written"
        found.append(Said("dropped", run, (), None, None, text))
    ends: dict[int, list[str]] = {}
    for layer, own in oracle.layers.items():
        ends.setdefault(int(own.steps[-1]), []).append(layer)
    for end, names in ends.items():
        if end != made.records[-1]:
            text = (
                f"{named(names)}: no record after step {end:,}; the run is at {made.records[-1]:,}"
            )
            found.append(Said("silent", run, tuple(names), end, None, text))
    rows = {
        layer: [oracle.at_record(layer, at, threshold) for at in range(len(own.steps))]
        for layer, own in oracle.layers.items()
    }
    found += _standing(oracle, rows)
    moving = [(row[-1].mean_delta, layer) for layer, row in rows.items() if row[-1].mean_delta > 0]
    if len(moving) > 1:
        mean, layer = max(moving, key=lambda one: one[0])
        step = rows[layer][-1].step
        text = f"{layer} moves the most at step {step:,}: mean relative delta {mean:.2g}"
        found.append(Said("moves_most", run, (layer,), step, None, text))
    return found


def _violations(oracle: Oracle) -> list[Said]:
    cause = "momentum" if oracle.training.audited else "unknown"
    moved = [
        (int(own.steps[at]), place, channel, own.tensor)
        for place, own in enumerate(oracle.variables())
        for channel, flags in enumerate(own.violated.T)
        for at in range(len(flags))
        if flags[at] and not (oracle.training.audited and at and flags[at - 1])
    ]
    if not oracle.training.audited:
        firsts: dict[tuple[int, int], tuple[int, int, int]] = {}
        for step, place, channel, _ in sorted(moved, key=lambda one: one[:3]):
            firsts.setdefault((place, channel), (step, place, channel))
        kept = set(firsts.values())
        moved = [one for one in moved if one[:3] in kept]
    if not moved:
        return []
    moved.sort(key=lambda one: one[:3])
    layers = tuple(dict.fromkeys(one[3].layer for one in moved))
    # Of layers: a channel counts once, however many variables of its layer moved in it.
    channels, first = len({(one[3].layer, one[2]) for one in moved}), moved[0][0]
    ends = [own.steps[own.violated.any(axis=1)] for own in oracle.variables()]
    last = max(int(steps[-1]) for steps in ends if len(steps))
    when = f"at step {first:,}" if first == last else f"from step {first:,} to {last:,}"
    if last == int(oracle.training.records[-1]):
        when = f"since step {first:,}"
    text = (
        f"{plural(channels, 'channel')} of {named(layers)} changed while frozen or pruned, {when}. "
        f"Likely cause: {CAUSES[cause]}"
    )
    return [Said("violations", oracle.training.run, layers, first, channels, text)]


def _lasting(layer: Recorded, kind: str) -> tuple[int, ...] | None:
    """Channels in a state at the newest record, since when, for how many records; the first ones.

    That is the first record that had any, how many, and the first of them.
    """
    steps = layer.steps.tolist()
    if kind == "stalled":
        still = layer.stalled()
        if not still:
            return None
        start, last = min(still)[0], max(still)[0]
        firsts = [channel for record, channel in still if record == start]
    else:
        code = {"frozen": FROZEN, "pruned": PRUNED, "nonfinite": NONFINITE}[kind]
        flags = (layer.states(1e-4) == code).tolist()
        still = [(0, channel) for channel, holds in enumerate(flags[-1]) if holds]
        if not still:
            return None
        start = next(at for at, row in enumerate(flags) if any(row))
        firsts = [channel for channel, holds in enumerate(flags[start]) if holds]
        last = len(flags) - 1
        while last > 0 and all(flags[last - 1][channel] for _, channel in still):
            last -= 1
    return len(still), steps[last], len(steps) - last, steps[start], len(firsts), firsts[0]


def _standing(oracle: Oracle, rows: dict[str, list[Figures]]) -> list[Said]:
    """Frozen, pruned, not finite, stalled: of the newest record, together where since one step."""
    groups: dict[tuple[str, bool, int, int, int], list[tuple[str, tuple[int, ...]]]] = {}
    for layer, row in rows.items():
        for kind in ("frozen", "pruned", "nonfinite", "stalled"):
            own = _lasting(oracle.layers[layer], kind)
            if own is not None:
                count, since, records, first, *_ = own
                whole = count == row[-1].channels
                key = kind, whole, first, since, records * (kind == "stalled")
                groups.setdefault(key, []).append((layer, own))
    found = []
    for (kind, whole, first, since, records), some in groups.items():
        names = [layer for layer, _ in some]
        count = sum(own[0] for _, own in some)
        of = plural(sum(rows[layer][-1].channels for layer in names), "channel")
        word = "NaN or infinite" if kind == "nonfinite" else kind
        if first == since:
            who = named(names) if whole else f"{count:,} of {of} of {named(names)}"
            text = f"{who} {word} since step {since:,}"
        else:
            firsts = sum(own[4] for _, own in some)
            which = f"channel {some[0][1][5]:,}" if firsts == 1 else plural(firsts, "channel")
            who = f"all {of}" if whole else f"{count:,} of {of}"
            text = f"{named(names)}: first {word} at step {first:,} ({which}); {who} since step {since:,}"
        if kind == "stalled":
            text += f": trainable, but unchanged at {plural(records, 'recorded step')}"
        found.append(Said(kind, oracle.training.run, tuple(names), first, count, text))
    return found


def _since(row: Sequence[Figures], so: Sequence[bool]) -> int:
    first = len(so) - 1
    while first > 0 and so[first - 1]:
        first -= 1
    return row[first].step
