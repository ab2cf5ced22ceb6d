"""The story that each framework trains: what happens to which layers, and when."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from demo.digits import STEPS_PER_EPOCH, Digits, Images, Labels

EPOCHS = 40
EVERY = 2  # records at each second of 1,680 steps
RATES = (
    (0, 1e-3),
    (16, 5e-4),
    (23, 2.5e-4),
    (30, 1.2e-4),
    (36, 6e-5),
)  # from this epoch on, this learning rate
FREEZE = (6, 11, 16, 21)  # at these epochs one more layer, from the input on
THAW = 28  # at this epoch the last of them trains again
PRUNE = (4, 7, 10, 13, 16)  # at these epochs a tenth of the channels more
LEAK = 12  # from this epoch on some weights are meant to be frozen
LEAKING = 16  # of the 32 channels of block2, the first: these, where single channels can be held
# The leak is learning rate times weight decay, here 2e-4 of a weight a step.
LEAK_RATE = 2e-3
LEAK_DECAY = 0.1

CONVOLUTIONS = ("block1/conv1", "block1/conv2", "block2/conv1", "block2/conv2")
PRUNED = (*CONVOLUTIONS, "head/hidden")

Say = Callable[[str], None]


def rate(epoch: int) -> float:
    """The learning rate of an epoch."""
    return [value for start, value in RATES if start <= epoch][-1]


def pruned_share(epoch: int) -> float:
    """The share of the channels that is pruned at an epoch's beginning."""
    return 0.1 * sum(start <= epoch for start in PRUNE)


def progress(name: str, epoch: int, say: Say) -> None:
    """Says at each quarter of a run, but the last, how far it is."""
    if 4 * (epoch + 1) % EPOCHS == 0 and epoch + 1 < EPOCHS:
        say(f"{name:18} epoch {epoch + 1} of {EPOCHS}")


@dataclass(frozen=True)
class Run:
    """A run of a framework whose loops are one's own.

    Attributes:
        name: one of demo.FIRST.
        data: the digits.
        logdir: where the runs lie.
        say: gets a line now and then.
    """

    name: str
    data: Digits
    logdir: Path
    say: Say

    @property
    def folder(self) -> Path:
        """The run's own directory."""
        return self.logdir / self.name

    def epochs(self, seed: int = 0) -> Iterator[tuple[int, Iterator[tuple[int, Images, Labels]]]]:
        """Goes through the training.

        Args:
            seed: of the data's order.

        Yields:
            The epoch and its batches: number of the step, from 1 on, images and labels.
        """
        for epoch in range(EPOCHS):
            first = 1 + epoch * STEPS_PER_EPOCH
            numbered = enumerate(self.data.batches(seed, epoch), first)
            yield epoch, ((step, *batch) for step, batch in numbered)
            progress(self.name, epoch, self.say)
