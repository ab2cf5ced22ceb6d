"""The runs in PyTorch. Each is a function of the run that it trains, and returns its network."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator
from pathlib import Path

import torch
from torch import nn
from torch.nn.utils import prune

import tb_pastnet as pastnet
from demo.digits import Digits, Images
from demo.story import (
    CONVOLUTIONS,
    EVERY,
    FREEZE,
    LEAK,
    LEAK_DECAY,
    LEAK_RATE,
    PRUNE,
    PRUNED,
    THAW,
    Run,
    Say,
    pruned_share,
    rate,
)

Change = Callable[[int], None]
"""Changes a training at the beginning of some epochs."""


def network() -> nn.Sequential:
    """Builds the network; its initial values are the same at each call."""

    def block(inputs: int, filters: int) -> nn.Sequential:
        return named(
            conv1=nn.Conv2d(inputs, filters, 3, padding="same"),
            relu1=nn.ReLU(),
            conv2=nn.Conv2d(filters, filters, 3, padding="same"),
            relu2=nn.ReLU(),
            pool=nn.MaxPool2d(2),
        )

    torch.manual_seed(0)
    return named(
        block1=block(1, 16),
        block2=block(16, 32),
        flatten=nn.Flatten(),
        head=named(hidden=nn.Linear(128, 64), relu=nn.ReLU(), logits=nn.Linear(64, 10)),
    )


def named(**layers: nn.Module) -> nn.Sequential:
    """A Sequential whose layers have these names."""
    return nn.Sequential(OrderedDict(layers))


def layers_of(model: nn.Module, names: tuple[str, ...]) -> list[nn.Module]:
    """Layers by their names in the log."""
    return [model.get_submodule(name.replace("/", ".")) for name in names]


def predict(model: nn.Module, images: Images) -> torch.Tensor:
    """The network's outputs: torch has the channels of images behind the batch."""
    return model(torch.from_numpy(images).movedim(-1, 1))


def fit(
    run: Run,
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    change: Change = lambda _: None,
    *,
    seed: int = 0,
    rate: Callable[[int], float] = rate,
    set_to_none: bool = True,
) -> None:
    """Trains and records.

    Args:
        run: gives the batches, and says where to record.
        model: the network.
        optimizer: of its parameters.
        change: what happens at some epochs.
        seed: of the data's order.
        rate: the learning rate of an epoch.
        set_to_none: as of `zero_grad`: what becomes of gradients before each step.
    """
    with pastnet.torch.Recorder(run.folder, model, optimizer, every=EVERY) as recorder:
        for epoch, batches in run.epochs(seed):
            change(epoch)
            for group in optimizer.param_groups:
                group["lr"] = rate(epoch)
            for step, images, labels in batches:
                optimizer.zero_grad(set_to_none)
                outputs = predict(model, images)
                nn.functional.cross_entropy(outputs, torch.from_numpy(labels)).backward()
                optimizer.step()
                recorder.record(step)


def dense(run: Run) -> nn.Module:
    """The baseline: nothing is frozen, nothing is pruned."""
    model = network()
    fit(run, model, torch.optim.Adam(model.parameters()))
    return model


def freeze_steps(run: Run) -> nn.Module:
    """Layers are frozen one by one by `requires_grad_(False)`; the last is thawed near the end."""
    model = network()
    convolutions = layers_of(model, CONVOLUTIONS)

    def freeze(epoch: int) -> None:
        if epoch in FREEZE:
            convolutions[FREEZE.index(epoch)].requires_grad_(False)
        elif epoch == THAW:
            convolutions[-1].requires_grad_()

    fit(run, model, torch.optim.Adam(model.parameters()), freeze)
    return model


def prune_channels(run: Run, seed: int) -> nn.Module:
    """Half of the channels of each layer are pruned by magnitude; the seed is the data's order."""
    model = network()
    layers = layers_of(model, PRUNED)

    def smallest(epoch: int) -> None:
        if epoch not in PRUNE:
            return
        for layer in layers:
            kept = torch.ones_like(layer.bias) if epoch == PRUNE[0] else layer.bias_mask
            pruned = round(pruned_share(epoch) * len(kept)) - int((kept == 0).sum())
            prune.ln_structured(layer, "weight", pruned, n=2, dim=0)
            # A channel without its bias as well gives nothing but zeros.
            prune.custom_from_mask(layer, "bias", layer.weight_mask.flatten(1).any(1))

    fit(run, model, torch.optim.Adam(model.parameters()), smallest, seed=seed)
    return model


def leak_weight_decay(run: Run) -> nn.Module:
    """The weights of block2 were to be frozen, but weight decay moves them.

    What torch freezes is left alone only where it has no gradient: `set_to_none=False` leaves one
    of zeros. All channels leak here, as torch has no flag for some of them.
    """
    model = network()
    # Without momentum, and at a constant rate: the leak is weight decay alone.
    optimizer = torch.optim.AdamW(model.parameters(), betas=(0.0, 0.99), weight_decay=LEAK_DECAY)

    def freeze(epoch: int) -> None:
        if epoch == LEAK:
            for layer in layers_of(model, CONVOLUTIONS[2:]):
                layer.weight.requires_grad_(False)

    fit(run, model, optimizer, freeze, rate=lambda _: LEAK_RATE, set_to_none=False)
    return model


RUNS: dict[str, Callable[[Run], nn.Module]] = {
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
    # More threads than a network of this size can feed wait for each other.
    torch.set_num_threads(1)
    model = RUNS[name](Run(name, data, logdir, say))
    with torch.no_grad():
        yield name, data.share_right(predict(model, data.test[0]).numpy())
