"""What several commands say in the same words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from tb_pastnet.core.account import Account


def account_text(account: Account) -> str:
    """An account in words, without what is 0.

    Example:
        >>> account_text(Account(5, shown=4, thinned=1))
        '5 offered: 4 shown, 1 thinned'
    """
    parts = [f"{n:,} {name}" for name, n in asdict(account).items() if n and name != "offered"]
    return f"{account.offered:,} offered" + (f": {', '.join(parts)}" if parts else "")


def overhead_text(cost: Mapping[str, Any]) -> str:
    """What recording cost, in words.

    Args:
        cost: as in JSON, see `overhead_of`.

    Example:
        >>> overhead_text({"share": 0.008, "seconds": 1.2, "training": 150.0, "writer": 0.4})
        'recording took 0.8% of training, 1.2 s of 150 s; beside it, 0.4 s of a thread that writes'
    """
    share = cost["share"] or 0.0
    shown = "<0.1%" if 0 < share < 0.0005 else f"{share:.1%}"
    times = f"{_seconds(cost['seconds'])} of {_seconds(cost['training'])}"
    writing = f"{_seconds(cost['writer'])} of a thread that writes"
    return f"recording took {shown} of training, {times}; beside it, {writing}"


def _seconds(count: float) -> str:
    return f"{count:,.0f} s" if count >= 100 else f"{count:.2g} s"
