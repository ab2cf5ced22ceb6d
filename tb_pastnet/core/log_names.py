"""Weights by patterns of their names in a log."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tb_pastnet.core.names import Called, Names
from tb_pastnet.errors import UnknownName

_NOT = "not:"


class LogNames:
    """Finds weights by patterns of their names in a log, as `variables=` does; "." is like "/".

    "not:" before a pattern means all that it doesn't match.

    Args:
        names: of each weight its other names, by the one that it has in the log.

    Example:
        >>> names = LogNames({"base/0/kernel": (), "embed/kernel": ("head/kernel",)})
        >>> names.all("base.*"), names.all("head.kernel")
        (['base/0/kernel'], ['embed/kernel'])
        >>> names.all("not:base.*")
        ['embed/kernel']
    """

    def __init__(self, names: Mapping[str, Iterable[str]]) -> None:
        self._own: dict[str, list[str]] = {}
        others: dict[str, list[str]] = {}
        for name, also in names.items():
            self._own.setdefault(_alike(name), []).append(name)
            others.setdefault(_alike(name), []).extend(map(_alike, also))
        called = {name: (name, *also) if also else () for name, also in others.items()}
        self._names = Names({name: Called(names=each) for name, each in called.items()})

    def all(self, pattern: str) -> list[str]:
        """The names that a pattern means; raises UnknownName if there are none."""
        if pattern.startswith(_NOT):
            return self._all_but(pattern)
        alike = _alike(pattern)
        try:
            matching = self._names.all(alike)
        except UnknownName as error:
            raise UnknownName(str(error).replace(repr(alike), repr(pattern))) from None
        return [name for each in matching for name in self._own[each]]

    def _all_but(self, pattern: str) -> list[str]:
        without = set(self.all(pattern.removeprefix(_NOT)))
        remaining = [name for own in self._own.values() for name in own if name not in without]
        if not remaining:
            raise UnknownName(
                f"Could not find weights by {pattern!r}: expected some besides these, got all "
                f"{len(without):,}. Write a pattern that matches fewer."
            )
        return remaining


def _alike(name: str) -> str:
    return name.replace(".", "/")
