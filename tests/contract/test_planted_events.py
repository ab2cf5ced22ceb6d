"""One harmful event beside hundreds of harmless ones is among the first sentences."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tb_pastnet as pastnet
from tests.sampled import sampled

LAYERS, RUNS, STEPS = 50, 6, 24
Arrays = dict[str, np.ndarray]


@dataclass
class Plan:
    """What happens to the layers of a run."""

    rng: np.random.Generator
    settings: dict[str, Any] = field(default_factory=dict)
    declared: dict[int, dict[str, dict[str, Any]]] = field(default_factory=dict)
    # By layer the steps at which it moves; by default all.
    moves: dict[str, Callable[[int], bool]] = field(default_factory=dict)
    written: dict[int, Callable[[Arrays], None]] = field(default_factory=dict)
    kept: dict[str, tuple[int, np.ndarray]] = field(default_factory=dict)

    def declare(self, step: int, word: str, name: str, mask: Any) -> None:
        self.declared.setdefault(step, {}).setdefault(word, {})[name] = mask

    def freeze(self, name: str, begin: int, end: int = STEPS + 1) -> None:
        """Holds a layer at some steps."""
        self.declare(begin, "trainable", name, False)
        if end <= STEPS:
            self.declare(end, "trainable", name, True)
        self.moves[name] = lambda step: not begin <= step < end


def always(step: int) -> bool:
    return True


def harmless(plan: Plan, name: str) -> None:
    """Something that users do, or that happens in each training."""
    step = int(plan.rng.integers(2, STEPS - 2))
    kind = plan.rng.integers(5)
    if kind == 0:
        plan.freeze(name, step)
    elif kind == 1:
        plan.freeze(name, step, step + 2)
    elif kind == 2:
        mask = np.ones((3, 4), bool)
        mask[:, plan.rng.integers(4)] = False
        plan.declare(step, "kept", name, mask)
        plan.kept[name] = step, mask
    elif kind == 3:
        plan.moves[name] = lambda now: now < step or now % 3 == 0  # rarely, from then on


def leak(plan: Plan, name: str, step: int) -> str:
    plan.freeze(name, 1)
    plan.written[step] = lambda arrays: arrays[name].__setitem__((0, 2), 9.0)
    return "violations"


def regrow(plan: Plan, name: str, step: int) -> str:
    mask = np.ones((3, 4), bool)
    mask[:, 1] = False
    plan.declare(2, "kept", name, mask)
    plan.kept[name] = 2, mask
    plan.written[step] = lambda arrays: arrays[name].__setitem__((0, 1), 9.0)
    return "violations"


def nan(plan: Plan, name: str, step: int) -> str:
    plan.written[step] = lambda arrays: arrays[name].__setitem__((1, 3), np.nan)
    return "nonfinite"


def forgotten(plan: Plan, name: str, step: int) -> str:
    plan.settings["expect"] = {name: "frozen"}
    return "contradictions"


def idle(plan: Plan, name: str, step: int) -> str:
    plan.settings["expect"] = {name: "trains"}
    plan.moves[name] = lambda now: False
    return "contradictions"


def runaway(plan: Plan, name: str, step: int) -> str:
    """A target that never follows."""
    source = next(f"l{number:02}/kernel" for number in range(LAYERS) if f"l{number:02}" not in name)
    plan.settings["follows"] = {name: source}
    plan.moves[name] = lambda now: False
    plan.moves.pop(source, None)
    plan.kept.pop(source, None)
    for step_of in plan.declared.values():
        for masks in step_of.values():
            masks.pop(source, None)
    return "follows"


EVENTS = (leak, regrow, nan, forgotten, idle, runaway)


def train(logdir: Path, plan: Plan, names: list[str]) -> None:
    arrays = {name: plan.rng.normal(size=(3, 4)).astype("f4") for name in names}
    recorder = pastnet.numpy.Recorder(
        logdir,
        {name: lambda name=name: arrays[name] for name in names},  # type: ignore[misc]
        every=1,
        initial_step=0,
        learning_rate=lambda step: 0.1 if step < 12 else 0.01,
        **plan.settings,
    )
    for step in range(1, STEPS + 1):
        for word, masks in plan.declared.get(step, {}).items():
            recorder.declare(**{word: masks})
        for name in names:
            if plan.moves.get(name, always)(step):
                arrays[name] += plan.rng.normal(0, 0.01, (3, 4)).astype("f4")
        for name, (begin, mask) in plan.kept.items():
            if step >= begin:
                arrays[name] *= mask
        if step in plan.written:
            plan.written[step](arrays)
        recorder.record(step)
    recorder.close()


@pytest.mark.parametrize("seed", sampled(range(40), 13))
def test_a_harmful_event_is_among_the_first_sentences(tmp_path: Path, seed: int) -> None:
    rng = np.random.default_rng(seed)
    names = [f"l{number:02}/kernel" for number in range(LAYERS)]
    where, layer = int(rng.integers(RUNS)), str(rng.choice(names))
    kind = ""
    for number in range(RUNS):
        plan = Plan(np.random.default_rng((seed, number)))
        for name in names:
            if number != where or name != layer:
                harmless(plan, name)
        if number == where:
            kind = EVENTS[seed % len(EVENTS)](plan, layer, int(rng.integers(5, STEPS - 1)))
        train(tmp_path / f"run{number}", plan, names)
    found = pastnet.read(tmp_path).findings()
    first = [each for each in found[:3] if each.kind == kind]
    assert [(each.runs, each.layers) for each in first] == [((f"run{where}",), (layer[:3],))]
    # Nothing else is called harmful. What is expected to train may be stalled as well.
    harm = {(each.runs, each.layers) for each in found if each.severity == "harm"}
    assert harm == {(first[0].runs, first[0].layers)}
