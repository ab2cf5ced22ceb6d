"""A cache of recent results, up to a number of bytes."""

from __future__ import annotations

import math
import threading
from collections import OrderedDict
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from typing import Any, Protocol, TypeVar

from tb_pastnet.reader.notes import NO_MEMORY, WITHHELD, Notes

Key = TypeVar("Key", bound=Hashable)


class Read(Protocol):
    """A result made from records: its size in bytes, and notes on what could not be read."""

    @property
    def size(self) -> int: ...  # noqa: D102

    @property
    def notes(self) -> Notes: ...  # noqa: D102


ReadValue = TypeVar("ReadValue", bound=Read)


class Cache:
    """Keeps recent answers, each until its data changes or the cache is full.

    Thread-safe: a value is made once, however many threads ask for it, and making one doesn't block
    the others. The least recently used are evicted first. A value larger than the limit is returned
    but not kept, as is one that lacks a part which may be there the next time. `ceiling` is the
    limit, in bytes.
    """

    def __init__(self, ceiling: int) -> None:
        self.ceiling = ceiling
        self._lock = threading.Lock()
        self._making: dict[Hashable, threading.Lock] = {}
        self._values: OrderedDict[Hashable, tuple[Hashable, Read]] = OrderedDict()
        self._held = 0

    @property
    def held(self) -> int:
        """Bytes in use."""
        return self._held

    def find(self, key: Hashable, version: Hashable) -> Any:
        """The value of a key in this version, None if it isn't there."""
        with self._lock:
            held_version, value = self._values.get(key, (None, None))
            if value is None or held_version != version:
                return None
            self._values.move_to_end(key)
            return value

    def get(
        self,
        key: Hashable,
        version: Hashable,
        make: Callable[[], ReadValue],
        most: float = math.inf,
    ) -> ReadValue:
        """Returns the value of a key, made again if there is none of this version.

        A value of more than `most` bytes isn't kept. Errors of `make` go to the caller.
        """
        with self._lock:
            making = self._making.setdefault(key, threading.Lock())
        try:
            with making:
                value: ReadValue | None = self.find(key, version)
                if value is None:
                    value = make()
                    self._put(key, version, value, most)
                return value
        finally:
            with self._lock:
                self._making.pop(key, None)

    def get_each(
        self,
        versions: Mapping[Key, Hashable],
        make: Callable[[Sequence[Key]], Iterable[ReadValue]],
    ) -> dict[Key, ReadValue]:
        """Returns the values of many keys; missing ones are made together."""
        values = {key: self.find(key, version) for key, version in versions.items()}
        missing = [key for key, value in values.items() if value is None]
        for key, value in zip(missing, make(missing) if missing else (), strict=True):
            values[key] = value
            self._put(key, versions[key], value)
        return values

    def forget(self, names: Collection[Hashable]) -> None:
        """Drops all values whose keys contain one of some names, at any depth."""
        with self._lock:
            for key in [key for key in self._values if _holds(key, names)]:
                self._held -= self._values.pop(key)[1].size

    def _put(self, key: Hashable, version: Hashable, value: Read, most: float = math.inf) -> None:
        with self._lock:
            if key in self._values:
                self._held -= self._values.pop(key)[1].size
            is_passing = not value.notes.keys().isdisjoint((WITHHELD, NO_MEMORY))
            if is_passing or value.size > min(most, self.ceiling):
                return
            self._values[key] = (version, value)
            self._held += value.size
            while self._held > self.ceiling:
                self._held -= self._values.popitem(last=False)[1][1].size


def _holds(key: Hashable, names: Collection[Hashable]) -> bool:
    parts = key if isinstance(key, tuple) else ()
    return key in names or any(_holds(part, names) for part in parts)
