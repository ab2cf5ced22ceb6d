"""A training that is killed and started again with BackupAndRestore, before or after our callback."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest

import tb_pastnet as pastnet
from tests.programs.programs import data, dense
from tests.programs.watched import Watch


class Killed(keras.callbacks.Callback):
    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        if int(self.model.optimizer.iterations) == 9:
            raise KeyboardInterrupt


def train(*callbacks: keras.callbacks.Callback) -> None:
    """What the script does, each time that it is started."""
    keras.utils.set_random_seed(5)
    model = dense(4, 1)
    model.compile(keras.optimizers.Adam(1e-2), "mse")
    x, y = data()
    model.fit(x, y, 8, 3, verbose=0, shuffle=False, callbacks=list(callbacks))


@pytest.mark.parametrize("first", [True, False], ids=["callback first", "backup first"])
def test_a_training_goes_on_where_its_backup_was(first: bool, tmp_path: Path) -> None:
    watch = Watch()
    train(watch)
    for more in ([Killed()], []):
        callback = pastnet.PastNetCallback(tmp_path / "log", every=2)
        backup = keras.callbacks.BackupAndRestore(tmp_path / "own")
        both = [callback, backup] if first else [backup, callback]
        try:
            train(*both, *more)
        except KeyboardInterrupt:
            assert more
        callback.close()
    run = pastnet.read(tmp_path / "log").runs["."]
    # Both begin with a record of their first step; the second went on from step 6.
    assert run.steps.tolist() == sorted({1, 7, *range(2, 19, 2)})
    # A killed run and its successor make the weights of one that was never killed.
    kernel = next(iter(watch.weights[0]))
    for record, step in enumerate(run.steps):
        now, past = watch.weights[step][kernel], watch.weights[step - 1][kernel]
        variable = run.variables["dense/kernel"]
        for recorded, value in ((variable.norm, now), (variable.delta_norm, now - past)):
            own = np.linalg.norm(value.astype("f8"), axis=0)
            np.testing.assert_allclose(recorded[record], own, rtol=0.023)
    assert not run.violations
