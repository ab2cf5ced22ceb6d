"""kill -9 while Keras trains: resumed from its checkpoint, the log goes on into the same picture.

The same picture is that of a training that nobody killed: the same states and deltas at each step.
"""

from __future__ import annotations

import random
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from tests.recorded import read_lineages
from tests.tensorboards import LOADERS, board

pytestmark = pytest.mark.promise("kill_9")

ROOT = Path(__file__).parents[2]
KILLS = 20

TRAINING = """
import os, sys
import keras, numpy as np
import tb_pastnet as pastnet

logdir, saved = sys.argv[1], sys.argv[2]
if saved and os.path.exists(saved):
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
# Unshuffled, and one batch an epoch: resumed at any step, the next batch is the same.
saving = [Save()] if saved else []
epochs = int(sys.argv[3]) - int(model.optimizer.iterations)
model.fit(x[:4], y[:4], epochs=epochs, batch_size=4, shuffle=False, verbose=0,
          callbacks=[callback, *saving])
"""


def command(logdir: Path, saved: str, steps: int) -> list[str]:
    return [sys.executable, "-c", TRAINING, str(logdir), saved, str(steps)]


@pytest.mark.prove
def test_kill_9_while_keras_trains(tmp_path):
    random.seed(7)
    acknowledged: list[int] = []
    for _ in range(KILLS):
        process = subprocess.Popen(
            command(tmp_path / "killed", str(tmp_path / "saved.keras"), 2000),
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
    lineages = read_lineages(tmp_path / "killed")
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
    same_picture(tmp_path, max(known))


def same_picture(logdir: Path, steps: int) -> None:
    """What the tab shows is what it shows of the same training, never killed."""
    done = subprocess.run(
        command(logdir / "whole", "", steps), cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    for loader in LOADERS:
        with board(logdir, loader) as here:
            runs = {run["name"]: run for run in here.json("/index")["runs"]}
            assert set(runs) == {"killed", "whole"}
            assert len(runs["killed"]["lineages"]) == KILLS
            assert runs["killed"]["records"] == steps
            assert runs["killed"]["origin"] == runs["whole"]["origin"]
            for layer in ("dense", "dense_1"):
                _, whole = here.arrays("/layer", run="whole", layer=layer)
                header, killed = here.arrays("/layer", run="killed", layer=layer)
                assert header["account"]["unreadable"] == 0
                for name in ("steps", "past_steps", "state", "delta"):
                    np.testing.assert_array_equal(killed[name], whole[name])
