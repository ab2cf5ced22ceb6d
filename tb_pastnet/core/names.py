"""Names of variables in a network.

A variable is known by its path of layer names below the model's root. Keras numbers unnamed layers
through the whole process (`dense_7` in the second model), so the layers are numbered again within
each parent: the same architecture has the same names in every process and after every load.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from difflib import SequenceMatcher
from fnmatch import fnmatchcase
from functools import cached_property
from itertools import chain, count
from typing import Any, NamedTuple, TypeVar

from tb_pastnet.errors import InvalidArgument, UnknownName

V = TypeVar("V")

_DEEP = 64


def snake_case(class_name: str) -> str:
    """The name that Keras gives to an unnamed layer of a class, without its number."""
    # As keras.src.utils.naming.to_snake_case.
    name = re.sub(r"\W+", "", class_name)
    name = re.sub("(.)([A-Z][a-z]+)", r"\1_\2", name)
    return re.sub("([a-z])([A-Z])", r"\1_\2", name).lower()


def renumber(siblings: Sequence[tuple[str, str]]) -> list[str]:
    """Numbers the unnamed layers of one parent again, by class name and layer name, in their order.

    Chosen names are kept, automatic ones counted from the first of their class; all are unique.

    Example:
        >>> renumber([("Dense", "dense_7"), ("Dense", "head"), ("Dense", "dense_9")])
        ['dense', 'head', 'dense_1']
    """
    bases = [_automatic(class_name, name) for class_name, name in siblings]
    chosen = {name for (_, name), base in zip(siblings, bases, strict=True) if base is None}
    names: list[str] = []
    used: set[str] = set(chosen)
    for (_, name), base in zip(siblings, bases, strict=True):
        keep = base is None and name not in names
        names.append(name if keep else _free(base or name, used))
        used.add(names[-1])
    return names


def _automatic(class_name: str, name: str) -> str | None:
    base = snake_case(class_name)
    return base if re.fullmatch(re.escape(base) + r"(_\d+)?", name) else None


def _free(base: str, used: set[str]) -> str:
    numbered = (f"{base}_{number}" for number in count(1))
    return next(name for name in chain([base], numbered) if name not in used)


def resolve(
    name: str, identities: Iterable[str], kind: str = "variable", root: str = "the model"
) -> str:
    """Finds the one identity that a name means: itself, or a suffix of whole path elements.

    Raises UnknownName if none fits (it lists the nearest) or several do, and InvalidArgument if the
    name isn't a string. `kind` and `root` are for the error: the kind of thing, and the root of its
    paths.
    """
    candidates = list(identities)
    if not isinstance(name, str):
        raise InvalidArgument(
            f"Could not find a {kind} by {name!r:.60}: expected its name, got "
            f"{type(name).__name__}. Choose among {_listed(candidates)}."
        )
    exact = [identity for identity in candidates if identity == name]
    fits = exact[:1] or [each for each in candidates if each.endswith(f"/{name}")]
    if len(fits) == 1:
        return fits[0]
    shown = _listed(fits or _nearest_first(name, candidates))
    if fits:
        raise UnknownName(
            f"Could not find {kind} {name!r}: expected a name that fits one {kind}, got "
            f"{len(fits)} with this ending: {shown}. Write more of its path."
        )
    mend = f"Use a {kind}'s path below {root}, or the end of it."
    if any(each.startswith(f"{name}/") for each in candidates):
        mend = f"Write '{name}/*' for all that are in it."
    raise UnknownName(
        f"Could not find {kind} {name!r}: expected one of {shown}, got no match. {mend}"
    )


class LogName(str):
    """A name that came from the log, not from the user: it is read only as the name in the log."""

    __slots__ = ()


class Called(NamedTuple):
    """What a variable may be called besides its name in the log."""

    shape: tuple[int, ...] = ()  # of the variable, by which errors tell two apart
    # its paths in the framework, first the one below the root: "dense_7/kernel"
    names: tuple[str, ...] = ()
    # objects that mean it: the variable itself, and the layers that it belongs to
    handles: tuple[object, ...] = ()


class Names:
    """Looks up what a user calls the variables of a network, given in forward order.

    A name is read as ours and as the framework's own, in full or by the end of its path. If the two
    readings give different variables, that is an error that names both.

    Example:
        >>> names = Names({"dense/kernel": Called((4, 2), ("dense_7/kernel",))})
        >>> names.one("dense_7/kernel"), names.all("*/kernel")
        ('dense/kernel', ['dense/kernel'])
    """

    def __init__(self, called: Mapping[str, Called]) -> None:
        self._called = called
        # Pairs of a path and our name: ours, the framework's below the root, all of the framework.
        self._own = [(name, name) for name in called]
        self._below = [(each.names[0], name) for name, each in called.items() if each.names]
        self._foreign = [(alias, name) for name, each in called.items() for alias in each.names]
        self._handled: dict[int, list[str]] = {}
        for name, each in called.items():
            for handle in {id(handle) for handle in each.handles}:
                self._handled.setdefault(handle, []).append(name)

    @cached_property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The shape of each variable, in forward order."""
        return {name: each.shape for name, each in self._called.items()}

    @cached_property
    def _own_ends(self) -> dict[str, list[str]]:
        return _by_ends(self._own)

    @cached_property
    def _foreign_ends(self) -> dict[str, list[str]]:
        return _by_ends(self._foreign)

    @cached_property
    def _layers(self) -> list[dict[str, list[str]]]:
        return [_by_layers(each) for each in (self._own, self._below, self._foreign)]

    def one(self, wanted: object) -> str:
        """The one variable meant by a name, by itself, or by a layer that has no other.

        Raises UnknownName if none or several are meant, and InvalidArgument for what is neither a
        name nor a part of this network.
        """
        names = self.all(wanted)
        if len(names) != 1:
            raise UnknownName(
                f"Could not find one variable by {_shown(wanted)}: expected something that fits "
                f"one, got {len(names)}: {self._described(names)}. Name one of them."
            )
        return names[0]

    def all(self, wanted: object) -> list[str]:
        """All variables meant by a name, pattern, variable or layer, or by a list of these.

        The path of a layer means its variables, unless it also fits a variable. Raises as `one`
        does, except for a pattern or a layer that fits several.
        """
        chosen = {name for names in self.groups(wanted) for name in names}
        return [name for name in self._called if name in chosen]

    def following(self, follows: object) -> set[str]:
        """All variables meant by `follows=`; raises as `all`, with the way that needs no name."""
        try:
            return set(self.all(follows))
        except UnknownName as error:
            # A clone is seldom called in the log what its attribute is called.
            mend = "Or pass the layer itself: follows=model.target."
            raise UnknownName(f"{error} {mend}") from error

    def groups(self, wanted: object) -> list[list[str]]:
        """The same, separately for each name, pattern, variable and layer in a list."""
        if isinstance(wanted, str):
            # A layer may be called "b[1]".
            pattern = is_pattern(wanted) and not self._is_path(wanted)
            return [self._fitting(wanted) if pattern else self._named(wanted)]
        if id(wanted) in self._handled:
            return [self._handled[id(wanted)]]
        if isinstance(wanted, Iterable) and not hasattr(wanted, "shape"):
            return [group for each in wanted for group in self.groups(each)]
        raise InvalidArgument(
            f"Could not choose {_shown(wanted)}: expected a variable or layer of this network, or "
            f"a name, got another {type(wanted).__name__}. Choose among "
            f"{_listed(list(self._called))}."
        )

    def keyed(self, given: Mapping[Any, V] | None, argument: str) -> dict[str, V]:
        """What is given for variables by what a user calls them, by their names in the log.

        Raises as `all` does, and InvalidArgument for what is no mapping.
        """
        if not isinstance(given, Mapping | None):
            raise InvalidArgument(
                f"Could not read {argument}=: expected a mapping from names, got {given!r:.60}. "
                f"Write {argument}={{{next(iter(self._called), 'name')!r}: …}}."
            )
        return {
            name: value
            for key, value in (given or {}).items()
            for names in self.groups(key)
            for name in names
        }

    def _named(self, name: str) -> list[str]:
        """The variable of a name; if it fits none, all variables of the layer with this path."""
        if isinstance(name, LogName) and name in self._called:
            return [str(name)]
        ours = self._own_ends.get(name, [])
        fits = list(dict.fromkeys([*self._foreign_ends.get(name, []), *ours]))
        if len(fits) == 1:
            return fits
        if not fits and self._is_path(name):
            return self._agreed(f"{name}/*", *(each.get(name, []) for each in self._layers))
        if len(fits) == len(ours):
            return [resolve(name, self._called)]
        raise UnknownName(
            f"Could not find variable {name!r}: expected a name that fits one variable, got "
            f"{len(fits)}, counting names in the log and the framework's: {self._described(fits)}. "
            f"Write more of its path, or pass the variable itself."
        )

    def _is_path(self, name: str) -> bool:
        """Whether a variable has this name, or a layer this path."""
        return any(name in each for each in (self._own_ends, self._foreign_ends, *self._layers))

    def _fitting(self, pattern: str) -> list[str]:
        """Those that a pattern fits. The root's own name in some paths doesn't count."""
        called = (self._own, self._below, self._foreign)
        return self._agreed(pattern, *(_matching(pattern, each) for each in called))

    def _agreed(
        self, pattern: str, ours: list[str], below: list[str], foreign: list[str]
    ) -> list[str]:
        fits = ours or below or foreign
        if not fits:
            raise UnknownName(
                f"Could not find variables by {pattern!r}: expected a pattern that fits some of "
                f"{_listed(list(self._called))}, got one that fits none. Correct it, or leave it "
                f"out."
            )
        if not (ours and below) or ours == below:
            return fits
        both = [name for name in self._called if (name in ours) != (name in below)]
        raise UnknownName(
            f"Could not find variables by {pattern!r}: expected a pattern that fits the same by "
            f"the names in the log and by the framework's, got one that fits only by one of them: "
            f"{self._described(both)}. Write more of the path, or pass layers or variables."
        )

    def _described(self, names: Sequence[str]) -> str:
        """Names with shapes, and the first other name of each."""
        return _listed([self._line(name) for name in names])

    def _line(self, name: str) -> str:
        called = self._called[name]
        shape = f" {called.shape}" if called.shape else ""
        others = [alias for alias in called.names if not f"/{alias}".endswith(f"/{name}")]
        return f"{name}{shape}" + (f", the framework's {others[0]}" if others else "")


