"""What Keras says is trainable, asked of each layer once for all its variables."""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from typing import Any

from tb_pastnet.keras.model.walk import Found
from tb_pastnet.keras.model.weights import TFWeight

Flags = tuple[Any, ...]

_TRAINABLE = attrgetter("trainable")


class TrainableFlags:
    """The `trainable` flags that concern some variables."""

    def __init__(self, weights: Sequence[TFWeight | Found]) -> None:
        # Of a statistic they say nothing.
        heard = [() if weight.statistic else weight.holders for weight in weights]
        unique = {id(holder): holder for holders in heard for holder in holders}
        self._holders = list(unique.values())
        numbers = {key: number for number, key in enumerate(unique)}
        self._heard = [[numbers[id(holder)] for holder in holders] for holders in heard]
        # What is around a layer passes its flag on to it.
        inner = {id(holders[-2]): holders[-2] for holders in heard if len(holders) > 1}
        self._layers = list(inner.values())

    def quick_key(self) -> Flags:
        """The flags as of now of the layers that have variables: quick enough for each step."""
        return tuple(map(_TRAINABLE, self._layers))

    def read(self) -> Flags:
        """Each flag as of now, those of variables too: equal where nothing was switched."""
        return tuple(map(_TRAINABLE, self._holders))

    def of(self, flags: Flags) -> list[bool]:
        """Of each variable, whether updates may change it, by what `read` gave."""
        if all(flags):
            return [True] * len(self._heard)
        return [all(flags[number] for number in numbers) for numbers in self._heard]
