"""Lottery tickets on the digits: prune, rewind, train again, and a random ticket beside it.

Iterative magnitude pruning (Frankle and Carbin, arXiv:1803.03635) with rewinding to an early step
(Frankle et al., arXiv:1903.01611). `python3 dev.py bench lottery` makes the table of
docs/tutorials/lottery_tickets.md; `python -m demo` records some of the rounds for the tab.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import keras
import numpy as np
from numpy.typing import NDArray

import tb_pastnet as pastnet
from demo.digits import BATCH, Digits
from demo.keras_network import accuracy
from tb_pastnet.cli.text import Bars

WIDTHS = (256, 128, 64, 32, 10)
EPOCHS = 20
REWIND = 1  # epochs: training goes back to the step at their end
KEEP = 0.8  # of the weights that are left, each round keeps this share

# Fixed before the study was first run, and not changed after it.
SEEDS = (0, 1, 2, 3, 4)
ROUNDS = 20
ANOTHER = 1000  # added to a seed: the draw of the random ticket's weights

SHOWN = 6  # rounds that the demo records
SHOWN_EVERY = 10  # steps from record to record

Recording = Callable[[str], Sequence[Any]]  # from a run's name to its callbacks


def unrecorded(name: str) -> Sequence[Any]:  # noqa: ARG001  as a Recording has it
    """Callbacks of a run that isn't recorded: none."""
    return ()


def network(draw: int) -> Any:
    """Five Dense layers, compiled with Adam at a constant rate; 59,712 weights and 490 biases.

    Args:
        draw: seed of the initial weights.
    """
    keras.utils.set_random_seed(draw)
    hidden = [
        keras.layers.Dense(width, activation="relu", name=f"dense{number}")
        for number, width in enumerate(WIDTHS[:-1])
    ]
    layers = [
        keras.Input((8, 8, 1)),
        keras.layers.Flatten(name="flatten"),
        *hidden,
        keras.layers.Dense(WIDTHS[-1], name="logits"),
    ]
    model = keras.Sequential(layers, name="ticket")
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(keras.optimizers.Adam(1e-3), loss, metrics=["accuracy"])
    return model


def fit(model: Any, data: Digits, seed: int, start: int, end: int, callbacks: Any = ()) -> None:
    """Trains from one epoch to another.

    Args:
        model: as from `network`.
        data: the digits.
        seed: of the order of the batches.
        start: the first epoch.
        end: the epoch after the last.
        callbacks: of Keras.
    """
    keras.utils.set_random_seed(seed)
    span = {"initial_epoch": start, "epochs": end}
    model.fit(*data.train, batch_size=BATCH, **span, verbose=0, callbacks=[*callbacks])


def winning_tickets(
    data: Digits, seed: int, rounds: int, recording: Recording = unrecorded
) -> Iterator[tuple[Any, pastnet.Masks]]:
    """Trains the dense network, then tickets, each with a fifth fewer weights than the one before.

    Args:
        data: the digits.
        seed: of the initial weights and of the order of the batches.
        rounds: how often it is pruned and rewound.
        recording: callbacks for the run "round_0", which is dense, "round_1" and so on.

    Yields:
        The model and its masks at the end of each round; it is pruned further by the next one.
    """
    model = network(seed)
    masks = pastnet.Masks(model)
    callbacks = recording("round_0")
    fit(model, data, seed, 0, REWIND, callbacks)
    snapshot = masks.snapshot()
    fit(model, data, seed, REWIND, EPOCHS, callbacks)
    yield model, masks
    for number in range(1, rounds + 1):
        masks.prune_smallest(1 - KEEP**number)
        masks.rewind(snapshot)
        fit(model, data, seed, REWIND, EPOCHS, recording(f"round_{number}"))
        yield model, masks


class RandomTicket:
    """The control of the paper: the masks of a winning ticket, on weights that are drawn anew.

    All weights and biases come from the same initializers with another seed. They are trained from
    step 0, for as many steps in all as a winning ticket has seen, on the same batches.

    Args:
        data: the digits.
        seed: that of the winning ticket.

    Attributes:
        model: the network.
        masks: its masks.
        drawn: the weights that it begins with in each round.
    """

    def __init__(self, data: Digits, seed: int) -> None:
        self._data = data
        self._seed = seed
        self.model = network(seed + ANOTHER)
        self.masks = pastnet.Masks(self.model)
        self.drawn = self.masks.snapshot()

    def train(self, kept: Mapping[str, NDArray[np.bool_]], callbacks: Sequence[Any] = ()) -> Any:
        """Trains with masks; those of one round lie within those of the round before.

        Args:
            kept: of each variable.
            callbacks: of Keras.

        Returns:
            The model.
        """
        for name, mask in kept.items():
            self.masks.prune(name, kept=mask)
        self.masks.rewind(self.drawn)
        fit(self.model, self._data, self._seed, 0, REWIND, callbacks)
        fit(self.model, self._data, self._seed, REWIND, EPOCHS, callbacks)
        return self.model


def shown(data: Digits, logdir: Path, rounds: int = SHOWN) -> Iterator[tuple[str, Any]]:
    """Records rounds, and a random ticket with the masks of the last.

    Args:
        data: the digits.
        logdir: where their runs lie.
        rounds: how many, beside the dense round 0.

    Yields:
        Name and model of each run.
    """

    def recording(name: str) -> Sequence[Any]:
        return [pastnet.PastNetCallback(logdir / name, every=SHOWN_EVERY)]

    kept: Mapping[str, NDArray[np.bool_]] = {}
    for number, (model, masks) in enumerate(winning_tickets(data, 0, rounds, recording)):
        kept = masks.kept
        yield f"round_{number}", model
    name = f"random_{rounds}"
    yield name, RandomTicket(data, 0).train(kept, recording(name))


def study(data: Digits, seeds: Iterable[int], rounds: int = ROUNDS) -> NDArray[np.float64]:
    """Trains winning and random tickets.

    Args:
        data: the digits.
        seeds: one training of everything for each.
        rounds: how many, beside the dense round 0.

    Returns:
        float64 (seeds, 1 + rounds, 3): sparsity, test accuracy of the winning and of the random
        ticket.
    """
    results, bars = [], Bars(sys.stderr)
    for seed in seeds:
        random = RandomTicket(data, seed)
        results.append(
            [
                (masks.sparsity(), accuracy(model, data), accuracy(random.train(masks.kept), data))
                for model, masks in bars(
                    winning_tickets(data, seed, rounds), f"Tickets of seed {seed}", 1 + rounds
                )
            ]
        )
    return np.array(results)