def _parts(path: str) -> list[tuple[str, str]]:
    """Each beginning of a path, a layer's, with the end that follows it.

    A very deep path has only its outer and inner ones: all of them take its length squared.
    """
    elements = path.split("/")
    places = [*range(1, len(elements))]
    if len(places) > 2 * _DEEP:
        places = places[:_DEEP] + places[-_DEEP:]
    return [("/".join(elements[:place]), "/".join(elements[place:])) for place in places]


def _grouped(pairs: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    """The identities by the keys that they are paired with, each once."""
    groups: dict[str, dict[str, None]] = {}
    for key, identity in pairs:
        groups.setdefault(key, {})[identity] = None
    return {key: list(group) for key, group in groups.items()}


def _by_ends(called: Sequence[tuple[str, str]]) -> dict[str, list[str]]:
    """The identities that each name means, of pairs of path and identity: paths before ends."""
    ends = ((end, identity) for path, identity in called for _, end in _parts(path))
    return _grouped(ends) | _grouped(called)


def _by_layers(called: Sequence[tuple[str, str]]) -> dict[str, list[str]]:
    """The identities below each layer, of pairs of path and identity."""
    return _grouped((layer, identity) for path, identity in called for layer, _ in _parts(path))


def _matching(pattern: str, called: Sequence[tuple[str, str]]) -> list[str]:
    return list(dict.fromkeys(name for path, name in called if fnmatchcase(path, pattern)))


def is_pattern(name: str) -> bool:
    """Whether a name may fit several."""
    return any(mark in name for mark in "*?[")


def _shown(wanted: object) -> str:
    return f"{getattr(wanted, 'name', wanted)!r:.80}"


def _listed(names: Sequence[str]) -> str:
    if not names:
        return "none at all"
    return ", ".join(names[:8]) + (", …" if len(names) > 8 else "")


def _nearest_first(name: str, identities: Sequence[str]) -> list[str]:
    elements = name.count("/") + 1

    def likeness(identity: str) -> float:
        end = "/".join(identity.split("/")[-elements:])
        return SequenceMatcher(None, name, end).ratio()

    return sorted(identities, key=likeness, reverse=True)
