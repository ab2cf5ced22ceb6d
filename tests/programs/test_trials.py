"""Loops of trainings: the folds of a cross-validation, and the trials of a tuner."""

from __future__ import annotations

import copy
from pathlib import Path

import keras
import numpy as np
import pytest

import tb_pastnet as pastnet
from tests.programs.programs import data, dense

STEPS = [1, 2, 4]


def model(units: int = 4) -> keras.Model:
    keras.utils.set_random_seed(6)
    made = dense(units, 1)
    made.compile(keras.optimizers.SGD(0.1), "mse")
    return made


@pytest.mark.parametrize("shared", [True, False], ids=["one callback", "a copy for each"])
def test_each_training_is_a_run_of_its_own(tmp_path: Path, shared: bool) -> None:
    """All begin with the same weights, which tells nothing apart."""
    callback = pastnet.PastNetCallback(tmp_path / "fold{trial}", every=2)
    x, y = data()
    ends = []
    for fold in range(3):
        own = callback if shared else copy.deepcopy(callback)
        made, rest = model(), np.arange(len(x)) % 3 != fold
        made.fit(x[rest], y[rest], 8, 1, verbose=0, shuffle=False, callbacks=[own])
        own.close()
        ends.append(np.asarray(made.layers[0].kernel))
    log = pastnet.read(tmp_path)
    assert sorted(log.runs) == ["fold1", "fold2", "fold3"]
    for run, kernel in zip(("fold1", "fold2", "fold3"), ends, strict=True):
        assert log.runs[run].steps.tolist() == STEPS
        norm = log.runs[run].variables["dense/kernel"].norm[-1]
        np.testing.assert_allclose(norm, np.linalg.norm(kernel, axis=0), rtol=0.023)
        assert not log.runs[run].violations


def test_trials_of_other_shapes_into_one_directory_are_runs_of_their_own(tmp_path: Path) -> None:
    x, y = data()
    for units in (4, 5, 6):
        callback = pastnet.PastNetCallback(tmp_path / "search", every=2)
        model(units).fit(x[:32], y[:32], 8, 1, verbose=0, shuffle=False, callbacks=[callback])
        callback.close()
    runs = pastnet.read(tmp_path).runs
    widths = {name: run.variables["dense/kernel"].norm.shape[1] for name, run in runs.items()}
    assert widths == {"search": 4, "search/search_2": 5, "search/search_3": 6}
