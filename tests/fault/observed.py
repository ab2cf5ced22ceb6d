"""A Keras training of some seconds that is observed in every way, while calls inside us fail."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import keras
import numpy as np
import tensorflow as tf

from tb_pastnet import Masks, PastNetCallback
from tests.fault.injected import Injector, Point

STEPS = 60
X = np.random.default_rng(0).normal(size=(40, 6)).astype("f")
ERRORS = (RuntimeError, MemoryError, OSError, KeyError)


class Trained(NamedTuple):
    """What came of it: bytes of the weights, and what was aimed at and raised."""

    losses: list[float]
    weights: list[bytes]
    raised: list[Point]
    silent: int


@contextlib.contextmanager
def eagerly() -> Iterator[None]:
    """Runs every tf.function as Python, so that each call in it can fail at each step."""
    tf.config.run_functions_eagerly(True)
    try:
        yield
    finally:
        tf.config.run_functions_eagerly(False)


def train(
    logdir: Path | None,
    points: Sequence[Point] = (),
    injector: Injector | None = None,
    **settings: Any,
) -> Trained:
    """Trains; with a log directory it is observed, and a point fails each second step."""
    keras.utils.set_random_seed(1)
    layers = [keras.layers.Dense(4, name="one"), keras.layers.BatchNormalization(name="norm")]
    model = keras.Sequential([keras.Input((6,)), *layers, keras.layers.Dense(3, name="two")])
    model.compile(keras.optimizers.Adam(0.01), "mse")
    masks = Masks(model, enforce=False)
    masks.freeze("one/kernel", channels=[0])
    injector = injector or Injector()
    user = _User(masks, injector, list(points))
    observers: list[Any] = [user]
    if logdir is not None:
        user.callback = PastNetCallback(logdir, probe=X[:2], **settings)
        observers = [user.callback, user]
    model.fit(X, X[:, :3], batch_size=4, epochs=6, shuffle=False, verbose=0, callbacks=observers)
    if user.callback is not None:
        user.callback.close()
    weights = [np.asarray(variable).tobytes() for variable in model.variables]
    return Trained(user.losses, weights, user.raised, user.silent)


class _User(keras.callbacks.Callback):
    """Commands masks, asks for a flush, and lets calls fail that are none of these commands."""

    def __init__(self, masks: Masks, injector: Injector, points: list[Point]) -> None:
        super().__init__()
        self.masks, self.injector, self.points = masks, injector, points
        self.callback: PastNetCallback | None = None
        self.losses: list[float] = []
        self.raised: list[Point] = []
        self.silent = 0
        self._aimed: Point | None = None
        self._within = contextlib.ExitStack()

    def on_train_begin(self, logs: Any = None) -> None:
        self._within.enter_context(self.injector.here())
        self.seen = 0

    def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
        self.seen += 1
        self.injector.armed = False
        # All of it while each point is aimed at, so that nearly all of them fail.
        if self.seen % 4 == 1:
            channel = self.seen // 4 % 4
            self.masks.prune("one/kernel", channels=[channel])
        if self.seen % 4 == 3:
            self.masks.regrow("one/kernel", kept=np.ones((6, 4), bool))
        self.injector.armed = True
        if self.points and self.seen % 2 == 0:
            self._settle()
            self._aimed = self.points.pop()
            self.injector.aim(self._aimed, ERRORS[self.seen // 2 % len(ERRORS)])
            self.injector.again()
        elif self.seen == 2:
            self.injector.aim(None)  # calls are counted once the training has begun

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        self.losses.append(logs["loss"])
        if self.seen % 2 == 1 and self.callback is not None and self.callback.recorder is not None:
            self.callback.recorder.flush()

    def on_train_end(self, logs: Any = None) -> None:
        self._settle()
        self._within.close()

    def _settle(self) -> None:
        if self.injector.raised and self._aimed is not None:
            self.raised.append(self._aimed)
            self.silent += self.injector.silent
        self._aimed = None
        if self.points:
            self.injector.aim(None)
