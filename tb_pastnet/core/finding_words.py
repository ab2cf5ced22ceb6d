"""The layers and runs that a finding is about, in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tb_pastnet.core.counted import counted, named
from tb_pastnet.core.finding_kinds import Finding, LayerFacts, RunFacts

_PARTS = 3
"""Groups of runs that a sentence tells apart."""

Members = Sequence[tuple[RunFacts, LayerFacts]]


def about_layers(
    kind: str,
    members: Members,
    channels: int | None,
    step: int | None,
    numbers: Mapping[str, int],
    text: str,
    shown_run: str,
    cause: str | None = None,
) -> Finding:
    """A finding about layers of runs; a single layer is where it is seen."""
    layers, runs = _ids(members)
    only = layers[0] if len(layers) == 1 else None
    return Finding(
        kind, cause, runs, layers, channels, step, numbers, text,
        "layer" if only else "network", shown_run, only,
    )  # fmt: skip


def about_runs(
    kind: str,
    names: tuple[str, ...],
    numbers: Mapping[str, int],
    text: str,
    step: int | None = None,
) -> Finding:
    """A finding about whole runs."""
    return Finding(kind, None, names, (), None, step, numbers, text, shown_run=names[0])


def _ids(members: Members) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The layers and the runs, each once."""
    layers = tuple(dict.fromkeys(layer.id for _, layer in members))
    return layers, tuple(dict.fromkeys(run.name for run, _ in members))


def pairs(members: Members) -> list[tuple[str, str]]:
    """The names of runs and layers."""
    return [(run.name, layer.id) for run, layer in members]


def where(pairs: Sequence[tuple[str, str]], several: bool) -> str:
    """Layers for a sentence, with their runs if there are several to choose from.

    Example:
        >>> where([("a", "conv"), ("a", "dense"), ("b", "conv"), ("b", "dense")], True)
        'conv and dense in a and b'
        >>> where([("a", "conv"), ("a", "dense"), ("b", "conv")], True)
        'a (conv and dense) and b (conv)'
    """
    if not several:
        return named(dict.fromkeys(layer for _, layer in pairs))
    layers_of: dict[str, dict[str, None]] = {}
    for run, layer in pairs:
        layers_of.setdefault(run, {})[layer] = None
    alike: dict[frozenset[str], list[str]] = {}
    for run, layers in layers_of.items():
        alike.setdefault(frozenset(layers), []).append(run)
    if len(alike) == 1:
        return f"{named(next(iter(layers_of.values())))} in {named(layers_of, 'run')}"
    return listed([(f"{named(r, 'run')} ({named(layers_of[r[0]])})", r) for r in alike.values()])


def listed(parts: Sequence[tuple[str, Sequence[str]]]) -> str:
    """Parts of a sentence, each about some runs: the first ones, and how many other runs."""
    texts = [text for text, _ in parts]
    if len(parts) <= _PARTS + 1:
        return named(texts)
    others = sum(len(runs) for _, runs in parts[_PARTS:])
    return named([*texts[:_PARTS], counted(others, "more run")])
