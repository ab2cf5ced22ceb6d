"""One training in each framework's own loop, for tests that compare records with saved weights."""

from __future__ import annotations

from typing import Any

import numpy as np

import tb_pastnet as pastnet


class NumpyRoom:
    """A training of one kernel; the others differ in where it lives, and how it is recorded."""

    def __init__(self, logdir: Any, channels: int, **settings: Any) -> None:
        self.logdir, self.settings = str(logdir), settings
        self.kernel = np.random.default_rng(0).normal(size=(3, channels)).astype("float32")
        self.updates = 0
        self.begin()

    def begin(self) -> None:
        kernels = {"d/kernel": lambda: self.kernel}
        self.recorder: Any = pastnet.numpy.Recorder(self.logdir, kernels, **self.settings)

    def step(self) -> None:
        self.updates += 1
        wave = np.sin(np.arange(self.kernel.size) + self.updates).reshape(self.kernel.shape)
        self.put({"d/kernel": (self.values()["d/kernel"] * 0.99 + 0.01 * wave).astype("float32")})

    def values(self) -> dict[str, np.ndarray]:
        return {"d/kernel": np.array(self.kernel)}

    def put(self, values: dict[str, np.ndarray]) -> None:
        self.kernel = values["d/kernel"]

    def record(self, step: int) -> None:
        self.recorder.record(step)

    def sync(self) -> None:
        self.recorder.sync()

    def restart(self, step: int) -> None:
        self.recorder.restart(step)

    def close(self) -> None:
        self.recorder.close()


class JaxRoom(NumpyRoom):
    def params(self) -> Any:
        return {"d": {"kernel": self.kernel.copy()}}

    def begin(self) -> None:
        self.recorder = pastnet.jax.Recorder(self.logdir, self.params(), **self.settings)

    def record(self, step: int) -> None:
        self.recorder.record(step, self.params())

    def sync(self) -> None:
        self.recorder.sync(self.params())

    def restart(self, step: int) -> None:
        self.recorder.restart(step, self.params())


class KerasRoom(NumpyRoom):
    """A Recorder of a mapping of variables."""

    def begin(self) -> None:
        import tensorflow as tf

        self.variable = tf.Variable(self.kernel)
        self.recorder = pastnet.Recorder(self.logdir, {"d/kernel": self.variable}, **self.settings)

    def put(self, values: dict[str, np.ndarray]) -> None:
        super().put(values)
        self.variable.assign(self.kernel)


class GraphRoom(NumpyRoom):
    """A TF1-style graph. Its Recorder begins by `restart`."""

    def begin(self) -> None:
        import tensorflow.compat.v1 as tf

        start = self.settings.pop("initial_step", None) or 0
        with tf.Graph().as_default():
            variable = tf.get_variable("d/kernel", initializer=self.kernel)
            self.fed = tf.placeholder(tf.float32, variable.shape)
            self.assign = variable.assign(self.fed)
            chosen = {"variables": {"d/kernel": variable}, **self.settings}
            self.recorder = pastnet.v1.Recorder(self.logdir, **chosen)
            self.session = tf.Session()
            self.session.run(variable.initializer)
        self.recorder.restart(start, self.session)

    def put(self, values: dict[str, np.ndarray]) -> None:
        super().put(values)
        self.session.run(self.assign, {self.fed: self.kernel})

    def record(self, step: int) -> None:
        self.recorder.record(step, self.session)

    def sync(self) -> None:
        self.recorder.sync(self.session)

    def restart(self, step: int) -> None:
        self.recorder.restart(step, self.session)

    def close(self) -> None:
        self.recorder.close(session=self.session)
        self.session.close()


class TorchRoom(NumpyRoom):
    """A layer and its statistics; `turns` says which optimizers make updates in a step."""

    made: tuple[str, ...] = ("SGD",)
    turns: tuple[int, ...] = (0,)
    given = True

    def begin(self) -> None:
        import torch

        torch.manual_seed(0)
        self.torch = torch
        channels = self.kernel.shape[1]
        self.model = torch.nn.Sequential(
            torch.nn.Linear(3, channels), torch.nn.BatchNorm1d(channels)
        )
        parts = [self.model.parameters()]
        if len(self.made) > 1:
            parts = [module.parameters() for module in self.model]
        self.optimizers = [
            getattr(torch.optim, name)(part, lr=0.05)
            for name, part in zip(self.made, parts, strict=True)
        ]
        given = self.optimizers if self.given else None
        self.recorder = pastnet.torch.Recorder(self.logdir, self.model, given, **self.settings)

    def step(self) -> None:
        self.updates += 1
        self.forward_and_backward()
        for turn in self.turns_now():
            self.optimizers[turn].step(self.forward_and_backward)
        if self.turns_now():
            with self.torch.no_grad():  # the loop's own, after the update
                self.model[0].bias.mul_(0.9)

    def forward_and_backward(self) -> Any:
        x = self.torch.randn(8, 3, generator=self.torch.Generator().manual_seed(self.updates))
        self.model.zero_grad()
        loss = (self.model(x) - 1).square().mean()
        loss.backward()
        return loss

    def turns_now(self) -> tuple[int, ...]:
        return self.turns

    def values(self) -> dict[str, np.ndarray]:
        state = self.model.state_dict().items()
        return {name.replace(".", "/"): value.numpy().copy() for name, value in state if value.ndim}

    def put(self, values: dict[str, np.ndarray]) -> None:
        state = {
            name.replace("/", "."): self.torch.from_numpy(value) for name, value in values.items()
        }
        self.model.load_state_dict(state, strict=False)


class TwoOptimizers(TorchRoom):
    made, turns = ("SGD", "Adam"), (0, 1)


class UnknownOptimizers(TwoOptimizers):
    given = False


class Critic(TwoOptimizers):
    turns = (0, 0, 0, 1)


class ByTurns(TwoOptimizers):
    def turns_now(self) -> tuple[int, ...]:
        return (self.updates % 2,)


class LBFGS(TorchRoom):
    made = ("LBFGS",)


class Accumulated(TorchRoom):
    """One update for two steps."""

    def turns_now(self) -> tuple[int, ...]:
        return (0,) if self.updates % 2 == 0 else ()


class Skipping(TorchRoom):
    """Some steps make no update, as GradScaler skips those with infinite gradients."""

    def turns_now(self) -> tuple[int, ...]:
        return () if self.updates in (1, 2, 9, 14, 15, 24, 33) else (0,)


LOOPS = {"numpy": NumpyRoom, "jax": JaxRoom, "keras": KerasRoom, "v1": GraphRoom}
TORCH = {
    "torch": TorchRoom,
    "torch, two optimizers": TwoOptimizers,
    "torch, unknown optimizers": UnknownOptimizers,
    "torch, critic": Critic,
    "torch, by turns": ByTurns,
    "torch, LBFGS": LBFGS,
    "torch, accumulated": Accumulated,
    "torch, skipped": Skipping,
}
ROOMS = {**LOOPS, **TORCH}
