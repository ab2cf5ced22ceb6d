"""`pastnet.read` gives the numbers that plain NumPy counts in the weights."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import tb_pastnet as pastnet
from tests.oracle.cases import cases_of, log_of
from tests.oracle.plain import STATES, Oracle, value
from tests.oracle.told import KINDS, Said, findings

STATISTICS = (
    "norm", "past_norm", "delta_norm", "delta_max", "changed", "nonfinite", "kept", "trainable",
)  # fmt: skip
same = np.testing.assert_array_equal


def check(folder: Path, seed: int) -> int:
    """Compares one log, at all of its steps. Returns how many numbers."""
    trainings = log_of(seed, folder)
    log = pastnet.read(folder)
    oracles = [Oracle(made) for made in trainings]
    assert list(log.runs) == [made.run for made in trainings]
    threshold = cases_of(seed, trainings, 1)[0].threshold
    count = sum(check_run(log, oracle, threshold) for oracle in oracles)
    return count + check_findings(log, oracles)


def check_run(log: pastnet.log.Log, oracle: Oracle, threshold: float) -> int:
    made, count = log.runs[oracle.training.run], 0
    overview = made.overview(threshold)
    assert made.steps.tolist() == overview.steps.tolist() == oracle.training.records
    for at, (layer, own) in enumerate(oracle.layers.items()):
        places = np.searchsorted(overview.steps, own.steps)
        for record, place in enumerate(places):
            figures = oracle.at_record(layer, record, threshold)
            told = [int(getattr(overview, name)[place, at]) for name in STATES[1:]]
            assert told == list(figures.counts[1:]), (layer, figures.step)
            assert overview.violated[place, at] == figures.violated, (layer, figures.step)
            mean = overview.mean_delta[place, at]
            np.testing.assert_allclose(mean, figures.mean_delta, rtol=1e-6)
            assert overview.pruned_weights[place, at] == figures.pruned
        without = np.delete(np.arange(len(overview.steps)), places)
        assert not any(getattr(overview, name)[without, at].any() for name in STATES[1:])
        prunable = oracle.at_record(layer, 0, threshold).prunable
        assert (overview.channels[at], overview.prunable_weights[at]) == (
            own.tensor.channels,
            prunable,
        )
        count += 9 * len(overview.steps)
    same(made.sparsity, [oracle.sparsity(int(step)) for step in overview.steps])
    for own in oracle.variables():
        records = made.variables[own.tensor.id]
        same(records.steps, own.steps)
        same(records.past_steps, own.past_steps)
        for name in STATISTICS:
            stored = getattr(own, name)
            expected = stored if name == "nonfinite" else value(stored)
            expected = np.where(own.missing(name), np.nan, expected)
            np.testing.assert_allclose(getattr(records, name), expected, rtol=1e-12, err_msg=name)
        np.testing.assert_allclose(records.relative_delta, value(own.delta), rtol=1e-12)
        same(records.states(threshold), np.array(STATES)[own.states(threshold)])
        same(records.violated, own.violated)
        count += 11 * own.norm.size
    return count


def check_findings(log: pastnet.log.Log, oracles: list[Oracle]) -> int:
    listed = [one for one in log.findings() if one.kind in KINDS]
    told = [Said(*(getattr(one, name) for name in Said._fields)) for one in listed]
    assert told == findings(oracles)
    for oracle in oracles:
        run = log.runs[oracle.training.run]
        own = [one.text for one in run.findings() if one.kind in KINDS]
        assert own == [one.text for one in findings([oracle])]
    return len(told)


@pytest.mark.parametrize("seed", range(6))
def test_read_says_what_the_weights_say(seed: int, tmp_path: Path) -> None:
    assert check(tmp_path, seed) > 0


@pytest.mark.prove
def test_many_logs_say_what_the_weights_say(tmp_path: Path, figure: Callable[[str], None]) -> None:
    numbers = sum(check(tmp_path / str(seed), seed) for seed in range(100))
    figure(f"100 logs read back: {numbers:,} numbers as NumPy counts them in the weights")
