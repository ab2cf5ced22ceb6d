"""A Keras training that is to be ended: `python -m tests.fault.training`, an order a line.

It imports Keras once and forks a process for each order, `[logdir, checkpoint, steps, end]`, which
resumes where the checkpoint is, prints each step that a flush acknowledged, and ends as told.
TensorFlow doesn't compute anything before the fork, so that each child has threads of its own.
"""

from __future__ import annotations

import gc
import json
import os
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import keras
import numpy as np

import tb_pastnet as pastnet
from tb_pastnet.core.numba_switch import numba_kernels

AT = 12
"""The step at which a training ends that isn't killed from outside."""

X = np.random.default_rng(0).normal(size=(4, 6))


class Save(keras.callbacks.Callback):
    """Tells what is acknowledged, and saves each fifth step."""

    def __init__(self, observer: pastnet.PastNetCallback, saved: str, end: str) -> None:
        super().__init__()
        self.observer, self.saved, self.end = observer, saved, end

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        recorder = self.observer.recorder
        if recorder.flush():
            tell(recorder.last_step)
        if self.saved and recorder.last_step % 5 == 0:
            # Not BackupAndRestore: killed while it saves, it can't be restored.
            new = Path(f"{self.saved}.new.keras")
            self.model.save(new)
            new.replace(self.saved)
        if recorder.last_step == AT:
            ENDS[self.end](self.model)


def tell(what: Any) -> None:
    """A line, at once and whole."""
    os.write(1, f"{json.dumps(what)}\n".encode())


def fail() -> None:
    raise RuntimeError("the training failed")


def fork(model: Any) -> None:
    """A child that goes on as if it were the parent: with our callback, and its own records."""
    child = os.fork()
    if child == 0:
        for step in range(1000, 1020):
            observer.recorder.record(step)
        observer.recorder.flush()
        observer.on_train_batch_begin(0)
        observer.on_train_batch_end(0)
        observer.on_train_end()
        observer.close()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0


ENDS = {
    "": lambda model: None,
    "raise": lambda model: fail(),
    "exit": lambda model: sys.exit(3),
    "_exit": lambda model: os._exit(4),
    "sigterm": lambda model: os.kill(os.getpid(), signal.SIGTERM),
    "interrupt": lambda model: signal.raise_signal(signal.SIGINT),
    "thread": lambda model: threading.Thread(target=observer.recorder.flush).start(),
    "fork": fork,
}


def train(logdir: str, saved: str, steps: int, end: str) -> None:
    global observer  # noqa: PLW0603 - what ends it needs it
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if saved and Path(saved).exists():
        model = keras.models.load_model(saved)
    else:
        keras.utils.set_random_seed(0)
        model = keras.Sequential([keras.Input((6,)), keras.layers.Dense(8), keras.layers.Dense(1)])
        model.compile(keras.optimizers.Adam(0.01), "mse")
    observer = pastnet.PastNetCallback(logdir, every=1)
    # Unshuffled, and one batch an epoch: resumed at any step, the next batch is the same.
    epochs = steps - int(model.optimizer.iterations)
    saving = [observer, Save(observer, saved, end)]
    settings = {"batch_size": 4, "shuffle": False, "verbose": 0}
    model.fit(X, X.sum(axis=1), epochs=epochs, callbacks=saving, **settings)


def main(train: Callable[..., None] = train) -> None:
    """Trains for each order, in a process of its own."""
    numba_kernels("NumPy")  # here: each child would import it when it needs it
    gc.freeze()  # and look for garbage in all that is imported, seconds long, as it ends
    for line in sys.stdin:
        child = os.fork()
        if child:
            tell({"pid": child})
            status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            tell({"status": status})
            continue
        sys.stdin.close()
        train(*json.loads(line))
        return


if __name__ == "__main__":
    main()
