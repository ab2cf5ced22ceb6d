"""No silent loss: every record that was due is accounted for."""

from __future__ import annotations

from dataclasses import dataclass, fields

NO_OPTIMIZER_STEP = "Calls of `record` before which no optimizer made a step, in the whole training"
"""The note of a training that never stepped; its count is that of the calls."""


@dataclass(frozen=True)
class Account:
    """What became of the records of a variable or a run. Accounts add up.

    `offered = shown + superseded + thinned + dropped + unreadable` holds by construction: see
    `settle`.

    Attributes:
        offered: records that were due during training.
        shown: readable, and drawn.
        superseded: readable, but replaced after a restart.
        thinned: left out to limit the size of a long run.
        dropped: not written, because the write queue was full, or writing failed or took too long.
        unreadable: written, but damaged, foreign or of a newer version; or missing.

    Example:
        >>> total = Account(offered=3, shown=2, thinned=1) + Account(offered=2, shown=2)
        >>> total.offered, total.shown, total.thinned
        (5, 4, 1)
    """

    offered: int = 0
    shown: int = 0
    superseded: int = 0
    thinned: int = 0
    dropped: int = 0
    unreadable: int = 0

    def __add__(self, second: Account) -> Account:
        """Adds two accounts field by field."""
        return Account(*(getattr(self, f.name) + getattr(second, f.name) for f in fields(Account)))


def settle(
    *, offered: int, shown: int, superseded: int, thinned: int, dropped: int, damaged: int
) -> Account:
    """Closes the account of one lineage, from the sequence numbers that it used, as far as known.

    Records missing from the sequence are unreadable; if more damaged messages were found than
    are missing (bytes that were never ours), they count as offered too.
    """
    readable = shown + superseded
    unreadable = max(offered - readable - thinned - dropped, damaged)
    total = readable + thinned + dropped + unreadable
    return Account(total, shown, superseded, thinned, dropped, unreadable)
