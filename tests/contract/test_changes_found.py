"""What is changed during a training is a finding: one sentence for each kind, over all runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tb_pastnet as pastnet

KERNELS = ("a/kernel", "b/kernel", "c/kernel")
PRUNED = np.ones((3, 4), bool)
PRUNED[:, 1] = False


def train(logdir: Path, first: int, last: int, declared: dict[int, dict[str, Any]]) -> None:
    rng = np.random.default_rng(first)
    arrays = {name: rng.normal(size=(3, 4)).astype("f4") for name in KERNELS}
    recorder = pastnet.numpy.Recorder(
        logdir,
        {name: lambda name=name: arrays[name] for name in KERNELS},  # type: ignore[misc]
        every=1,
        initial_step=first,
        learning_rate=lambda step: 0.1 if step <= 8 else 0.01,
    )
    held: dict[str, Any] = dict.fromkeys(KERNELS, True)
    kept: dict[str, Any] = dict.fromkeys(KERNELS, True)
    for step in range(first + 1, last + 1):
        change = declared.get(step, {})
        held.update(change.get("trainable", {}))
        kept.update(change.get("kept", {}))
        if change:
            recorder.declare(**change)
        for name in KERNELS:
            if held[name] is True:
                arrays[name] += 0.01
            arrays[name][...] = np.where(kept[name], arrays[name] + (arrays[name] == 0), 0)
        recorder.record(step)
    recorder.close()


@pytest.fixture(scope="module")
def changes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    logdir = tmp_path_factory.mktemp("log")
    declared = {
        3: {"trainable": {"a/kernel": False, "b/kernel": False}},
        4: {"kept": {"c/kernel": PRUNED}},
        6: {"trainable": {"a/kernel": True, "b/kernel": True}},
        7: {"kept": {"c/kernel": True}},
        9: {"trainable": {"a/kernel": False}},
    }
    train(logdir / "one", 0, 12, declared)
    train(logdir / "two", 0, 10, {})
    train(logdir / "two", 7, 12, {})
    found = pastnet.read(logdir).findings()
    assert len({finding.kind for finding in found}) == len(found)
    return {finding.kind: finding for finding in found if finding.severity == "change"}


@pytest.mark.parametrize(
    ("kind", "runs", "layers", "step", "channels"),
    [
        ("unfrozen", ["one"], ["b"], 6, 4),
        ("refrozen", ["one"], ["a"], 9, 4),
        ("reactivated", ["one"], ["c"], 7, 1),
        ("masks", ["one"], ["c"], 4, None),
        ("learning_rate", ["one", "two"], [], 9, None),
        ("resumed", ["two"], [], 8, None),
    ],
)
def test_each_kind_names_what_changed_and_when(
    changes: dict[str, Any], kind: str, runs: list[str], layers: list[str], step: int, channels: Any
) -> None:
    found = changes[kind]
    assert ([*found.runs], [*found.layers]) == (runs, layers)
    assert (found.first_step, found.channels) == (step, channels)


def test_a_training_without_changes_has_none(tmp_path: Path) -> None:
    train(tmp_path / "run", 0, 8, {})
    assert [f for f in pastnet.read(tmp_path).findings() if f.severity == "change"] == []
