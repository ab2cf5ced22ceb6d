"""What was computed lately, up to a ceiling of bytes."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Protocol, TypeVar

from tb_pastnet.reader.notes import WITHHELD, Notes

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


class Read(Protocol):
    """What was made of records: the bytes that it holds, and what could not be read of it."""

    @property
    def size(self) -> int: ...  # noqa: D102

    @property
    def notes(self) -> Notes: ...  # noqa: D102


ReadValue = TypeVar("ReadValue", bound=Read)


def sized(value: ReadValue) -> tuple[ReadValue, int | None]:
    """A value for `Cache.get`: one that TensorBoard withheld a part of is made anew each time."""
    return value, None if WITHHELD in value.notes else value.size


class Cache:
    """Keeps the latest answers, each until its data changes or a ceiling of bytes is reached.

    Safe to use from many threads: one value is made once, however many ask for it at a time, and
    the making of one doesn't hold up the others. The least recently used go first. A value larger
    than the ceiling is handed out and not kept.

    Example:
        >>> cache = Cache(ceiling=100)
        >>> cache.get("a", version=1, make=lambda: ("first", 10))
        'first'
        >>> cache.get("a", version=1, make=lambda: ("never made", 10))
        'first'
        >>> cache.get("a", version=2, make=lambda: ("second", 10))
        'second'
        >>> cache.held
        10
    """

    def __init__(self, ceiling: int) -> None:
        self._ceiling = ceiling
        self._lock = threading.Lock()
        self._making: dict[Hashable, threading.Lock] = {}
        self._values: OrderedDict[Hashable, tuple[Hashable, Any, int]] = OrderedDict()
        self._held = 0

    @property
    def held(self) -> int:
        """Bytes that are held now."""
        return self._held

    def holds(self, key: Hashable, version: Hashable) -> bool:
        """Whether the value of a key is there in this version."""
        with self._lock:
            entry = self._values.get(key)
            return entry is not None and bool(entry[0] == version)

    def get(
        self, key: Hashable, version: Hashable, make: Callable[[], tuple[Value, int | None]]
    ) -> Value:
        """Gives the value of a key, made anew where there is none of this version.

        What makes it also says how many bytes it holds, or None: it isn't kept. What that raises
        goes to the caller, and nothing is kept.
        """
        with self._lock:
            making = self._making.setdefault(key, threading.Lock())
        try:
            with making:
                with self._lock:
                    entry = self._values.get(key)
                    if entry is not None and entry[0] == version:
                        self._values.move_to_end(key)
                        return entry[1]  # type: ignore[no-any-return]
                value, size = make()
                with self._lock:
                    self._put(key, version, value, size)
                return value
        finally:
            with self._lock:
                self._making.pop(key, None)

    def get_each(
        self,
        versions: Mapping[Key, Hashable],
        make: Callable[[Sequence[Key]], Iterable[ReadValue]],
    ) -> dict[Key, ReadValue]:
        """Gives the values of many keys; those that aren't there are made in one go."""
        missing = [key for key, version in versions.items() if not self.holds(key, version)]
        fresh = dict(zip(missing, make(missing), strict=True)) if missing else {}

        def make_one(key: Key) -> tuple[ReadValue, int | None]:
            # Not made above: it was held a moment ago and had to make room since.
            return sized(fresh[key] if key in fresh else next(iter(make([key]))))

        return {
            key: self.get(key, version, partial(make_one, key)) for key, version in versions.items()
        }

    def forget(self, names: Collection[Hashable]) -> None:
        """Lets go of all values whose keys hold one of some names.

        Example:
            >>> cache = Cache(ceiling=100)
            >>> cache.get(("layer", ("a", "b")), version=1, make=lambda: ("first", 10))
            'first'
            >>> cache.forget({"b"})
            >>> cache.held
            0
        """
        with self._lock:
            for key in [key for key in self._values if _holds(key, names)]:
                self._held -= self._values.pop(key)[2]

    def _put(self, key: Hashable, version: Hashable, value: object, size: int | None) -> None:
        old = self._values.pop(key, None)
        if old is not None:
            self._held -= old[2]
        if size is None or size > self._ceiling:
            return
        self._values[key] = (version, value, size)
        self._held += size
        while self._held > self._ceiling:
            _, (_, _, freed) = self._values.popitem(last=False)
            self._held -= freed


def _holds(key: Hashable, names: Collection[Hashable]) -> bool:
    parts = key if isinstance(key, tuple) else ()
    return key in names or any(_holds(part, names) for part in parts)
