"""Things by name, found by the end of their name as well."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import TypeVar

from tb_pastnet.core.counted import counted
from tb_pastnet.core.names import resolve
from tb_pastnet.errors import UnknownName

Thing = TypeVar("Thing")

_SHOWN = 12


class Named(Mapping[str, Thing]):
    """A mapping from names to things, in their order.

    Any end of a name that fits only one is accepted: `layers["conv1"]` finds `block/conv1`.

    Args:
        things: by their full names.
        kind: the kind of thing, for errors.
        root: the root of the names, for errors.
        empty: what was expected if there are none, and what to do, for errors.
        also: other full names, with those in `things`.

    Raises:
        UnknownName: when a name is looked up that fits none or several; a KeyError.

    Example:
        >>> layers = Named({"block/conv1": 1, "head": 2}, "layer", "the model")
        >>> layers["conv1"], list(layers)
        (1, ['block/conv1', 'head'])
    """

    def __init__(
        self,
        things: Mapping[str, Thing],
        kind: str,
        root: str,
        empty: str = "",
        also: Mapping[str, str] | None = None,
    ) -> None:
        self._things = dict(things)
        self._also = {name: own for name, own in (also or {}).items() if name not in things}
        self._kind = kind
        self._root = root
        self._empty = empty

    def __getitem__(self, name: str) -> Thing:
        return self._things[self._full(name)]

    def _full(self, name: str) -> str:
        if name in self._things:
            return name
        if self._empty and not self._things:
            raise UnknownName(f"Could not find {self._kind} {name!r:.60}: {self._empty}")
        found = resolve(name, [*self._things, *self._also], self._kind, self._root)
        return self._also.get(found, found)

    def chosen(self, names: Sequence[str] | None) -> list[Thing]:
        """The things with the given names, or unique ends of names, each once; None: all."""
        if names is None:
            return list(self.values())
        found = dict.fromkeys(self._full(name) for name in names)
        return [self._things[name] for name in found]

    def __contains__(self, name: object) -> bool:
        return name in self._things

    def __iter__(self) -> Iterator[str]:
        return iter(self._things)

    def __len__(self) -> int:
        return len(self._things)

    def __repr__(self) -> str:
        names = [repr(name) for name in islice(self._things, _SHOWN)]
        names += ["…"] if len(self) > _SHOWN else []
        return f"{counted(len(self), self._kind)}: {', '.join(names)}"

    def _ipython_key_completions_(self) -> list[str]:
        return list(self._things)
