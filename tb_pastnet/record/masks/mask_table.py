"""The masks of a model's weights, by name."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from tb_pastnet.core.axes import ChannelAxis
from tb_pastnet.core.mask_input import Mask, by_channel
from tb_pastnet.core.names import LogName, Names
from tb_pastnet.errors import InvalidArgument
from tb_pastnet.record.masks.packed import Bounds, misfit
from tb_pastnet.record.weight import OwnMasks, Weight, names_of


class MaskStorage(Protocol):
    """Both masks of one variable, stored where the framework's updates use them.

    `enforced`: they are held, not only declared. Steps traced before its `generation` don't use it.
    """

    variable: Any
    enforced: bool
    generation: int

    def read(self) -> tuple[Mask, Mask]:
        """Kept and trainable. A pruned element counts as trainable: it isn't frozen."""

    def write(self, kept: Mask, trainable: Mask) -> None:
        """Sets both. Newly frozen elements are held at their current values."""


Observer = weakref.WeakMethod[Callable[[], None]]


class MaskRegistry:
    """The masks of variables of all models. Others own them: these are weak references.

    Attributes:
        version: grows with every change of any of them.
        generation: grows when a variable gets its first masks.
    """

    def __init__(self) -> None:
        self.version = 0
        self.generation = 0
        # Each refers to its variable, which keeps the key valid.
        self._storages: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()
        self._observers: list[Observer] = []
        # How many commands run, one within another, and whether they have changed masks.
        self._running = 0
        self._untold = False
        self._pending: list[Observer] = []

    def of(self, variable: Any) -> Any:
        """The masks of a framework's variable, None if it has none."""
        return self._storages.get(id(variable))

    def all(self) -> list[Any]:
        """The masks of all variables that have some."""
        return list(self._storages.values())

    def add(self, storage: MaskStorage) -> None:
        """Registers the first masks of a variable."""
        self.generation += 1
        storage.generation = self.generation
        self._storages[id(storage.variable)] = storage

    def changed(self) -> None:
        """Notifies observers that some masks have changed."""
        self.version += 1
        self._untold = True
        self._tell()

    @contextmanager
    def together(self) -> Iterator[None]:
        """A command, whose changes are notified once, at its end: each look costs all weights."""
        self._running += 1
        try:
            yield
        finally:
            self._running -= 1
            self._tell()

    def _tell(self) -> None:
        if self._untold and not self._running:
            self._untold = False
            self._observers = _called(self._observers)

    def observed_by(self, observe: Callable[[], None]) -> None:
        """Calls a bound method, kept weakly, at each change, before another step."""
        self._observers.append(weakref.WeakMethod(observe))

    def settle_by(self, settle: Callable[[], None]) -> None:
        """Calls a bound method, kept weakly, once everything loaded along with masks is loaded."""
        self._pending.append(weakref.WeakMethod(settle))

    def settle(self) -> None:
        """Takes over what was loaded in the meantime."""
        pending, self._pending = self._pending, []
        _called(pending)


def _called(methods: Sequence[Observer]) -> list[Observer]:
    """Calls the bound methods whose objects still exist."""
    alive = [(reference, method) for reference in methods if (method := reference()) is not None]
    for _, method in alive:
        method()
    return [reference for reference, _ in alive]


