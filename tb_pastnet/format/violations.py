"""Held weights that moved, as found by the audit: one violation for each channel and first step.

Stored as deflated JSON. Channels of one variable with the same first step are stored together, as
columns: a layer of thousands of channels stays small. Unknown keys are ignored.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tb_pastnet.core.violation import Violation
from tb_pastnet.errors import InvalidArgument
from tb_pastnet.format import json_payload, limits
from tb_pastnet.format.envelope import Kind, seal, unseal
from tb_pastnet.format.json_payload import natural, text


def encode_violations(
    violations: Sequence[Violation], *, tag: str, step: int, lineage: int
) -> bytes:
    """Packs and seals some violations; raises InvalidArgument if there are too many."""
    if len(violations) > limits.MAX_VIOLATIONS:
        raise InvalidArgument(
            f"Could not encode violations: expected at most {limits.MAX_VIOLATIONS}, got "
            f"{len(violations)}. Store them in several messages."
        )
    columns = _columns(violations)
    with json_payload.encoding("violations"):
        for entry in columns:
            deque(_rows(entry), maxlen=0)
    payload = json_payload.pack({"violations": columns})
    return seal(payload, Kind.VIOLATIONS, tag=tag, step=step, lineage=lineage)


def decode_violations(
    message: bytes, *, tag: str, step: int, lineage: int
) -> tuple[Violation, ...]:
    """Opens a message and restores its violations; raises UnreadableRecord.

    Those of one variable, first step and cause are side by side.
    """
    payload = unseal(message, Kind.VIOLATIONS, tag=tag, step=step, lineage=lineage)
    data = json_payload.unpack(payload)
    with json_payload.expecting("complete violations"):
        count = sum(len(entry["channel"]) for entry in data["violations"])
        if count > limits.MAX_VIOLATIONS:
            raise ValueError(f"{count} violations")
        return tuple(row for entry in data["violations"] for row in _rows(entry))


def _columns(violations: Sequence[Violation]) -> list[dict[str, Any]]:
    groups: dict[tuple[str, int, int, str], list[Violation]] = {}
    for violation in violations:
        key = (violation.variable, violation.first_step, violation.last_step, violation.cause)
        groups.setdefault(key, []).append(violation)
    return [
        {
            "variable": variable,
            "first_step": first_step,
            "last_step": last_step,
            "cause": cause,
            "channel": [violation.channel for violation in group],
            # None would be 0: as something moved, that says that it is unknown.
            "elements": [violation.elements or 0 for violation in group],
            "held": [violation.held for violation in group],
            # JSON has no infinity.
            "largest": [v.largest if math.isfinite(v.largest) else None for v in group],
        }
        for (variable, first_step, last_step, cause), group in groups.items()
    ]


def _rows(data: Mapping[str, Any]) -> Iterator[Violation]:
    variable, cause = text(data["variable"]), text(data["cause"])
    last_step = natural(data["last_step"])
    first_step = natural(data["first_step"], last_step)
    columns = (data["channel"], data["elements"], data["held"], data["largest"])
    for channel, elements, held, largest in zip(*columns, strict=True):
        yield Violation(
            variable=variable,
            channel=natural(channel, limits.MAX_CHANNELS),
            first_step=first_step,
            last_step=last_step,
            elements=natural(elements, natural(held)) or None,
            held=held,
            largest=_size(largest) if elements else math.nan,
            cause=cause,
        )


def _size(value: Any) -> float:
    if value is None:
        return math.inf
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ValueError("a size that is a number is missing")
    # Even NaN, which Python's JSON allows: it would break any order.
    return abs(float(value)) if math.isfinite(value) else math.inf
