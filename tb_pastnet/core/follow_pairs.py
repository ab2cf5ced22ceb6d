"""Which weight each one of `follows=` follows: a target network's from the network's own."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from tb_pastnet.core.names import Names
from tb_pastnet.errors import InvalidArgument

Follows = Mapping[Any, Any] | Iterable[Any] | None
"""A user's targets, or a mapping from these to their sources."""


def follow_pairs(
    names: Names, follows: Follows, look_up: Callable[[Any], Collection[str]]
) -> dict[str, str | None]:
    """The source of each weight that follows, by their names in the log.

    Args:
        names: of all weights.
        follows: a mapping from targets to sources, or only targets, in a user's own words. Then
            sources are found by name; None if that isn't clear. None: no weight follows.
        look_up: finds the names of targets without sources, like `names.following`.

    Raises:
        InvalidArgument: a target has no source of its shape, several, or is its own source.
        UnknownName: as `names.all` does.
    """
    if follows is None:
        return {}
    if isinstance(follows, Mapping):
        pairs: dict[str, str | None] = {}
        for target, source in follows.items():
            pairs.update(_paired(names, names.all(target), names.all(source)))
        return pairs
    targets = set(look_up(follows))
    others = [name for name in names.shapes if name not in targets]
    return {name: _by_name(names, name, others) for name in names.shapes if name in targets}


def _paired(names: Names, targets: Sequence[str], sources: Sequence[str]) -> Iterator[Any]:
    for target in targets:
        if target in sources:
            raise InvalidArgument(
                f"Could not follow {target!r}: expected follows= with two weights, a target and "
                f"its source, got one weight as both. Make the target a copy, as by "
                f"copy.deepcopy: a weight that is shared can't lag behind."
            )
        fitting = [each for each in sources if names.shapes[each] == names.shapes[target]]
        if len(targets) > 1 or len(sources) > 1:
            same = {each: _same_end(target, each) for each in fitting}
            fitting = [each for each in fitting if same[each] == max(same.values()) > 0]
        if len(fitting) != 1:
            raise InvalidArgument(
                f"Could not follow {target!r}: expected one source of shape "
                f"{names.shapes[target]} with the same end of its name, got {len(fitting)} in "
                f"{', '.join(map(repr, sources[:4]))}. Name each pair: follows={{target: source}}."
            )
        yield target, fitting[0]


def _same_end(one: str, other: str) -> int:
    """How many of the last elements of two paths are equal."""
    count = 0
    for left, right in zip(one.split("/")[::-1], other.split("/")[::-1], strict=False):
        if left != right:
            break
        count += 1
    return count


def _by_name(names: Names, target: str, others: Sequence[str]) -> str | None:
    """The source whose path differs in one element only: "online/fc/w", "fc/w" of "target/fc/w"."""
    fitting = [
        other
        for other in others
        if names.shapes[other] == names.shapes[target] and _is_beside(target, other)
    ]
    return fitting[0] if len(fitting) == 1 else None


def _is_beside(target: str, other: str) -> bool:
    own, their = target.split("/"), other.split("/")
    end = _same_end(target, other)
    begin = sum(1 for _ in _common(own, their))
    # One element of the target's path, but not the weight's own name, is another or is left out.
    beside = len(own) - 1 - begin
    return end > 0 and len(their) - len(own) in (0, -1) and 0 <= beside <= end


def _common(own: Sequence[str], their: Sequence[str]) -> Iterator[str]:
    for left, right in zip(own, their, strict=False):
        if left != right:
            return
        yield left
