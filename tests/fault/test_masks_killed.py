"""kill -9 in the middle of a fit: resumed from Keras's backup, masks and held values are as they were."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.interpreter import Interpreter

TRAINING = """
import json, os, signal
import keras
import tb_pastnet as pastnet
from tests import masked

optimizer = keras.optimizers.AdamW(0.05, weight_decay=0.1, global_clipnorm=0.5, use_ema=True)
model = masked.network(optimizer=optimizer)
masks = pastnet.Masks(model)

def state():
    return {
        "masks": {n: [masks.kept[n].tolist(), masks.trainable[n].tolist()] for n in masked.SHAPES},
        "held": {n: held.hex() for n, held in masked.held_bits(model, masks).items()},
        "weights": {n: value.tobytes().hex() for n, value in masked.values(model).items()},
    }

class Change(keras.callbacks.Callback):
    def on_epoch_begin(self, epoch, logs=None):
        if not told:
            told.append({"epoch": epoch, "resumed": bool(masks.resumed), **state()})
        if epoch == 1:
            masked.hold_some(masks)
        if epoch == 4:
            masks.prune("one/kernel", channels=[4])
            masks.thaw("one/bias")

    def on_epoch_end(self, epoch, logs=None):
        told.append(state())

    def on_train_batch_end(self, batch, logs=None):
        if int(optimizer.iterations) == kill_at:
            tell()
            os.kill(os.getpid(), signal.SIGKILL)

def tell():
    with open(answer, "w") as file:
        json.dump(told, file)

told = []
keeping = keras.callbacks.BackupAndRestore(backup)
model.fit(*masked.data(32), batch_size=8, epochs=8, shuffle=False, verbose=0,
          callbacks=[keeping, Change()])
tell()
"""


def train(backup: Path, kill_at: int) -> list[dict[str, object]]:
    """What a training tells: its state where it began, and at the end of each epoch."""
    answer = backup.with_suffix(".json")
    process, given = Interpreter(), {"backup": str(backup), "answer": str(answer)}
    if kill_at:
        with pytest.raises(AssertionError, match="the process ended"):
            process.run(TRAINING, kill_at=kill_at, **given)
    else:
        process.run(TRAINING, kill_at=None, **given)
    process.close()
    told: list[dict[str, object]] = json.loads(answer.read_text())
    answer.unlink()
    return told


@pytest.mark.promise("kill_9")
@pytest.mark.parametrize(
    "kills", [(10, 23), pytest.param((10, 19, 23), marks=pytest.mark.prove)], ids=str
)
def test_a_killed_training_goes_on_with_its_masks(tmp_path, kills):
    """Killed within epochs of four batches each, after masks were set in 1 and in 4; a whole one beside it."""
    whole = train(tmp_path / "whole", 0)[1:]
    assert len(whole) == 8
    assert whole[7]["held"] != whole[1]["held"]
    begun = 0
    for kill_at in (*kills, 0):
        start, *ends = train(tmp_path / "killed", kill_at)
        assert start["epoch"] == begun
        if begun:
            assert start["resumed"]
            for key in ("masks", "held", "weights"):
                assert start[key] == whole[begun - 1][key]
        # The same masks and weights, bit by bit, as those of a training that was never killed.
        assert ends == whole[begun : begun + len(ends)]
        begun = kill_at // 4 if kill_at else begun + len(ends)
    assert begun == 8
