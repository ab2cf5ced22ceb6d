"""The data that all runs of the demo share."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

BATCH = 32
STEPS_PER_EPOCH = 42  # of 1,344 training images

Images = NDArray[np.float32]
Labels = NDArray[np.int64]


@dataclass(frozen=True)
class Digits:
    """Images as float32 [images, 8, 8, 1] from 0 to 1, labels as int64 [images] from 0 to 9."""

    train: tuple[Images, Labels]
    test: tuple[Images, Labels]

    def batches(self, seed: int, epoch: int) -> Iterator[tuple[Images, Labels]]:
        """The batches of an epoch, in an order that the seed decides."""
        images, labels = self.train
        order = np.random.default_rng((seed, epoch)).permutation(len(images))
        for batch in order.reshape(-1, BATCH):
            yield images[batch], labels[batch]

    def share_right(self, logits: NDArray[np.float32]) -> float:
        """The share of the test digits that a network gets right, by its outputs for them."""
        return float((logits.argmax(1) == self.test[1]).mean())


def digits() -> Digits:
    """Loads the digits that scikit-learn ships: three quarters to train, the rest to test.

    Raises:
        ModuleNotFoundError: scikit-learn isn't installed.
    """
    try:
        from sklearn.datasets import load_digits
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            "Could not load the digits: expected the package scikit-learn, got none. Run: pip "
            "install scikit-learn"
        ) from error
    images, labels = load_digits(return_X_y=True)
    images = (images / 16).reshape(-1, 8, 8, 1).astype(np.float32)
    order = np.random.default_rng(0).permutation(len(images))
    images, labels = images[order], labels[order].astype(np.int64)
    cut = STEPS_PER_EPOCH * BATCH
    return Digits((images[:cut], labels[:cut]), (images[cut:], labels[cut:]))
