"""Overlaps in both loaders: the numbers are those of an independent count."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.both_loaders import in_both
from tests.containers import unpack
from tests.masked_runs import MaskedRun, random_changes, ratio
from tests.sampled import sampled
from tests.tensorboards import Board

LAYERS = {"conv1": 4, "block/conv2": 6, "block/conv3": 11}
OTHERS = {"block/conv3": 11, "conv1": 5, "block/conv2": 6, "extra": 3}
RUNS = [
    MaskedRun("a", LAYERS, lineage=1, changes=random_changes(1, LAYERS, 40, 60)),
    MaskedRun("b", LAYERS, range(5, 36, 3), lineage=2, changes=random_changes(2, LAYERS, 40, 60)),
    MaskedRun("c", LAYERS, lineage=3, still=("block/conv2",)),
    MaskedRun("d", OTHERS, range(2, 41, 2), lineage=4, changes=random_changes(4, OTHERS, 40, 60)),
    MaskedRun("e", LAYERS, origin="other", lineage=5, changes=random_changes(5, LAYERS, 40, 60)),
    MaskedRun("f", {"lonely": 2}, lineage=6),
]
NAMES = [run.name for run in RUNS]
KINDS = [(unit, mask) for unit in ("weights", "channels") for mask in ("kept", "trainable")]


@pytest.fixture(scope="module")
def logdir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("log")
    for run in RUNS:
        run.write(found)
    return found


def right_run(run: MaskedRun, step: int, unit: str, mask: str) -> dict[str, Any]:
    at = run.record(step)
    sets = run.sets(at or 0, unit, mask).values()
    return {
        "name": run.name,
        "step": at,
        "origin": run.origin,
        "kept": None if at is None else sum(int(one.sum()) for one in sets),
        "elements": sum(one.size for one in sets),
    }


def right_pair(
    a: int, b: int, step: int, unit: str, mask: str, layer: str | None
) -> dict[str, Any]:
    one, other = RUNS[a], RUNS[b]
    ids = {*one.layers, *other.layers} if layer is None else {layer}
    both = [x for x in ids if x in one.layers and one.layers[x] == other.layers.get(x)]
    steps = one.record(step), other.record(step)
    reason = None
    if one.origin != other.origin:
        reason = "origin"
    elif not both:
        reason = "layers"
    elif None in steps:
        reason = "no record"
    found: dict[str, Any] = dict.fromkeys(("overlap", "chance", "intersection", "union"))
    if reason is None:
        sets = [r.sets(at, unit, mask) for r, at in zip((one, other), steps, strict=True)]
        numbers = ratio(*([each[x] for x in both] for each in sets))
        found = dict(zip(("intersection", "union", "overlap", "chance"), numbers, strict=True))
    return {
        "a": a,
        "b": b,
        "comparable": reason is None,
        "reason": reason,
        "layers": len(both),
        "unmatched": len(ids) - len(both),
        **found,
    }


@pytest.mark.parametrize(("unit", "mask"), KINDS)
def test_all_pairs_at_many_steps(logdir: Path, unit: str, mask: str) -> None:
    def look(here: Board) -> Any:
        answers = []
        for step in range(0, 45, 4):
            found = here.json("/overlap", run=NAMES, step=step, unit=unit, mask=mask)
            assert (found["unit"], found["mask"], found["step"]) == (unit, mask, step)
            assert found["notes"] == []
            answers.append((step, found["runs"], found["pairs"]))
        return answers

    comparable = 0
    for step, runs, pairs in in_both(logdir, look):
        assert runs == [right_run(run, step, unit, mask) for run in RUNS]
        for pair, (a, b) in zip(pairs, combinations(range(len(RUNS)), 2), strict=True):
            right = right_pair(a, b, step, unit, mask, None)
            assert pair == {**right, **near(right)}, (step, a, b)
            comparable += pair["comparable"]
    assert comparable > 50


def near(pair: dict[str, Any]) -> dict[str, Any]:
    """Quotients to the last digits but two: sums differ in the order of their parts."""
    return {
        name: pytest.approx(pair[name], rel=1e-4 if name == "chance" else 1e-12)
        for name in ("overlap", "chance")
        if pair[name] is not None
    }


@pytest.mark.parametrize(("unit", "mask"), KINDS)
@pytest.mark.parametrize("layer", ["block/conv2", "conv1"])
def test_one_layer(logdir: Path, unit: str, mask: str, layer: str) -> None:
    names = ["a", "b", "c", "d"]

    def look(here: Board) -> Any:
        query = {"run": names, "layer": layer, "unit": unit, "mask": mask}
        return [here.json("/overlap", step=step, **query) for step in range(5, 40, 7)]

    for found in in_both(logdir, look):
        step = found["step"]
        assert found["layer"] == layer
        for run, told in zip(RUNS[:4], found["runs"], strict=True):
            array = run.sets(run.record(step), unit, mask)[layer]
            assert (told["kept"], told["elements"]) == (array.sum(), array.size)
        for pair in found["pairs"]:
            right = right_pair(pair["a"], pair["b"], step, unit, mask, layer)
            assert pair == {**right, **near(right)}


def columns(one: MaskedRun, other: MaskedRun, most: int) -> list[tuple[int, int]]:
    """Even ranges of steps, those without a record left out."""
    steps = np.array(sorted({*one.steps, *other.steps}))
    if len(steps) <= most:
        return [(int(step), int(step)) for step in steps]
    edges = np.linspace(steps[0], steps[-1] + 1, most + 1)
    parts = [steps[(steps >= edges[at]) & (steps < edges[at + 1])] for at in range(most)]
    return [(int(part[0]), int(part[-1])) for part in parts if len(part)]


# At each change every pair, and every kind.
@pytest.mark.parametrize(
    ("unit", "mask", "pair"),
    sampled(((*kind, pair) for pair in ("ab", "ba", "ac", "bd", "ae", "af") for kind in KINDS), 3),
)
def test_layers_over_steps(logdir: Path, unit: str, mask: str, pair: str) -> None:
    one, other = (RUNS[NAMES.index(name)] for name in pair)
    query = {"run": one.name, "other": other.name, "unit": unit, "mask": mask}

    def look(here: Board) -> Any:
        return [(n, here.get("/overlap_layers", cols=n, **query).get_data()) for n in (7, 256)]

    for most, data in in_both(logdir, look):
        check(one, other, (unit, mask), (columns(one, other, most), *unpack(data)))


def check(one: MaskedRun, other: MaskedRun, kind: tuple[str, str], answer: Any) -> None:
    ends, header, arrays = answer
    matched = [x for x in one.layers if one.layers[x] == other.layers.get(x)]
    same = one.origin == other.origin
    assert header["layers"] == matched
    assert set(header["unmatched"]) == {*one.layers, *other.layers} - set(matched)
    weights = 9 if kind[0] == "weights" else 1
    assert header["elements"] == [weights * one.layers[x] for x in matched]
    reason = None if same and matched else "layers" if same else "origin"
    assert (header["comparable"], header["reason"]) == (reason is None, reason)
    assert list(zip(arrays["first_steps"], arrays["steps"], strict=True)) == ends
    for at, (first, last) in enumerate(ends):
        sets = []
        for run in (one, other):
            # What stands at the end of the column, if it hasn't ended before it begins.
            record = run.record(last)
            ended = run.ended(first) and (record is None or record < first)
            sets.append(None if record is None or ended else run.sets(record, *kind))
        for row, layer in enumerate(matched):
            a, b = (None if each is None else each[layer] for each in sets)
            cell = {name: arrays[name][row][at] for name in arrays if "steps" not in name}
            right = dict.fromkeys(cell, np.nan)
            right["kept"] = np.nan if a is None else a.sum()
            right["other_kept"] = np.nan if b is None else b.sum()
            if a is not None and b is not None and same:
                both, _, overlap, chance = ratio([a], [b])
                right |= {"both": both, "overlap": overlap, "chance": chance}
            chance = pytest.approx(right.pop("chance"), rel=1e-4, nan_ok=True)
            assert cell.pop("chance") == chance, (layer, first, last)
            assert cell == pytest.approx(right, rel=1e-6, nan_ok=True), (layer, first, last)


@pytest.mark.parametrize(("unit", "mask"), KINDS)
@pytest.mark.parametrize("pair", ["ab", "bd", "ae"])
def test_layers_exactly_at_a_step(logdir: Path, unit: str, mask: str, pair: str) -> None:
    """Of each run its newest record at or before the step, also after it has ended."""
    one, other = (RUNS[NAMES.index(name)] for name in pair)
    query = {"run": one.name, "other": other.name, "unit": unit, "mask": mask}

    def look(here: Board) -> Any:
        return [
            (at, here.get("/overlap_layers", at=at, cols=3, **query).get_data())
            for at in (-1, 0, 1, 2, 4, 5, 6, 17, 36, 38, 40, 99)
        ]

    for at, data in in_both(logdir, look):
        header, arrays = unpack(data)
        records = [run.record(at) for run in (one, other)]
        assert header["at"] == records
        assert arrays["first_steps"].tolist() == arrays["steps"].tolist() == [at]
        assert header["layers"] == [x for x in one.layers if one.layers[x] == other.layers.get(x)]
        for row, layer in enumerate(header["layers"]):
            a, b = (
                None if record is None else run.sets(record, unit, mask)[layer]
                for run, record in zip((one, other), records, strict=True)
            )
            cell = {name: arrays[name][row][0] for name in arrays if "steps" not in name}
            right = dict.fromkeys(cell, np.nan)
            right["kept"] = np.nan if a is None else a.sum()
            right["other_kept"] = np.nan if b is None else b.sum()
            if a is not None and b is not None and one.origin == other.origin:
                both, _, overlap, chance = ratio([a], [b])
                right |= {"both": both, "overlap": overlap, "chance": chance}
            chance = pytest.approx(right.pop("chance"), rel=1e-4, nan_ok=True)
            assert cell.pop("chance") == chance, (layer, at)
            assert cell == pytest.approx(right, rel=1e-6, nan_ok=True), (layer, at)


@pytest.mark.parametrize("unit", ["weights", "channels"])
def test_a_restart_takes_the_masks_of_the_later_lineage(tmp_path: Path, unit: str) -> None:
    """Run "b" is written by two lineages: the later one began again at step 21."""
    layers = {"conv1": 4, "conv2": 7}
    parts = [random_changes(seed, layers, 40, 20) for seed in (11, 12, 13)]
    one = MaskedRun("a", layers, lineage=1, changes=parts[0])
    early = MaskedRun("b", layers, range(1, 33), lineage=2, changes=parts[1])
    late = MaskedRun("b", layers, range(21, 41), lineage=3, ordinal=2, changes=parts[2])
    for run in (one, early, late):
        run.write(tmp_path)
    found = in_both(
        tmp_path,
        lambda here: [
            here.json("/overlap", run=["a", "b"], step=step, unit=unit) for step in range(1, 41)
        ],
    )
    for step, answer in zip(range(1, 41), found, strict=True):
        two = early if step < 21 else late
        sets = [run.sets(step, unit, "kept").values() for run in (one, two)]
        (pair,) = answer["pairs"]
        numbers = [pair[name] for name in ("intersection", "union", "overlap", "chance")]
        *right, chance = ratio(*sets)
        assert numbers.pop() == pytest.approx(chance, rel=1e-4)
        assert numbers == pytest.approx(right, rel=1e-12)
        assert [run["kept"] for run in answer["runs"]] == [sum(x.sum() for x in s) for s in sets]
