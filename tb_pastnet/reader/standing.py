"""Why variables of a run are idle at its newest record, as its newest lineage has it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from tb_pastnet.core.standing import is_proven
from tb_pastnet.format.standing import StandingChange, decode_standing
from tb_pastnet.format.tags import TAG_STANDING
from tb_pastnet.reader import notes
from tb_pastnet.reader.lineage_heads import decode_all
from tb_pastnet.reader.notes import Notes
from tb_pastnet.reader.runs import CatalogRun
from tb_pastnet.reader.series_source import RequestContext, SeriesSource

MOST_CHANGES = 1 << 18
"""Changes that are read of a lineage, the newest first."""


class StandsStill(NamedTuple):
    """A variable that is idle.

    The cause is a key of `core.standing.CAUSES`, or one of a later version. It has been
    idle `since` a step, and since `proven_since` each cause has shown that it doesn't learn; None:
    the newest doesn't.
    """

    cause: str
    since: int
    proven_since: int | None


class StandingNow(NamedTuple):
    """The variables that are idle, and what could not be read."""

    variables: Mapping[str, StandsStill]
    notes: Notes


def read_standing(source: SeriesSource, context: RequestContext, run: CatalogRun) -> StandingNow:
    """Reads the newest lineage's changes; no call where it has none."""
    lost: Notes = Counter()
    newest = run.lineages[-1:]
    if not newest or TAG_STANDING not in newest[0].versions:
        return StandingNow({}, lost)
    name, lineage = newest[0].tb_run, newest[0].name.lineage
    readings, withheld = source.read_listed(context, [name], [TAG_STANDING])
    if (name, TAG_STANDING) in withheld:
        lost[notes.WITHHELD] += 1
    parts: list[tuple[StandingChange, ...]] = []
    messages = reversed(readings.get((name, TAG_STANDING), ()))
    for changes in decode_all(messages, decode_standing, TAG_STANDING, lineage, lost):
        parts.append(changes)
        if sum(map(len, parts)) > MOST_CHANGES:
            lost[notes.IN_PART] += 1
            break
    return StandingNow(latest(change for part in reversed(parts) for change in part), lost)


def latest(changes: Iterable[StandingChange]) -> dict[str, StandsStill]:
    """The variables that are idle after all changes, given in order.

    Example:
        >>> changes = [StandingChange(5, "w", "unknown"), StandingChange(9, "w", "no_gradient")]
        >>> latest(changes)
        {'w': StandsStill(cause='no_gradient', since=5, proven_since=9)}
    """
    still: dict[str, StandsStill] = {}
    for change in changes:
        before = still.pop(change.variable, None)
        if not change.cause:
            continue
        since = change.step if before is None else before.since
        proven = None
        if is_proven(change.cause):
            earlier = None if before is None else before.proven_since
            proven = change.step if earlier is None else earlier
        still[change.variable] = StandsStill(change.cause, since, proven)
    return still
