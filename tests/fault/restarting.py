"""A training that starts again, in four frameworks: an order is `[logdir, room, how, store, seed, kill]`.

It says each time which steps a flush has acknowledged that no restart has replaced, and kills itself
after a number of these, or ends. Orders are those of `tests.fault.training`.
"""

from __future__ import annotations

import itertools
import os
import random
import signal
import threading
from collections.abc import Callable
from typing import Any

import jax
import keras
import numpy as np
import torch
import torch._dynamo  # an optimizer imports it

import tb_pastnet as pastnet
from tb_pastnet.record import segments
from tests.fault.training import main, tell
from tests.slow_store import SlowFileSystem

ROOMS = ("keras", "torch", "jax", "numpy")
HOWS = ("restart", "back", "fit")
STORES = ("disk", "slow", "refusing")
IMPORTED = [room.Recorder for room in (pastnet, pastnet.torch, pastnet.jax, pastnet.numpy)]
"""Before the fork: each child would import them."""
STEPS = 24
SHAPE = (6, 40)


class Ledger:
    """What must be readable: the steps that were recorded and not replaced, once acknowledged."""

    def __init__(self, luck: random.Random, kill: int | None) -> None:
        self.recorded: list[int] = []
        self._luck, self._kill = luck, kill
        self._told = 0
        self._acknowledged: list[int] = []

    def go_back(self, step: int) -> None:
        """The next record replaces all from its step on: says what is left of the acknowledged."""
        if self._acknowledged and self._acknowledged[-1] >= step:
            self._acknowledged = [each for each in self._acknowledged if each < step]
            tell(self._acknowledged)

    def add(self, step: int, recorder: Any) -> None:
        """A step was recorded: flushes now and then."""
        self.recorded = [each for each in self.recorded if each < step] + [step]
        if self._luck.random() < 0.3:
            self.flush(recorder)

    def flush(self, recorder: Any) -> None:
        """Says what is acknowledged, and is killed in its turn: right then, or a little later."""
        if recorder.flush(self._luck.choice((0.05, 20.0))):
            self._acknowledged = self.recorded
            tell(self.recorded)
            self._told += 1
        if self._kill is not None and self._told >= self._kill:
            end = lambda: os.kill(os.getpid(), signal.SIGKILL)  # noqa: E731 - for a thread as well
            if self._luck.random() < 0.5:
                end()
            threading.Timer(self._luck.random() / 20, end).start()


def numpy_room(logdir: str) -> tuple[Any, Callable[[int], None]]:
    weight = np.ones(SHAPE, np.float32)
    recorder = pastnet.numpy.Recorder(logdir, {"a/kernel": lambda: weight}, every=1)

    def step(number: int) -> None:
        np.multiply(weight, 1.01, out=weight)
        recorder.record(number)

    return recorder, step


def torch_room(logdir: str) -> tuple[Any, Callable[[int], None]]:
    torch.set_num_threads(1)
    model = torch.nn.Linear(*SHAPE)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    recorder = pastnet.torch.Recorder(logdir, model, optimizer, every=1)

    def step(number: int) -> None:
        model(torch.ones(2, SHAPE[0])).sum().backward()
        optimizer.step()
        recorder.record(number)

    return recorder, step


def jax_room(logdir: str) -> tuple[Any, Callable[[int], None]]:
    params = {"a": {"kernel": jax.numpy.ones(SHAPE)}}
    recorder = pastnet.jax.Recorder(logdir, params, every=1)

    def step(number: int) -> None:
        params["a"]["kernel"] = params["a"]["kernel"] * 1.01
        recorder.record(number, params)

    recorder.again = lambda number: recorder.restart(number, params)
    return recorder, step


def keras_room(logdir: str) -> tuple[Any, Callable[[int], None]]:
    weight = keras.Variable(np.ones(SHAPE), name="kernel")
    recorder = pastnet.Recorder(logdir, {"a/kernel": weight}, every=1)

    def step(number: int) -> None:
        weight.assign(weight * 1.01)
        recorder.record(number)

    return recorder, step


class Follow(keras.callbacks.Callback):
    """Tells a ledger of each step of `fit`."""

    def __init__(self, observer: pastnet.PastNetCallback, ledger: Ledger) -> None:
        super().__init__()
        self._observer, self._ledger = observer, ledger

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        recorder = self._observer.recorder
        self._ledger.add(recorder.last_step, recorder)


def fit_twice(logdir: str, ledger: Ledger) -> Any:
    """Keras's own second `fit`; after each of them the model moves."""
    model = keras.Sequential([keras.Input((SHAPE[0],)), keras.layers.Dense(SHAPE[1], name="a")])
    model.compile("sgd", "mse")
    observer = pastnet.PastNetCallback(logdir, every=1)
    x, y = np.ones((STEPS, SHAPE[0]), "f"), np.ones((STEPS, SHAPE[1]), "f")
    for _ in range(2):
        callbacks = [observer, Follow(observer, ledger)]
        model.fit(x, y, batch_size=2, verbose=0, shuffle=False, callbacks=callbacks)
        model.layers[0].kernel.assign_add(np.ones(SHAPE))
    return observer.recorder


def loop(room: str, logdir: str, how: str, luck: random.Random, ledger: Ledger) -> Any:
    """An own loop, that starts again now and then."""
    recorder, step = globals()[f"{room}_room"](logdir)
    number = 0
    for _ in range(STEPS):
        number += 1
        step(number)
        ledger.add(number, recorder)
        if number > 2 and luck.random() < 0.25:
            number = number - luck.randrange(2) if how == "back" else number
            if how != "back":
                getattr(recorder, "again", recorder.restart)(number)
            else:
                number -= 1
                ledger.go_back(number + 1)
    return recorder


def train(logdir: str, room: str, how: str, store: str, seed: int, kill: int | None) -> None:
    """Trains, and says at its end how many records were due, and whether all are written."""
    luck = random.Random(seed)
    segments.PUT_SECONDS = segments.ObjectSegments.retry_seconds = (0.02, 0.1)
    segments.LocalSegments.retry_seconds = (0.02, 0.1)
    SlowFileSystem.seconds = 0.03 if store == "slow" else 0.0
    puts = itertools.count()
    if store == "refusing":
        SlowFileSystem.refuses = staticmethod(lambda: next(puts) % 12 in range(3, 9))
    url = logdir if store == "disk" else f"slow://{logdir}"
    ledger = Ledger(luck, kill)
    fits = room == "keras" and how == "fit"
    recorder = fit_twice(url, ledger) if fits else loop(room, url, how, luck, ledger)
    recorder.close(20.0)
    if fits:  # the weights moved after the last step: they have a record of their own
        ledger.recorded.append(recorder.last_step + 1)
    due, written = recorder.records, recorder.flush()
    tell({"due": due, "written": written, "standing": ledger.recorded})


if __name__ == "__main__":
    main(train)
