"""What the audit of one lineage found: held weights that moved, each beginning once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from tb_pastnet.core.violation import Violation
from tb_pastnet.format.tags import TAG_VIOLATIONS
from tb_pastnet.format.violations import decode_violations
from tb_pastnet.reader import notes
from tb_pastnet.reader.lineage_heads import decode_all
from tb_pastnet.reader.notes import Notes
from tb_pastnet.reader.series_source import StoredMessage

MOST_VIOLATIONS = 1 << 16
"""Violations of one lineage that are held; a hostile log inflates to any number of them."""

MOST_ENTRIES = 1 << 19
"""Entries of one lineage that are read, the newest first: a violation that goes on has many."""


@dataclass(frozen=True, eq=False)
class AuditLog:
    """What moved although it was held."""

    # the latest entry of each variable, channel and beginning
    violations: tuple[Violation, ...] = ()
    notes: Notes = field(default_factory=Counter)  # what could not be read, and why


def read_audit_log(
    messages: Sequence[StoredMessage],
    lineage: int,
    variables: Collection[str],
    *,
    withheld: bool = False,
) -> AuditLog:
    """Decodes what the audit of a lineage wrote."""
    lost: Notes = Counter({notes.WITHHELD: 1} if withheld else {})
    latest: dict[tuple[str, int, int], Violation] = {}
    read = 0
    newest = reversed(messages)
    for entries in decode_all(newest, decode_violations, TAG_VIOLATIONS, lineage, lost):
        if read >= MOST_ENTRIES:
            lost[notes.VIOLATIONS_TOO_MANY] += 1
            break
        for entry in entries:
            key = (entry.variable, entry.channel, entry.first_step)
            if entry.variable not in variables:
                lost[notes.VIOLATIONS_ELSEWHERE] += 1
            elif key not in latest and len(latest) >= MOST_VIOLATIONS:
                lost[notes.VIOLATIONS_TOO_MANY] += 1
            elif key not in latest or latest[key].last_step < entry.last_step:
                latest[key] = entry
        read += len(entries)
    return AuditLog(tuple(latest.values()), lost)
