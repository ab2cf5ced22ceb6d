"""The masks of one weight, and the commands that change them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
import numpy.typing as npt

from tb_pastnet.core import pruning_rules
from tb_pastnet.core.axes import ChannelAxis
from tb_pastnet.core.mask_input import Mask, as_mask
from tb_pastnet.errors import InvalidArgument


class WeightMasks(ABC):
    """Kept (0 = pruned) and trainable (0 = frozen) of each element, and the commands on them.

    A framework's room implements how masks and values are read, and how weights are held.

    Attributes:
        label: the weight's name in errors.
        role: "kernel", of which something has to stay, or another role.
        axis: how it splits into channels.
    """

    label: str
    role: str
    axis: ChannelAxis

    @abstractmethod
    def read(self) -> tuple[Mask, Mask]:
        """Kept and trainable, copies. Pruned elements count as trainable: they aren't frozen."""

    @abstractmethod
    def values(self) -> pruning_rules.Values:
        """What the network computes with now."""

    @abstractmethod
    def write(self, kept: Mask, trainable: Mask) -> None:
        """Sets both masks and puts them in force; raises if they could not hold."""

    @abstractmethod
    def renew(self, elements: Mask) -> None:
        """Resets the optimizer slots of some elements to their initial values."""

    @property
    def kept(self) -> Mask:
        """The kept mask, 0 = pruned: bool array, a copy."""
        return self.read()[0]

    @property
    def trainable(self) -> Mask:
        """The trainable mask, 0 = frozen: bool array, a copy. Pruned weights aren't frozen."""
        return self.read()[1]

    def prune(self, kept: npt.ArrayLike) -> None:
        """Prunes where `kept` is 0; pruned weights stay pruned.

        Raises:
            InvalidArgument: another shape, other values than 0 and 1, or nothing of a kernel would
                stay.
        """
        mask = self._mask(kept, "kept")
        old, trainable = self.read()
        self.write_kept(old & mask, trainable)

    def prune_below(self, threshold: float) -> None:
        """Prunes weights of a magnitude below a threshold; large negative ones stay.

        Raises:
            InvalidArgument: not a finite number from 0 on, or nothing of a kernel would stay.
        """
        self.prune_by(pruning_rules.below, threshold)

    def prune_by(self, rule: pruning_rules.Rule, *arguments: Any, **options: Any) -> None:
        """Prunes what a rule of `core.pruning_rules` chooses, given its own arguments."""
        old, trainable = self.read()
        (kept,) = rule([self.prunable(old)], *arguments, **options)
        self.write_kept(kept, trainable)

    def regrow(self, kept: npt.ArrayLike | None = None) -> None:
        """Lets pruned weights train again, from zero, where `kept` is 1; None: all.

        Raises:
            InvalidArgument: another shape, or other values than 0 and 1.
        """
        mask = self._mask(kept, "kept")
        old, trainable = self.read()
        self.renew(mask & ~old)
        self.write(old | mask, trainable)

    def freeze(self, trainable: npt.ArrayLike | None = None) -> None:
        """Holds the current values where `trainable` is 0; None: all.

        Frozen weights stay frozen, pruned ones pruned.

        Raises:
            InvalidArgument: another shape, other values than 0 and 1, or all that would be frozen
                is pruned.
        """
        none = np.zeros(self.axis.shape) if trainable is None else trainable
        mask = self._mask(none, "trainable")
        kept, old = self.read()
        if not mask.all() and not (~mask & kept).any():
            raise InvalidArgument(
                f"Could not freeze {self.label!r}: expected weights that aren't pruned, got "
                f"{int((~mask).sum())} that are all pruned and held at zero. Regrow them first."
            )
        self.write(kept, old & (mask | ~kept))

    def thaw(self, trainable: npt.ArrayLike | None = None) -> None:
        """Lets frozen weights train again, from their held values, where `trainable` is 1.

        Raises:
            InvalidArgument: another shape, or other values than 0 and 1.
        """
        mask = self._mask(trainable, "trainable")
        kept, old = self.read()
        self.write(kept, old | mask)

    def prunable(self, kept: Mask) -> pruning_rules.Prunable:
        """The weight as a rule gets it."""
        return pruning_rules.Prunable(self.label, self.values(), kept, self.axis)

    def check_kept(self, kept: Mask) -> None:
        """Raises InvalidArgument if a kernel would be empty."""
        if self.role == "kernel" and not kept.any():
            raise InvalidArgument(
                f"Could not prune {self.label!r}: expected some of its {kept.size} weights to "
                "stay, got none, which cuts the network there. Remove the layer, or leave at "
                "least one weight."
            )

    def write_kept(self, kept: Mask, trainable: Mask) -> None:
        """Writes masks with newly pruned weights; raises if a kernel would be empty."""
        self.check_kept(kept)
        self.write(kept, trainable | ~kept)

    def _mask(self, mask: npt.ArrayLike | None, word: str) -> Mask:
        if mask is None:
            return np.ones(self.axis.shape, bool)
        otherwise = "; for whole channels use channels="
        return as_mask(mask, self.axis.shape, self.label, word, otherwise)
