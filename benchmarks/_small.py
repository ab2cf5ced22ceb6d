"""Trains small networks in one framework, and measures what is done after each step.

Single steps take turns, each with one thing that is done after it, or nothing: neighbours see the
same machine. Processor time counts, that of all threads and that of the training thread: wall time
says little where several threads share an interpreter.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from tb_pastnet import read
from tb_pastnet.core import thinning

NOTHING, AGAIN = "nothing", "nothing, again"
EVERY = (10, 1)
PERIOD = max(EVERY)


class Way(NamedTuple):
    """What is done after each step.

    Attributes:
        after: each step.
        enter: before the step, and not part of it.
        written: processor seconds of a thread of its own so far.
    """

    after: Callable[[], object]
    enter: Callable[[], object] = lambda: None
    written: Callable[[], float] = lambda: 0.0


class Network(NamedTuple):
    """A network in training, and what may be done after its steps."""

    step: Callable[[], object]
    ways: dict[str, Way]


def recording(
    make: Callable[[str], Any], *args: Callable[[], Any], enter: Callable[[], object] = lambda: None
) -> Way:
    """Calls `record` of a Recorder with the next step, and with what some functions give."""
    logdir, steps = tempfile.mkdtemp(), iter(range(1, sys.maxsize))
    recorder = make(logdir)

    def written() -> float:
        recorder.flush()
        return sum(run.overhead.writer for run in read(logdir).runs.values() if run.overhead)

    return Way(lambda: recorder.record(next(steps), *(each() for each in args)), enter, written)


def torch_networks() -> dict[str, Callable[[], Network]]:
    """A perceptron, a small CNN, and 20 layers, by AdamW."""
    torch: Any = importlib.import_module("torch")
    hooks: Any = importlib.import_module("torch.optim.optimizer")
    pastnet: Any = importlib.import_module("tb_pastnet.torch")
    torch.set_num_threads(1)
    nn = torch.nn
    around = hooks._global_optimizer_pre_hooks, hooks._global_optimizer_post_hooks

    def network(model: Any, x: Any) -> Network:
        optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
        y = torch.randint(0, 10, (len(x),))

        def step() -> None:
            loss = nn.functional.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

        def hooked(own: tuple[Any, ...]) -> None:
            for every, each in zip(around, own, strict=True):
                every.clear()
                every.update(each)

        def ours(every: int) -> Way:
            before = [set(each) for each in around]
            make = partial(pastnet.Recorder, model=model, optimizer=optimizer, every=every)
            way = recording(make, enter=lambda: hooked(own))
            own = tuple(
                {key: hook for key, hook in each.items() if key not in known}
                for each, known in zip(around, before, strict=True)
            )
            return way

        past: list[Any] = []

        def norms() -> None:
            with torch.no_grad():
                now = [each.detach().clone().flatten(1 if each.ndim > 1 else 0) for each in weights]
                for value, old in zip(now, past or now, strict=True):
                    rows = (value, old) if value.ndim > 1 else (value[:, None], old[:, None])
                    delta = rows[0] - rows[1]
                    _ = rows[0].norm(dim=1).numpy(), delta.norm(dim=1).numpy()
                    _ = delta.abs().amax(1).numpy(), (delta != 0).float().mean(1).numpy()
                past[:] = now

        weights = list(model.parameters())
        none: Any = ({}, {})
        ways = {NOTHING: Way(lambda: None, lambda: hooked(none))}
        ways[AGAIN] = ways[NOTHING]
        ways |= {f"every={every}": ours(every) for every in EVERY}
        ways["norms by hand, each step"] = Way(norms, lambda: hooked(none))
        return Network(step, ways)

    def linear(*sizes: int) -> Any:
        layers = [
            layer
            for size, after in pairwise(sizes)
            for layer in (nn.Linear(size, after), nn.ReLU())
        ]
        return nn.Sequential(*layers[:-1])

    def cnn() -> Any:
        return nn.Sequential(
            *(nn.Conv2d(1, 16, 3), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2)),
            *(nn.Conv2d(16, 32, 3), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(2)),
            *(nn.Flatten(), nn.Linear(800, 64), nn.ReLU(), nn.Linear(64, 10)),
        )

    return {
        "torch, MLP of 6 tensors": lambda: network(linear(784, 128, 64, 10), torch.randn(32, 784)),
        "torch, CNN of 14 tensors": lambda: network(cnn(), torch.randn(32, 1, 28, 28)),
        "torch, MLP of 42 tensors": lambda: network(linear(*[64] * 21, 10), torch.randn(64, 64)),
    }


def jax_networks() -> dict[str, Callable[[], Network]]:
    """A perceptron and 20 layers, by SGD in one compiled function."""
    jax: Any = importlib.import_module("jax")
    pastnet: Any = importlib.import_module("tb_pastnet.jax")
    jnp = jax.numpy

    def network(*sizes: int) -> Network:
        rng = np.random.default_rng(0)
        x = jnp.asarray(rng.normal(size=(32, sizes[0])), "float32")
        y = jnp.asarray(rng.normal(size=(32, sizes[-1])), "float32")
        shapes = list(pairwise(sizes))
        held = [
            {
                f"layer{number:02}": {
                    "kernel": jnp.asarray(rng.normal(size=shape) / shape[0] ** 0.5, "float32"),
                    "bias": jnp.zeros(shape[1]),
                }
                for number, shape in enumerate(shapes)
            }
        ]

        def loss(params: Any) -> Any:
            hidden = x
            for layer in params.values():
                hidden = jax.nn.tanh(hidden @ layer["kernel"] + layer["bias"])
            return ((hidden - y) ** 2).mean()

        @jax.jit  # type: ignore[untyped-decorator]
        def update(params: Any) -> Any:
            return jax.tree.map(lambda w, g: w - 1e-3 * g, params, jax.grad(loss)(params))

        def step() -> None:
            held[0] = jax.block_until_ready(update(held[0]))

        @jax.jit  # type: ignore[untyped-decorator]
        def statistics(params: Any, past: Any) -> Any:
            def of(value: Any, old: Any) -> Any:
                axes = tuple(range(value.ndim - 1))
                delta = value - old
                return (
                    jnp.sqrt((value**2).sum(axes)),
                    jnp.sqrt((delta**2).sum(axes)),
                    abs(delta).max(axes),
                    (delta != 0).mean(axes),
                )

            return jax.tree.map(of, params, past)

        past = [held[0]]

        def by_hand() -> None:
            jax.device_get(statistics(held[0], past[0]))
            past[0] = held[0]

        ways = {NOTHING: Way(lambda: None), AGAIN: Way(lambda: None)}
        for every in EVERY:
            make = partial(pastnet.Recorder, params=held[0], every=every)
            ways[f"every={every}"] = recording(make, lambda: held[0])
        ways["one compiled function by hand, each step"] = Way(by_hand)
        return Network(step, ways)

    return {
        "JAX, MLP of 6 arrays": lambda: network(784, 128, 64, 10),
        "JAX, MLP of 40 arrays": lambda: network(*[64] * 21),
    }


def measured(network: Network, rounds: int, block: int) -> dict[str, list[list[float]]]:
    """Microseconds of processor time a step, of all threads and of this one, by way and round.

    Of the steps at the same place among ten the median counts: what else the machine does hits some
    of them. The writer's time, which comes in bursts, is the mean of steps without any other way
    between them, as it writes every two seconds; it comes last.
    """
    found: dict[str, list[list[float]]] = {name: [] for name in network.ways}
    names, rng = list(network.ways), np.random.default_rng(0)
    for number in range(-1, rounds):
        taken = {name: np.zeros((block, 2)) for name in names}
        for turn in range(block):
            # In any order: a step that follows a costly way finds other things in the caches.
            for name in rng.permutation(names).tolist():
                way = network.ways[name]
                way.enter()
                begun = time.process_time_ns(), time.thread_time_ns()
                network.step()
                way.after()
                ended = time.process_time_ns(), time.thread_time_ns()
                taken[name][turn] = np.subtract(ended, begun) / 1e3
        for name in names if number >= 0 else ():  # the first round compiles
            places = taken[name].reshape(-1, min(block, PERIOD), 2)
            found[name].append(np.median(places, axis=0).mean(axis=0).tolist())
    for name, way in network.ways.items():
        written = _written(network, way, PERIOD * block)
        found[name] = [[whole + written, own, written] for whole, own in found[name]]
    return found


def _written(network: Network, way: Way, steps: int) -> float:
    """Microseconds a step of a way's own thread."""
    before = way.written()
    way.enter()
    for _ in range(steps if before else 0):
        network.step()
        way.after()
    return 1e6 * (way.written() - before) / steps


def main(framework: str, rounds: str, block: str) -> None:
    """Prints what each network took, as JSON."""
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    thinning.CAPACITY = sys.maxsize  # each record is stored, as at the beginning of a run
    networks = {"torch": torch_networks, "jax": jax_networks}[framework]()
    found = {name: measured(make(), int(rounds), int(block)) for name, make in networks.items()}
    sys.stdout.write(json.dumps(found) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
