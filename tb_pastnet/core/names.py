"""Names of variables in a network.

A variable is known by its path of layer names below the model's root. Keras numbers unnamed layers
through the whole process (`dense_7` in the second model), so those numbers are given anew within
each parent: the same architecture has the same names in every process and after every load.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from difflib import SequenceMatcher
from fnmatch import fnmatchcase

from tb_pastnet.errors import InvalidArgument, UnknownName


def snake_case(class_name: str) -> str:
    """The name that Keras gives to an unnamed layer of a class, without its number."""
    # As keras.src.utils.naming.to_snake_case.
    name = re.sub(r"\W+", "", class_name)
    name = re.sub("(.)([A-Z][a-z]+)", r"\1_\2", name)
    return re.sub("([a-z])([A-Z])", r"\1_\2", name).lower()


def renumber(siblings: Sequence[tuple[str, str]]) -> list[str]:
    """Numbers the unnamed layers of one parent anew, by class name and layer name, in their order.

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
    if base not in used:
        return base
    number = 1
    while f"{base}_{number}" in used:
        number += 1
    return f"{base}_{number}"


def resolve(
    name: str, identities: Iterable[str], kind: str = "variable", root: str = "the model"
) -> str:
    """Finds the one identity that a name means: itself, or a suffix of whole path elements.

    Raises UnknownName where none fits, which names the nearest, or several do. `kind` and `root`
    are for the error: what is named, and what its paths begin below.
    """
    candidates = list(identities)
    if name in candidates:
        return name
    fits = [identity for identity in candidates if identity.endswith("/" + name)]
    if len(fits) == 1:
        return fits[0]
    candidates = fits or _nearest_first(name, candidates)
    shown = ", ".join(candidates[:8]) + (", …" if len(candidates) > 8 else "")
    if fits:
        raise UnknownName(
            f"Could not find {kind} {name!r}: expected a name that fits one {kind}, got "
            f"{len(fits)} that end so: {shown}. Write more of its path."
        )
    raise UnknownName(
        f"Could not find {kind} {name!r}: expected one of {shown or 'none at all'}, got no "
        f"match. Use a {kind}'s path below {root}, or the end of it."
    )


def choose(
    wanted: Iterable[object],
    identities: Mapping[str, str],
    name_of: Callable[[object], str | None] = lambda _: None,
) -> set[str]:
    """The identities of what a user chooses, as by `variables=`, of the identity behind each name.

    Wanted are names, ends of names, patterns such as `"*/kernel"`, or variables: `name_of` gives
    the identity of a variable, None where it isn't one of these, which raises InvalidArgument. A
    name that fits none, or several, raises UnknownName.
    """
    chosen: set[str] = set()
    for want in (wanted,) if isinstance(wanted, str) else wanted:
        if not isinstance(want, str):
            name = name_of(want)
            if name is None:
                raise InvalidArgument(
                    f"Could not choose {getattr(want, 'name', want)!r:.80}: expected a variable "
                    f"of the model, or a name, got another one. Correct variables=."
                )
            chosen.add(name)
        elif any(mark in want for mark in "*?["):
            chosen.update(own for name, own in identities.items() if fnmatchcase(name, want))
        else:
            chosen.add(identities[resolve(want, identities)])
    return chosen


def _nearest_first(name: str, identities: Sequence[str]) -> list[str]:
    elements = name.count("/") + 1

    def likeness(identity: str) -> float:
        end = "/".join(identity.split("/")[-elements:])
        return SequenceMatcher(None, name, end).ratio()

    return sorted(identities, key=likeness, reverse=True)
