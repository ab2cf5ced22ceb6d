"""Held weights that moved: what the audit found, a channel and a beginning each.

Stored as deflated JSON. Channels of one variable that began at one step are stored together, as
columns, so that a layer of thousands of channels stays small. Unknown keys are ignored.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tb_pastnet.core.violation import Violation
from tb_pastnet.errors import InvalidArgument
from tb_pastnet.format import json_payload, limits, varint
from tb_pastnet.format.envelope import Kind, seal, unseal
from tb_pastnet.format.json_payload import text, whole


def encode_violations(
    violations: Sequence[Violation], *, tag: str, step: int, lineage: int
) -> bytes:
    """Packs and seals some violations.

    Args:
        violations: at most `limits.MAX_VIOLATIONS`.
        tag: the tag that they will be stored under.
        step: the event's step, larger than that of the event before.
        lineage: the writer's id.

    Returns:
        The sealed message.

    Raises:
        InvalidArgument: they are too many.

    Example:
        >>> found = Violation("conv1/kernel", 3, 40, 90, 12, 36, 0.00125, "weight_decay")
        >>> message = encode_violations([found], tag="violations", step=90, lineage=1)
        >>> decode_violations(message, tag="violations", step=90, lineage=1) == (found,)
        True
    """
    if len(violations) > limits.MAX_VIOLATIONS:
        raise InvalidArgument(
            f"Could not encode violations: expected at most {limits.MAX_VIOLATIONS}, got "
            f"{len(violations)}. Store them in several messages."
        )
    payload = json_payload.pack({"violations": _columns(violations)})
    return seal(payload, Kind.VIOLATIONS, tag=tag, step=step, lineage=lineage)


def decode_violations(
    message: bytes, *, tag: str, step: int, lineage: int
) -> tuple[Violation, ...]:
    """Opens a message and restores its violations.

    Args:
        message: stored bytes, untrusted.
        tag: the tag that it was found under.
        step: the step of its event.
        lineage: the lineage it belongs to.

    Returns:
        The violations, those of one variable, beginning and cause side by side.

    Raises:
        UnreadableRecord: foreign, of a newer version, or damaged.
    """
    payload = unseal(message, Kind.VIOLATIONS, tag=tag, step=step, lineage=lineage)
    data = json_payload.unpack(payload)
    try:
        count = sum(len(entry["channel"]) for entry in data["violations"])
        if count > limits.MAX_VIOLATIONS:
            raise ValueError(f"{count} violations")
        return tuple(found for entry in data["violations"] for found in _rows(entry))
    except json_payload.WRONG as error:
        raise varint.damaged("complete violations", repr(error)[:200]) from None


def _columns(violations: Sequence[Violation]) -> list[dict[str, Any]]:
    groups: dict[tuple[str, int, int, str], list[Violation]] = {}
    for one in violations:
        key = (one.variable, one.first_step, one.last_step, one.cause)
        groups.setdefault(key, []).append(one)
    return [
        {
            "variable": variable,
            "first_step": first_step,
            "last_step": last_step,
            "cause": cause,
            "channel": [one.channel for one in group],
            "elements": [one.elements for one in group],
            "held": [one.held for one in group],
            # JSON has no infinity.
            "largest": [one.largest if math.isfinite(one.largest) else None for one in group],
        }
        for (variable, first_step, last_step, cause), group in groups.items()
    ]


def _rows(data: Mapping[str, Any]) -> Iterator[Violation]:
    variable, cause = text(data["variable"]), text(data["cause"])
    last_step = whole(data["last_step"])
    first_step = whole(data["first_step"], last_step)
    columns = (data["channel"], data["elements"], data["held"], data["largest"])
    for channel, elements, held, largest in zip(*columns, strict=True):
        yield Violation(
            variable=variable,
            channel=whole(channel, limits.MAX_CHANNELS),
            first_step=first_step,
            last_step=last_step,
            elements=whole(elements, whole(held)),
            held=held,
            largest=_size(largest),
            cause=cause,
        )


def _size(value: Any) -> float:
    if value is None:
        return math.inf
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ValueError("a size that is a number is missing")
    # Also NaN, which JSON in Python has: no order would hold with it.
    return abs(float(value)) if math.isfinite(value) else math.inf
