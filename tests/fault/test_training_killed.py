"""kill -9 while Keras trains: resumed from its checkpoint, the log goes on into the same picture."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.recorded import read_lineages

ROOT = Path(__file__).parents[2]
KILLS = 20

TRAINING = """
import os, sys
import keras, numpy as np
import tb_pastnet as pastnet

logdir, saved = sys.argv[1], sys.argv[2]
if os.path.exists(saved):
    model = keras.models.load_model(saved)
else:
    keras.utils.set_random_seed(0)
    model = keras.Sequential([keras.Input((6,)), keras.layers.Dense(8), keras.layers.Dense(1)])
    model.compile(keras.optimizers.Adam(0.01), "mse")
x = np.random.default_rng(0).normal(size=(40, 6))
y = x.sum(axis=1)

class Save(keras.callbacks.Callback):
    # Not BackupAndRestore: killed while it saves, it can't be restored.
    def on_train_batch_end(self, batch, logs=None):
        if callback.recorder.flush():
            print(callback.recorder.last_step, flush=True)
        if callback.recorder.last_step % 5 == 0:
            self.model.save(saved + ".new.keras")
            os.replace(saved + ".new.keras", saved)

callback = pastnet.PastNetCallback(logdir, every=1)
model.fit(x, y, epochs=200, batch_size=4, verbose=0, callbacks=[callback, Save()])
"""


@pytest.mark.prove
def test_kill_9_while_keras_trains(tmp_path):
    random.seed(7)
    acknowledged: list[int] = []
    for _ in range(KILLS):
        process = subprocess.Popen(
            [sys.executable, "-c", TRAINING, str(tmp_path / "log"), str(tmp_path / "saved.keras")],
            cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        for _ in range(random.randint(5, 40)):
            line = process.stdout.readline()
            assert line, process.communicate()[1]
            acknowledged.append(int(line))
        time.sleep(random.uniform(0, 0.01))
        process.kill()
        out, _ = process.communicate(timeout=60)
        acknowledged += [int(line) for line in out.split()]
    lineages = read_lineages(tmp_path / "log")
    assert len(lineages) == KILLS
    assert len({log.description.origin for log in lineages}) == 1
    for log in lineages:
        steps = log.record_steps()
        assert steps == list(range(steps[0], steps[0] + len(steps)))
        assert log.record_past_steps() == [step - 1 for step in steps]
    known = {step for log in lineages for step in log.record_steps()}
    assert set(acknowledged) <= known
    # Resumed at a checkpoint of five steps, each goes on where one before it was, without a gap.
    assert known == set(range(1, max(known) + 1))
    assert max(known) > KILLS
