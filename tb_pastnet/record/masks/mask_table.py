"""The masks of a model's weights, by name."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from tb_pastnet.core.mask_input import Mask
from tb_pastnet.core.names import LogName, Names
from tb_pastnet.record.weight import OwnMasks, Weight, names_of


class MaskStorage(Protocol):
    """Both masks of one variable, kept where the framework's updates see them."""

    variable: Any

    def read(self) -> tuple[Mask, Mask]:
        """Kept and trainable. A pruned element counts as trainable: it isn't frozen."""

    def write(self, kept: Mask, trainable: Mask) -> None:
        """Sets both. What is frozen only now is held at its current value."""


class MaskTable:
    """The masks of weights: none at first, a storage of its own for each that gets some.

    Attributes:
        version: grows with every change that is made through it.
        generation: grows when a weight gets its first mask: older traces don't know of it.
        origin: fingerprint of the values at the beginning, "" where it isn't known yet; saved.
    """

    def __init__(self, weights: Sequence[Weight], store: Callable[[Any], MaskStorage]) -> None:
        self._contents = _Contents(store, {weight.name: weight for weight in weights})
        self.version = 0
        self.generation = 0
        self.origin = ""

    @property
    def keeper(self) -> Any:
        """What keeps the masks in force, None before there is anything."""
        return self._contents.keeper

    @keeper.setter
    def keeper(self, keeper: Any) -> None:
        self._contents.keeper = keeper

    @property
    def enforces(self) -> bool:
        """Whether masks are held on an optimizer, not only declared."""
        return self.keeper is not None and self.keeper.enforces

    @property
    def masked(self) -> Mapping[str, Any]:
        """The storages of weights that have masks, by name."""
        return self._contents.masked

    @property
    def names(self) -> Names:
        """What a user calls the weights."""
        return names_of(self.weights.values())

    @property
    def weights(self) -> Mapping[str, Any]:
        """All weights, by name."""
        return self._contents.weights

    def storage_of(self, variable: Any) -> Any:
        """The storage of a framework's variable, None where it has no masks."""
        return self._contents.by_variable.get(id(variable))

    def storage_for(self, name: str) -> Any:
        """The storage of a weight, made where there is none."""
        if name not in self.masked:
            storage = self._contents.store(self.weights[name])
            self._contents.masked[name] = storage
            self._contents.by_variable[id(storage.variable)] = storage
            self.generation += 1
        return self.masked[name]

    def read(self, name: str) -> tuple[Mask, Mask]:
        """Kept and trainable of a weight, bool arrays; all ones where it has no masks."""
        if name in self.masked:
            masks: tuple[Mask, Mask] = self.masked[name].read()
            return masks
        weight = self.weights[name]
        own = weight.masks()
        if own is not None:
            return own.kept, own.trainable
        return np.ones(weight.shape, bool), np.ones(weight.shape, bool)

    def write(self, name: str, kept: Mask, trainable: Mask) -> None:
        """Sets the masks of a weight."""
        self.settle()
        self.storage_for(name).write(kept, trainable)
        self.version += 1
        for reference in list(self._contents.observers):
            observe = reference()
            if observe is None:
                self._contents.observers.remove(reference)
            else:
                observe()

    def keep_origin(self, find: Callable[[], str]) -> None:
        """Keeps the origin with the masks, where it isn't known yet."""
        self.origin = self.origin or find()

    def settle(self) -> None:
        """Takes up what was loaded meanwhile."""

    def observed_by(self, observe: Callable[[], None]) -> None:
        """Calls a bound method, kept weakly, at each change, before another step."""
        self._contents.observers.append(weakref.WeakMethod(observe))


@dataclass
class _Contents:
    """What a framework's trackers shall not look into."""

    store: Callable[[Any], MaskStorage]
    weights: dict[str, Weight]
    masked: dict[str, MaskStorage] = field(default_factory=dict)
    by_variable: dict[int, MaskStorage] = field(default_factory=dict)
    keeper: Any = None
    observers: list[weakref.WeakMethod[Callable[[], None]]] = field(default_factory=list)


class MaskView(Mapping[str, Mask]):
    """One of both masks of every weight, by what a user calls it."""

    def __init__(self, table: MaskTable, index: int) -> None:
        self._table = table
        self._index = index

    def __getitem__(self, name: object) -> Mask:
        known = isinstance(name, str) and name in self._table.weights
        own = str(name) if known else self._table.names.one(name)
        return self._table.read(own)[self._index]

    def __iter__(self) -> Iterator[str]:
        return map(LogName, self._table.weights)

    def __len__(self) -> int:
        return len(self._table.weights)


def version_of(table: MaskTable | None, own_masks: Sequence[OwnMasks]) -> tuple[int, ...]:
    """Another one after each change of masks; quick, as it is asked for at each step."""
    version = () if table is None else (id(table), table.version)
    return (*version, *[masks.version for masks in own_masks]) if own_masks else version
