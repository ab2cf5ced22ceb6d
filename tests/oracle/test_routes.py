"""The routes that figures are read from give the numbers that NumPy counts in the weights."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tests.oracle.cases import Case, cases_of, log_of
from tests.oracle.overlaps import of_layer
from tests.oracle.plain import STATES, Oracle
from tests.oracle.told import KINDS, Said, findings
from tests.tensorboards import LOADERS, Board, board

COUNT = 64


def check_records(here: Board, oracle: Oracle, case: Case) -> int:
    """The block of records that holds a step. Returns how many numbers were compared."""
    asked = {"run": case.run, "at": case.step, "count": COUNT, "th": repr(case.threshold)}
    header, arrays = here.arrays("/records", **asked)
    records = np.array(oracle.training.records)
    at = max(int((records <= case.step).sum()) - 1, 0) // COUNT * COUNT
    steps = records[at : at + COUNT]
    assert arrays["steps"].tolist() == steps.tolist()
    assert header["layers"] == list(oracle.layers)
    for row, layer in enumerate(header["layers"]):
        for column, step in enumerate(steps.tolist()):
            where = (case, layer, step)
            counts = arrays["counts"][row, column].tolist()
            found = oracle.at([layer], step, case.threshold)
            if found is None:
                channels = oracle.layers[layer].tensor.channels
                assert counts == [channels, *[0] * (len(STATES) - 1)], where
                assert math.isnan(arrays["mean_delta"][row, column]), where
                continue
            assert counts == list(found.counts), where
            assert step - int(arrays["age"][row, column]) == found.step == found.oldest, where
            for name in ("violated", "pruned"):
                assert arrays[name][row, column] == getattr(found, name), (name, *where)
            mean = arrays["mean_delta"][row, column]
            np.testing.assert_allclose(mean, found.mean_delta, rtol=1e-6, err_msg=str(where))
            assert header["prunable"][row] == found.prunable, where
    return int(sum(arrays[name].size for name in ("counts", "violated", "pruned")))


def check_findings(here: Board, oracles: list[Oracle]) -> int:
    told = here.json("/findings", run=[oracle.training.run for oracle in oracles])["findings"]
    expected = [json.loads(json.dumps(one._asdict())) for one in findings(oracles)]
    told = [{name: one[name] for name in Said._fields} for one in told if one["kind"] in KINDS]
    assert told == expected
    return len(told)


def check_overlaps(here: Board, oracles: dict[str, Oracle], case: Case, unit: str) -> int:
    """The overlap of two runs by layer, at a step."""
    asked = {"run": case.run, "other": case.other, "at": case.step, "unit": unit}
    mask = "kept" if case.step % 2 else "trainable"
    header, arrays = here.arrays("/overlap_layers", **asked, mask=mask)
    for row, layer in enumerate(header["layers"]):
        pair = oracles[case.run], oracles[case.other]
        expected = of_layer(pair, layer, case.step, unit, mask)
        told = [arrays[name][row, 0] for name in ("kept", "other_kept", "both")]
        np.testing.assert_array_equal(told, expected[:3], err_msg=f"{case} {unit} {mask} {layer}")
        for name, right, near in (("overlap", expected[3], 1e-6), ("chance", expected[4], 1e-4)):
            np.testing.assert_allclose(arrays[name][row, 0], right, rtol=near, err_msg=f"{case}")
        assert header["elements"][row] == expected[5]
    return 5 * len(header["layers"])


def check(folder: Path, seed: int, loader: str, count: int) -> int:
    trainings = log_of(seed, folder)
    oracles = {made.run: Oracle(made) for made in trainings}
    numbers = 0
    with board(folder, loader) as here:
        for case in cases_of(seed, trainings, count):
            numbers += check_records(here, oracles[case.run], case)
            numbers += check_findings(here, list(oracles.values()))
            for unit in ("weights", "channels"):
                numbers += check_overlaps(here, oracles, case, unit)
    return numbers


@pytest.mark.parametrize(("seed", "loader"), [(0, "slow"), (1, "fast"), (2, "fast"), (3, "fast")])
def test_routes_say_what_the_weights_say(seed: int, loader: str, tmp_path: Path) -> None:
    assert check(tmp_path, seed, loader, 5) > 0


@pytest.mark.prove
@pytest.mark.parametrize("loader", LOADERS)
def test_many_routes_say_what_the_weights_say(
    loader: str, tmp_path: Path, figure: Callable[[str], None]
) -> None:
    numbers = sum(check(tmp_path / str(seed), seed, loader, 10) for seed in range(30))
    figure(f"300 places, {loader} loader: {numbers:,} numbers as NumPy counts them in the weights")
