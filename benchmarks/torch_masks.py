"""What masks cost a training of torch, in time and in memory.

Each ratio is of interleaved pairs in one process, median and quartiles: a step with masks against
the same step without. Of each kernel a quarter of the weights is pruned and a quarter frozen, at
random places; of the embedding all rows are frozen but the last ten, as for new tokens.
"""

from __future__ import annotations

import copy
import importlib
import sys
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

import tb_pastnet as pastnet
from benchmarks._options import pairs_of, with_pairs
from benchmarks._pairs import Action, interleaved
from benchmarks._rows import Rows

# By name: not every environment has it.
torch: Any = importlib.import_module("torch")
nn: Any = torch.nn

TITLE = "Steps of torch with masks"
NANOSECONDS_BAR = 3.0  # a weight of masked tensors
FREE_ROWS = 10


class Case(NamedTuple):
    """A network, one batch, and what holds its weights."""

    make: Callable[[], Any]
    x: Any
    hold: Callable[[Any], None]
    bar: float
    options: dict[str, Any]


def half_held(masks: Any) -> None:
    """A quarter of each kernel is pruned, another frozen."""
    rng = np.random.default_rng(0)
    for name, kept in [*masks.kept.items()]:
        if kept.ndim > 1:
            number = rng.random(kept.shape)
            masks.prune(name, kept=number > 0.25)
            masks.freeze(name, trainable=(number < 0.25) | (number > 0.5))


def new_rows(masks: Any) -> None:
    """Only the last rows of an embedding train."""
    (name,) = masks.kept
    masks.freeze_rows(name, upto=len(masks.kept[name]) - FREE_ROWS)


def small() -> Any:
    """200 tensors."""
    layers = [layer for _ in range(99) for layer in (nn.Linear(16, 16), nn.Tanh())]
    return nn.Sequential(*layers, nn.Linear(16, 10))


def resnet() -> Any:
    """ResNet-50."""
    transformers = importlib.import_module("transformers")
    network = transformers.ResNetForImageClassification(transformers.ResNetConfig(num_labels=10))

    class Logits(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.network = network

        def forward(self, x: Any) -> Any:
            return self.network(x).logits

    return Logits()


def cases(smoke: bool) -> dict[str, Case]:
    """By name; tiny ones to see that it works."""
    rows, width, side = (64, 8, 0) if smoke else (128_256, 1_024, 224)
    tokens = torch.randint(0, rows, (16, 8))
    found = {"200 small tensors": Case(small, torch.randn(32, 16), half_held, 1.2, {})}
    for name, options, bar in (("AdamW", {}, 1.1), ("AdamW fused", {"fused": True}, 1.25)):
        embedding = Case(lambda: nn.Embedding(rows, width), tokens, new_rows, bar, options)
        found[f"Embedding of {rows:,} × {width:,}, {name}"] = embedding
    if side:
        images = torch.randn(8, 3, side, side)
        found["ResNet-50, batch 8, AdamW"] = Case(resnet, images, half_held, 1.05, {})
        fused = {"fused": True}
        found["ResNet-50, batch 8, AdamW fused"] = Case(resnet, images, half_held, 1.05, fused)
    return found


def stepping(module: Any, case: Case) -> tuple[Any, Action]:
    """An optimizer, and a training step."""
    optimizer = torch.optim.AdamW(module.parameters(), 1e-4, **case.options)

    def step() -> None:
        optimizer.zero_grad()
        module(case.x).square().mean().backward()
        optimizer.step()

    return optimizer, step


def zeros_of(rows: Rows, name: str, case: Case, masks: Any, pairs: int) -> None:
    """Prints what held gradients, which are zero by the rule of masks, cost the optimizer itself.

    The square root of torch on a CPU takes longer for zeros, which AdamW's second moments are then.
    """
    steps = []
    for held in (False, True):
        module = case.make()
        optimizer = torch.optim.AdamW(module.parameters(), 1e-4, **case.options)
        for key, parameter in module.named_parameters():
            parameter.grad = torch.randn_like(parameter)
            if held and parameter.ndim > 1:
                through = masks.kept[key] & masks.trainable[key]
                parameter.grad *= torch.from_numpy(through)
        steps.append(optimizer.step)
    times = interleaved(*steps, pairs=pairs)
    rows.line(TITLE, "optimizer alone, held gradients 0 / stock", times[1] / times[0], column=name)


def cost_of(rows: Rows, name: str, case: Case, pairs: int) -> None:
    """Prints what masks cost the steps of a network, and their memory."""
    print(name)
    stock = case.make()
    masked = copy.deepcopy(stock)
    (_, plain), (optimizer, held) = (stepping(each, case) for each in (stock, masked))
    masks = pastnet.torch.Masks(masked, optimizer)
    case.hold(masks)
    times = interleaved(plain, held, pairs=pairs)
    places = masks.state.masked.values()
    weights = sum(each.axis.channels * each.axis.elements for each in places)
    rows.line(TITLE, "a stock step", 1e3 * times[0], "ms", column=name)
    rows.line(TITLE, "step with masks / stock", times[1] / times[0], column=name, bar=case.bar)
    each = 1e9 * (times[1] - times[0]) / weights
    rows.line(TITLE, "added, each weight of masked tensors", each, "ns", column=name)
    size = sum(place.nbytes for place in places)
    rows.line(TITLE, "memory, each such weight", size / weights, "bytes", column=name)
    if case.hold is half_held:
        zeros_of(rows, name, case, masks, pairs)
    masks.close()


def main(argv: Sequence[str]) -> int:
    """Prints the tables.

    Returns:
        The exit code: 1 if a bar is missed.
    """
    chosen = with_pairs("torch_masks", __doc__).parse_args(argv)
    print(f"ratios of {pairs_of(chosen)} interleaved pairs: median (quartiles)\n")
    rows = Rows("torch_masks")
    for name, case in cases(chosen.smoke).items():
        cost_of(rows, name, case, pairs_of(chosen))
    return rows.finish()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
