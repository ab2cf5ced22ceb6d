"""The runs in JAX, with optax and a network that is a pytree of arrays.

A mask holds what it stands behind: on weights it prunes, on an optimizer's updates it freezes.
On gradients, before the optimizer, it is too early: weight decay comes after it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from numpy.typing import NDArray

import tb_pastnet as pastnet
from demo.digits import STEPS_PER_EPOCH, Digits
from demo.story import (
    CONVOLUTIONS,
    EPOCHS,
    EVERY,
    FREEZE,
    LEAK,
    LEAK_DECAY,
    LEAK_RATE,
    LEAKING,
    PRUNE,
    PRUNED,
    THAW,
    Run,
    Say,
    pruned_share,
    rate,
)

SHAPES = {
    "block1/conv1": (3, 3, 1, 16),
    "block1/conv2": (3, 3, 16, 16),
    "block2/conv1": (3, 3, 16, 32),
    "block2/conv2": (3, 3, 32, 32),
    "head/hidden": (128, 64),
    "head/logits": (64, 10),
}
"""Of the kernels, whose last axis numbers the channels."""

Params = dict[str, dict[str, Any]]
"""By layer: the kernel and the bias."""
Channels = dict[str, dict[str, NDArray[np.bool_]]]
"""The same of masks: which channels go through."""
KEYS = ("kernel", "bias")


def all_but(held: Mapping[str, Any], keys: Sequence[str] = KEYS) -> Channels:
    """All channels, but for those of some layers that are held, with kernel and bias or less."""
    free = {name: {key: np.ones(shape[-1], bool) for key in KEYS} for name, shape in SHAPES.items()}
    for name, channels in held.items():
        for key in keys:
            free[name][key][channels] = False
    return free


def everything() -> Channels:
    """All channels."""
    return all_but({})


@dataclass(frozen=True)
class Masks:
    """What holds channels, in the order in which a step applies them."""

    gradients: Channels = field(default_factory=everything)
    updates: Channels = field(default_factory=everything)
    weights: Channels = field(default_factory=everything)


jax.tree_util.register_dataclass(Masks, ["gradients", "updates", "weights"], [])
Change = Callable[[int, Params], Masks | None]
"""Makes other masks at the beginning of some epochs, by the epoch and the weights."""


def initial() -> Params:
    """The initial values, the same at each call."""
    draw = jax.nn.initializers.glorot_uniform()
    return {
        name: {"kernel": draw(jax.random.key(number), shape), "bias": jnp.zeros(shape[-1])}
        for number, (name, shape) in enumerate(SHAPES.items())
    }


def predict(params: Params, images: Any) -> Any:
    """The network's outputs."""
    outputs = images
    for block in ("block1", "block2"):
        for name in (f"{block}/conv1", f"{block}/conv2"):
            layer, dims = params[name], ("NHWC", "HWIO", "NHWC")
            outputs = jax.lax.conv_general_dilated(
                outputs, layer["kernel"], (1, 1), "SAME", dimension_numbers=dims
            )
            outputs = jax.nn.relu(outputs + layer["bias"])
        pool = (1, 2, 2, 1)
        outputs = jax.lax.reduce_window(outputs, -jnp.inf, jax.lax.max, pool, pool, "VALID")
    hidden, logits = params["head/hidden"], params["head/logits"]
    outputs = outputs.reshape(len(outputs), -1) @ hidden["kernel"] + hidden["bias"]
    return jax.nn.relu(outputs) @ logits["kernel"] + logits["bias"]


def loss(params: Params, images: Any, labels: Any) -> Any:
    """The mean cross-entropy of a batch."""
    outputs = predict(params, images)
    return optax.softmax_cross_entropy_with_integer_labels(outputs, labels).mean()


def masked(params: Params, by: Channels) -> Params:
    """Zeros where a mask holds.

    A product would leave -0.0 of negative weights, which is another value to the audit than 0.0.
    """
    zeroed: Params = jax.tree.map(lambda array, mask: jnp.where(mask, array, 0), params, by)
    return zeroed


def declare(recorder: Any, params: Params, masks: Masks) -> None:
    """Says which weights are meant to be held: the Recorder takes a mask of each element."""
    trainable = jax.tree.map(np.logical_and, masks.gradients, masks.updates)
    trainable, kept = (
        jax.tree.map(lambda array, mask: np.broadcast_to(mask, array.shape), params, by)
        for by in (trainable, masks.weights)
    )
    recorder.declare(params, trainable=trainable, kept=kept)