class MaskTable:
    """The masks of a network's weights by name: a view of its variables' masks.

    Attributes:
        origin: fingerprint of the values at the beginning, "" until it is known; saved.
    """

    def __init__(
        self,
        weights: Sequence[Weight],
        registry: MaskRegistry,
        store: Callable[[Any], MaskStorage] | None = None,
    ) -> None:
        self._contents = _Contents(registry, store, {weight.name: weight for weight in weights})
        self.origin = ""

    @property
    def registry(self) -> MaskRegistry:
        """The masks of all variables, in which this network's are."""
        return self._contents.registry

    @property
    def version(self) -> int:
        """Different after each change."""
        return self._contents.registry.version

    @property
    def masked(self) -> Mapping[str, Any]:
        """The storages of weights that have masks, by name."""
        of = self.registry.of
        found = ((name, of(weight.variable)) for name, weight in self.weights.items())
        return {name: storage for name, storage in found if storage is not None}

    @property
    def names(self) -> Names:
        """What a user calls the weights."""
        return names_of(self.weights.values())

    @property
    def weights(self) -> Mapping[str, Any]:
        """All weights, by name."""
        return self._contents.weights

    def look(self) -> None:
        """Looks up the network's current weights, in case they have changed."""

    def storage_of(self, variable: Any) -> Any:
        """The storage of a framework's variable, None if it has no masks."""
        return self.registry.of(variable)

    def storage_for(self, name: str) -> Any:
        """The storage of a weight, made if there is none."""
        weight, store = self.weights[name], self._contents.store
        storage = self.storage_of(weight.variable)
        if storage is None and store is not None:
            storage = store(weight)
            self.registry.add(storage)
        return storage

    def read(self, name: str) -> tuple[Mask, Mask]:
        """Kept and trainable of a weight, bool arrays; all ones if it has no masks."""
        weight = self.weights[name]
        masks = masks_of(weight, self)
        every: Mask = np.broadcast_to(np.True_, weight.shape)
        return masks or (every, every)

    def write(self, name: str, kept: Mask, trainable: Mask) -> None:
        """Sets the masks of a weight."""
        self.registry.settle()
        self.storage_for(name).write(kept, trainable)
        self.registry.changed()

    @property
    def bounds(self) -> Bounds:
        """The largest that saved masks of these weights can be."""
        shapes = {name: weight.shape for name, weight in self.weights.items()}
        return Bounds.of(shapes, sum(each.axis.channels for each in self.weights.values()))

    def check_fits(self, name: str, shape: tuple[int, ...]) -> int:
        """Raises if a weight of a file isn't one of these; returns the number of its channels."""
        weight = self.weights.get(name)
        if weight is None or weight.shape != shape:
            raise misfit(name, shape, None if weight is None else weight.shape)
        return int(weight.axis.channels)

    def keep_origin(self, find: Callable[[], str]) -> None:
        """Stores the origin with the masks, unless it is known."""
        self.origin = self.origin or find()


@dataclass
class _Contents:
    """Contents that a framework's trackers don't look into."""

    registry: MaskRegistry
    store: Callable[[Any], MaskStorage] | None
    weights: dict[str, Any]


class MaskView(Mapping[str, Mask]):
    """One of the two masks of every weight, by any name of the weight."""

    def __init__(self, table: MaskTable, index: int) -> None:
        self._table = table
        self._index = index

    def __getitem__(self, name: object) -> Mask:
        self._table.look()
        known = isinstance(name, str) and name in self._table.weights
        own = str(name) if known else self._table.names.one(name)
        return self._table.read(own)[self._index]

    def __setitem__(self, name: object, mask: object) -> None:
        word, command = (("kept", "prune"), ("trainable", "freeze"))[self._index]
        raise InvalidArgument(
            f"Could not set the {word} mask of {name!r:.60}: expected a command, got an "
            f"assignment. Call {command}(name, {word}=mask)."
        )

    def __iter__(self) -> Iterator[str]:
        self._table.look()
        return map(LogName, self._table.weights)

    def __len__(self) -> int:
        self._table.look()
        return len(self._table.weights)


def masks_of(weight: Weight, table: MaskTable | None) -> tuple[Mask, Mask] | None:
    """Kept and trainable of a weight, its layer's own or those in a table; None if it has none."""
    own = weight.masks()
    if own is not None:
        return own.kept, own.trainable
    storage: MaskStorage | None = None if table is None else table.storage_of(weight.variable)
    return None if storage is None else storage.read()


def held_channels(masks: MaskStorage, axis: ChannelAxis) -> Mask | None:
    """Which channels are held whole, (channels,); None if any is pruned, or held in part."""
    kept, trainable = masks.read()
    if not kept[(slice(1),) * kept.ndim if not any(kept.strides) else ...].all():
        return None
    through = by_channel(trainable, axis)
    return None if through is None else ~through


def version_of(table: MaskTable | None, own_masks: Sequence[OwnMasks]) -> tuple[int, ...]:
    """Different after each change of masks; quick, because it is read at each step."""
    version = () if table is None else (id(table), table.version)
    return (*version, *[masks.version for masks in own_masks]) if own_masks else version
