"""Why variables are idle: a change for each that begins to, for another cause, or moves again.

Stored as deflated JSON. Variables of one step and cause are stored together: a network that is idle
as a whole stays small. Unknown keys are ignored.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from tb_pastnet.errors import InvalidArgument
from tb_pastnet.format import json_payload, limits
from tb_pastnet.format.envelope import Kind, seal, unseal
from tb_pastnet.format.json_payload import natural, text


@dataclass(frozen=True)
class StandingChange:
    """Why a variable is idle from the record of a step on.

    The cause is a key of `core.standing.CAUSES`, or one of a later version; "": it moves again.
    """

    step: int
    variable: str
    cause: str


def encode_standing(
    changes: Sequence[StandingChange], *, tag: str, step: int, lineage: int
) -> bytes:
    """Packs and seals some changes, in order; raises InvalidArgument if there are too many."""
    if len(changes) > limits.MAX_STANDING:
        raise InvalidArgument(
            f"Could not encode why variables are idle: expected at most {limits.MAX_STANDING} "
            f"changes, got {len(changes)}. Store them in several messages."
        )
    entries = [
        {"step": step, "cause": cause, "variables": [change.variable for change in group]}
        for (step, cause), group in groupby(changes, lambda change: (change.step, change.cause))
    ]
    with json_payload.encoding("why variables are idle"):
        for entry in entries:
            _changes(entry)
    payload = json_payload.pack({"standing": entries})
    return seal(payload, Kind.STANDING, tag=tag, step=step, lineage=lineage)


def decode_standing(
    message: bytes, *, tag: str, step: int, lineage: int
) -> tuple[StandingChange, ...]:
    """Opens a message and restores its changes, in order; raises UnreadableRecord."""
    payload = unseal(message, Kind.STANDING, tag=tag, step=step, lineage=lineage)
    data = json_payload.unpack(payload)
    with json_payload.expecting("complete causes"):
        entries = [_changes(entry) for entry in data["standing"]]
        if sum(map(len, entries)) > limits.MAX_STANDING:
            raise ValueError(f"more than {limits.MAX_STANDING} changes")
        return tuple(change for entry in entries for change in entry)


def _changes(data: Mapping[str, Any]) -> list[StandingChange]:
    step, cause, variables = natural(data["step"]), text(data["cause"]), data["variables"]
    if not isinstance(variables, list):
        raise ValueError("a list of variables is missing")
    return [StandingChange(step, text(variable), cause) for variable in variables]
