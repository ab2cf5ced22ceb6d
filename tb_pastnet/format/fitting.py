"""What fits into a log, by the limits of its readers: asked before anything is written."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict

from tb_pastnet.format import budget, limits
from tb_pastnet.format.description import LayerEntry, VariableEntry

MOST_MASKED = min(limits.MAX_MASK, 8 * (limits.MAX_MESSAGE - 1024))
"""Elements of a weight whose masks can be stored, however they compress."""

_SHARE = 32
"""A part in so many of a description is for what was skipped, one for groups, one for the rest."""

_SHOWN = 200

_json = json.JSONEncoder(separators=(",", ":")).encode

# What an entry takes besides its names and numbers; `group` has as many digits as "null".
_VARIABLE = len(_json(asdict(VariableEntry("", "", "", "", (), "", "", False, 0, 0))))
_LAYER = len(_json(asdict(LayerEntry("", "", "", "", (), ""))))


class Room:
    """Decides which variables a description has room for, in the order in which they are asked."""

    def __init__(self) -> None:
        self._left = limits.MAX_JSON - 3 * _share()
        self._channels = 0
        self._names: set[str] = set()
        self._longest: dict[str, int] = {}

    def refusal(self, variable: VariableEntry, kind: str) -> str | None:
        """Why a variable of a layer of some class can't be recorded; if it can, it takes its room.

        Example:
            >>> entry = VariableEntry("w", "w", "w", "other", (2,), "float32", "-1", True, 2, 1)
            >>> room = Room()
            >>> room.refusal(entry, "Dense"), room.refusal(entry, "Dense")
            (None, 'another one has its name')
        """
        own = (
            variable.id,
            variable.name,
            variable.role,
            variable.dtype,
            variable.axis,
            *variable.also,
        )
        reason = next(filter(None, map(_refused_name, (*own, variable.layer, kind))), None)
        if reason is not None:
            return reason
        if variable.id in self._names:
            return "another one has its name"
        if variable.channels > limits.MAX_CHANNELS:
            return f"it has {variable.channels:,} channels, more than {limits.MAX_CHANNELS:,}"
        if self._channels + variable.channels > budget.MAX_CHANNELS:
            return f"a run has no room for more than {budget.MAX_CHANNELS:,} channels"
        numbers = [*variable.shape, variable.channels, variable.elements]
        # The layer lists its variables, and names one of them once more.
        longest = self._longest.get(variable.layer, 0)
        named = len(_json(variable.id))
        size = _VARIABLE + len(_json([*own, variable.layer, numbers]))
        size += named + max(0, named - longest)
        size += len(_json([len(self._names)]))  # its number, if it is together with others
        if not longest:
            size += _LAYER + len(_json([variable.layer, variable.layer, kind]))
        if size > self._left:
            return "a log has no room for more names"
        self._left -= size
        self._channels += variable.channels
        self._names.add(variable.id)
        self._longest[variable.layer] = max(longest, named)
        return None

    def listed(self, skipped: Iterable[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
        """Names and reasons of what was skipped, as far as there is room; the last may count more.

        Long names are cut.

        Example:
            >>> Room().listed([("a", "it has no elements")])
            (('a', 'it has no elements'),)
        """
        entries: list[tuple[str, str]] = []
        left, more = self._left + _share(), 0
        for name, reason in skipped:
            entry = shown(name, _SHOWN), shown(reason, 2 * _SHOWN)
            left -= len(_json(entry)) + 1
            if left > 0:
                entries.append(entry)
            else:
                more += 1
        rest = (f"… {more:,} more", "a log has no room to list them")
        return (*entries, rest) if more else tuple(entries)


def shown(name: str, most: int = limits.MAX_NAME) -> str:
    r"""A name as it is, or, if a reader would refuse it, cut and marked so that it stays unique.

    Example:
        >>> shown("a/k"), shown("a\ud800")
        ('a/k', 'a\\ud800… (2 characters, cdd91949)')
    """
    if len(name) <= most and _refused_name(name) is None:
        return name
    begin = name[: min(most, _SHOWN)].encode("utf-8", "backslashreplace").decode()
    digest = hashlib.blake2b(name.encode("utf-8", "surrogatepass"), digest_size=4).hexdigest()
    return f"{begin}… ({len(name):,} characters, {digest})"


def group_names(names: Collection[str]) -> tuple[str, ...]:
    """Names of groups of weights as a description can list them, as many as a reader accepts."""
    chosen = list(names)[: limits.MAX_GROUPS]
    # In JSON a character takes up to 12 bytes, and a mark may follow.
    most = (_share() // max(len(chosen), 1) - 80) // 12
    return tuple(shown(name, max(1, min(most, limits.MAX_NAME))) for name in chosen)


def config_fits(config: Mapping[str, object]) -> bool:
    """Whether a description has room for a user's mapping, and a reader accepts its texts."""
    texts = [*config, *(value for value in config.values() if isinstance(value, str))]
    return not any(map(_refused_name, texts)) and len(_json(config)) <= _share() // 2


def _share() -> int:
    return limits.MAX_JSON // _SHARE


def _refused_name(name: str) -> str | None:
    try:
        size = len(name.encode())
    except UnicodeEncodeError:
        return "its name isn't Unicode: it has half of a pair of surrogates"
    if size > limits.MAX_NAME:
        return f"its name takes {size:,} bytes, more than {limits.MAX_NAME:,}"
    return None
