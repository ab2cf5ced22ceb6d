"""A TF1-style graph, in a session of its own."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from typing import Any

import numpy as np
import tensorflow.compat.v1 as tf

from tb_pastnet import v1
from tests.conformance.room import Arrays, Masks, Room, command


class Adaptor(Room):
    def build(self, values: Arrays) -> None:
        self.arrays, self.graph = values, tf.Graph()
        self.masks: Any = None

    def begin(self, masks: Masks, kept: Masks) -> Any:
        with self.graph.as_default():
            self.add_training()
            rate = None if self.rates is None else self.fed_rate
            if (masks, kept) != (None, None):
                self.masks = self.settings["masks"] = v1.Masks(self.variables)
            settings = {"variables": self.variables, "learning_rate": rate, **self.settings}
            recorder = v1.Recorder(self.logdir, **settings)
        self.start_session()
        if self.start is not None:
            recorder.restart(self.start, self.session)
        with ExitStack() as refused:
            refused.callback(recorder.close)
            self.declare(masks or {}, kept or {})
            refused.pop_all()
        return recorder

    def add_training(self) -> None:
        self.variables = {
            name: tf.get_variable(name, initializer=value) for name, value in self.arrays.items()
        }
        self.fed = {
            name: tf.placeholder(each.dtype.base_dtype, each.shape)
            for name, each in self.variables.items()
        }
        self.assigned = {
            name: each.assign(self.fed[name]).op for name, each in self.variables.items()
        }
        self.fed_rate = tf.get_variable("rate", initializer=1.0, trainable=False)
        self.new_rate = tf.placeholder(tf.float32, ())
        self.set_rate = self.fed_rate.assign(self.new_rate).op
        optimizer = tf.train.GradientDescentOptimizer(self.fed_rate)
        floats = [each for each in self.variables.values() if each.dtype.base_dtype == tf.float32]
        self.step = [optimizer.apply_gradients([(tf.identity(each), each)]) for each in floats]

    def start_session(self) -> None:
        self.session = tf.Session(graph=self.graph)
        with self.graph.as_default():
            made = [tf.variables_initializer([*self.variables.values(), self.fed_rate])]
        made += [] if self.masks is None else [self.masks.initializer]
        self.session.run(made)
        if self.masks is not None:
            self.masks.session = self.session

    def put(self, values: Mapping[str, np.ndarray]) -> None:
        fed = {self.fed[name]: value for name, value in values.items()}
        self.session.run([self.assigned[name] for name in values], fed)

    def values(self) -> Arrays:
        found: Arrays = self.session.run(self.variables)
        return found

    def update(self, pull: float = 1.0) -> None:
        self.updates += 1
        if not hasattr(self, "session"):  # isn't recorded
            with self.graph.as_default():
                self.add_training()
            self.start_session()
        self.session.run(self.set_rate, {self.new_rate: self.rate("")})
        self.session.run(self.step)

    def record(self, step: Any) -> None:
        if self.recorder is not None:
            self.recorder.record(step, self.session)

    def sync(self) -> None:
        self.recorder.sync(self.session)

    def restart(self, step: int) -> None:
        self.recorder.restart(step, self.session)

    def declare(self, masks: Mapping[str, Any], kept: Mapping[str, Any]) -> None:
        command(self.masks, masks, kept)

    def close(self) -> None:
        if self.recorder is not None and not self.closed:
            self.recorder.close(session=self.session)
            self.session.close()
        self.closed = True
