"""No silent loss: every record that was offered is accounted for."""

from __future__ import annotations

from dataclasses import dataclass, fields


@dataclass(frozen=True)
class Account:
    """What became of the records of a variable or a run. Accounts add up.

    `offered = shown + superseded + thinned + dropped + unreadable` holds by construction: see
    `settle`.

    Attributes:
        offered: records that were due while training.
        shown: readable, and drawn.
        superseded: readable, but replaced after a restart.
        thinned: left out by the writer's rule for long runs.
        dropped: given up by the writer under pressure (slow or full disk).
        unreadable: written, but damaged, foreign or of a newer version; or never found.
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
    """Closes the account of one lineage: of the sequence numbers that it gave out, as far as known.

    Records missing from the sequence are unreadable; where more damaged messages were found than
    are missing (bytes that were never ours), they count as offered too.
    """
    readable = shown + superseded
    missing = max(offered - readable - thinned - dropped, 0)
    unreadable = max(missing, damaged)
    total = readable + thinned + dropped + unreadable
    return Account(total, shown, superseded, thinned, dropped, unreadable)