def update(
    optimizer: Any, params: Params, state: Any, masks: Masks, images: Any, labels: Any
) -> tuple[Params, Any]:
    """One step."""
    gradients = masked(jax.grad(loss)(params, images, labels), masks.gradients)
    updates, state = optimizer.update(gradients, state, params)
    params = optax.apply_updates(params, masked(updates, masks.updates))
    return masked(params, masks.weights), state


def fit(
    run: Run,
    optimizer: Any,
    change: Change = lambda *_: None,
    *,
    seed: int = 0,
    rate: Callable[[int], float] = rate,
) -> Params:
    """Trains and records.

    Args:
        run: gives the batches, and says where to record.
        optimizer: of optax.
        change: what is held from some epochs on.
        seed: of the data's order.
        rate: the learning rate that the optimizer has in an epoch.

    Returns:
        The weights at the end.
    """
    params, masks = initial(), Masks()
    state = optimizer.init(params)
    step_of = jax.jit(partial(update, optimizer), donate_argnums=(0, 1))
    with pastnet.jax.Recorder(
        run.folder,
        params,
        every=EVERY,
        # A dictionary says nothing of its layers.
        channel_axis={f"{name}/{key}": -1 for name in params for key in KEYS},
        learning_rate=lambda step: rate((step - 1) // STEPS_PER_EPOCH),
    ) as recorder:
        for epoch, batches in run.epochs(seed):
            if changed := change(epoch, params):
                masks = changed
                params = masked(params, masks.weights)
                declare(recorder, params, masks)
            for step, images, labels in batches:
                params, state = step_of(params, state, masks, images, labels)
                recorder.record(step, params)
    return params


def adam() -> Any:
    """Adam with the learning rates of the story."""
    rates = [rate(epoch) for epoch in range(EPOCHS)]
    return optax.adam(lambda count: jnp.array(rates)[count // STEPS_PER_EPOCH])


def dense(run: Run) -> Params:
    """The baseline: nothing is frozen, nothing is pruned."""
    return fit(run, adam())


def freeze_steps(run: Run) -> Params:
    """Layers are frozen one by one: their updates are 0. The last is thawed near the end."""

    def freeze(epoch: int, _: Params) -> Masks | None:
        if epoch not in (*FREEZE, THAW):
            return None
        count = FREEZE.index(epoch) + 1 if epoch in FREEZE else len(FREEZE) - 1
        return Masks(updates=all_but(dict.fromkeys(CONVOLUTIONS[:count], slice(None))))

    return fit(run, adam(), freeze)


def prune_channels(run: Run, seed: int) -> Params:
    """Half of the channels of each layer are pruned by magnitude; the seed is the data's order."""

    def smallest(epoch: int, params: Params) -> Masks | None:
        if epoch not in PRUNE:
            return None
        pruned = {}
        for name in PRUNED:
            kernel = np.asarray(params[name]["kernel"])
            # Those that are pruned already are zero, and so the smallest.
            norms = (kernel**2).sum(tuple(range(kernel.ndim - 1)))
            pruned[name] = norms.argsort()[: round(pruned_share(epoch) * len(norms))]
        return Masks(weights=all_but(pruned))

    return fit(run, adam(), smallest, seed=seed)


def leak_weight_decay(run: Run) -> Params:
    """Half of the kernels of block2 was to be frozen, but weight decay moves it."""

    def freeze(epoch: int, _: Params) -> Masks | None:
        held = dict.fromkeys(CONVOLUTIONS[2:], slice(0, LEAKING))
        return Masks(gradients=all_but(held, ["kernel"])) if epoch == LEAK else None

    # Without momentum, and at a constant rate: the leak is weight decay alone.
    optimizer = optax.adamw(LEAK_RATE, b1=0.0, b2=0.99, weight_decay=LEAK_DECAY)
    return fit(run, optimizer, freeze, rate=lambda _: LEAK_RATE)


RUNS: dict[str, Callable[[Run], Params]] = {
    "dense": dense,
    "freeze_steps": freeze_steps,
    "prune_channels_s0": lambda run: prune_channels(run, 0),
    "prune_channels_s1": lambda run: prune_channels(run, 1),
    "leak_weight_decay": leak_weight_decay,
}


def trained(
    name: str, data: Digits, logdir: Path, say: Say = lambda _: None
) -> Iterator[tuple[str, float]]:
    """Trains and records a run, as `keras_runs.trained` does."""
    params = RUNS[name](Run(name, data, logdir, say))
    yield name, data.share_right(np.asarray(predict(params, data.test[0])))
